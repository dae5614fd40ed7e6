/* Failures that nobody looks at, and what becomes of the exit status (GSHMEM_UNSEEN), and the end
 * of a job at its first failed call (GSHMEM_CHECK=strict).
 *
 *     unseen never|looked|handled|thread|after|many|void|other|again|before|status|returns|zone|one */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
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

/* Handlers that are registered before gshmem_init run after the job has been left. */
static void at_exit(void)
{
    refused();
}

static void fail_in_thread(void)
{
    pthread_t thread;

    pthread_create(&thread, NULL, in_thread, NULL);
    pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    int provided;

    if (strcmp(what, "before") == 0)
        atexit(at_exit);
    gshmem_init_thread(GSHMEM_THREAD_MULTIPLE, &provided);
    if (strcmp(what, "handled") == 0)
        gshmem_set_error_handler(handle, NULL);
    if (strcmp(what, "thread") == 0) {
        fail_in_thread();
        gshmem_last_error(NULL); /* of this thread, which has none */
    } else if (strcmp(what, "other") == 0) { /* the first one is looked at, the second is not */
        gshmem_putmem(&word, &word, 8, 2000);
        fail_in_thread();
        gshmem_last_error(NULL);
    } else if (strcmp(what, "again") == 0) { /* it is of the first job, and is reported once */
        refused();
        gshmem_finalize();
        gshmem_init();
    } else if (strcmp(what, "status") == 0) {
        refused();
        gshmem_global_exit(0);
    } else if (strcmp(what, "one") == 0) { /* PE 0 sees that the job has ended */
        if (gshmem_my_pe() == 1)
            refused();
        gshmem_barrier_all();
        gshmem_barrier_all();
    } else if (strcmp(what, "returns") == 0) {
        refused();
        return 0;
    } else if (strcmp(what, "zone") == 0) { /* is found when the process has left the job */
        char *object = gshmem_malloc(64);
        object[65] = 1;
        return 0;
    } else if (strcmp(what, "many") == 0) {
        for (int i = 0; i < 5; i++)
            refused();
    } else if (strcmp(what, "handled") == 0) {
        gshmem_long_g(&word, 1000);
    } else if (strcmp(what, "void") == 0) {
        gshmem_long_g(&word, 1000);
    } else if (strcmp(what, "after") != 0 && strcmp(what, "before") != 0) {
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
