/* PE 0 exits with 0 while one of its threads is in a call that waits.
 *
 *     exit-inside handler CALL    that thread itself does, in a signal's handler
 *     exit-inside thread CALL     another one does
 *
 * In a collective no good end is left: the others wait for PE 0 there, and it may not take part in another one
 * before that is over. The job ends with a line. A wait for memory is nobody else's, and the job ends well. */
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>

#include "pe.h"

enum { PAUSE_US = 300 * 1000 };

static uint64_t never;
static _Atomic bool about_to_call;

static void *leave(void *nothing)
{
    (void)nothing;
    while (!about_to_call)
        usleep(1000);
    usleep(PAUSE_US); /* so that the call waits by then */
    exit(0);
}

/* The second time, so that the call waits by then: the main thread has gone on meanwhile. */
static void leave_by_signal(int number)
{
    static int times;

    (void)number;
    if (about_to_call && ++times == 2)
        exit(0);
}

/* Comes back at most because the job has been ended. */
static void wait_in(const char *call, gshmem_team_t pair)
{
    gshmem_status_t status = GSHMEM_ERR_ABORTED;

    about_to_call = true;
    if (strcmp(call, "barrier") == 0)
        status = gshmem_barrier_all();
    else if (strcmp(call, "team") == 0)
        status = gshmem_team_sync(pair);
    else
        gshmem_signal_wait_until(&never, GSHMEM_CMP_EQ, 1);
    CHECK_EQ(status, GSHMEM_ERR_ABORTED);
    for (;;)
        pause();
}

int main(int argc, char **argv)
{
    gshmem_init_attr_t attr = {.thread_level = GSHMEM_THREAD_MULTIPLE};
    gshmem_team_t pair;
    pthread_t thread;

    CHECK(argc == 3);
    CHECK_OK(gshmem_init_attr(&attr));
    me = gshmem_my_pe();
    CHECK_OK(gshmem_team_split_strided(GSHMEM_TEAM_WORLD, 0, 1, 2, NULL, 0, &pair));
    barrier();
    if (me == 0) {
        if (strcmp(argv[1], "thread") == 0) {
            CHECK_EQ(pthread_create(&thread, NULL, leave, NULL), 0);
        } else {
            signal(SIGALRM, leave_by_signal);
            ualarm(PAUSE_US, PAUSE_US);
        }
        wait_in(argv[2], pair);
    }
    while (strcmp(argv[2], "wait") != 0)
        pause(); /* the job is ended */
    return 0;
}
