/* Failures that nobody looks at, and what becomes of the exit status (GSHMEM_UNSEEN), and the end
 * of a job at its first failed call (GSHMEM_CHECK=strict).
 *
 *     unseen never|looked|handled|thread|after|many|void */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "gshmem.h"

static long word;

static void refused(void)
{
    gshmem_putmem(&word, &word, 8, 1000); /* there is no such PE */
}

static void handle(gshmem_status_t status, const char *text, void *context)
{
    (void)status;
    (void)text;
    (void)context;
}

static void *in_thread(void *unused)
{
    refused();
    return unused;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    pthread_t thread;
    int provided;

    gshmem_init_thread(GSHMEM_THREAD_MULTIPLE, &provided);
    if (strcmp(what, "handled") == 0)
        gshmem_set_error_handler(handle, NULL);
    if (strcmp(what, "thread") == 0) {
        pthread_create(&thread, NULL, in_thread, NULL);
        pthread_join(thread, NULL);
        gshmem_last_error(NULL); /* of this thread, which has none */
    } else if (strcmp(what, "many") == 0) {
        for (int i = 0; i < 5; i++)
            refused();
    } else if (strcmp(what, "handled") == 0) {
        gshmem_long_g(&word, 1000);
    } else if (strcmp(what, "void") == 0) {
        gshmem_long_g(&word, 1000);
    } else if (strcmp(what, "after") != 0) {
        refused();
    }
    if (strcmp(what, "looked") == 0)
        gshmem_last_error(NULL);
    gshmem_barrier_all();
    gshmem_finalize();
    if (strcmp(what, "after") == 0)
        gshmem_barrier_all(); /* no job any more */
    printf("PE has ended its work\n");
    return 0;
}
