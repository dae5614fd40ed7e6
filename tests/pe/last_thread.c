/* PEs whose main thread ends by pthread_exit. The process exits with 0 once the program's last thread has ended, as it
 * would without the library's threads: run by `expect`.
 *
 *     last-thread main     the main thread is the only one
 *     last-thread other    another thread goes on for longer than the library waits, and meets the other PEs */
#include <pthread.h>

#include "pe.h"

static void say(void)
{
    printf("PE %d exits\n", me);
    fflush(stdout);
}

static void *go_on(void *nothing)
{
    (void)nothing;
    /* Longer than two looks of the proxy: a process that exits meanwhile fails in the barrier of the others. */
    sleep(2);
    barrier();
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t thread;

    begin();
    CHECK(argc == 2);
    atexit(say);
    barrier();
    if (strcmp(argv[1], "other") == 0)
        CHECK_EQ(pthread_create(&thread, NULL, go_on, NULL), 0);
    pthread_exit(NULL);
}
