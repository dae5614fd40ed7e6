/* PE 0 exits with 0 while its main thread is in gshmem_init, and waits there for PE 1.
 *
 *     exit-early thread ROUND     another thread does: the job begins first, and ends well
 *     exit-early handler ROUND    a signal's handler does, which the job cannot survive
 *
 * In the first round or the second of gshmem_init. With "thread" PE 1 comes some time later, and is right before and
 * after PE 0's exit; with "handler" it does not come. */
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>

#include "pe.h"

enum { PAUSE_US = 300 * 1000, TIMES = 4 };

static _Atomic bool about_to_call;

static void *leave(void *nothing)
{
    (void)nothing;
    while (!about_to_call)
        usleep(1000);
    usleep(PAUSE_US);
    exit(0);
}

/* The last time, so that the call waits by then: the main thread has gone on meanwhile. */
static void leave_by_signal(int number)
{
    static int times;

    (void)number;
    if (about_to_call && ++times == TIMES)
        exit(0);
}

static void go_on(void)
{
    about_to_call = true;
    CHECK_OK(gshmem_init());
    if (me == 0) {
        for (;;)
            pause(); /* the other thread ends this process */
    }
    CHECK_OK(gshmem_finalize());
}

int main(int argc, char **argv)
{
    const char *pe = getenv("GSHMEM_RUN_PE");
    pthread_t thread;

    CHECK(argc == 3 && pe);
    me = atoi(pe);
    if (atoi(argv[2]) == 2) {
        CHECK_OK(gshmem_init());
        CHECK_OK(gshmem_finalize());
    }
    if (me == 1) {
        while (strcmp(argv[1], "handler") == 0)
            pause(); /* the job is ended */
        usleep(3 * PAUSE_US);
    } else if (strcmp(argv[1], "thread") == 0) {
        CHECK_EQ(pthread_create(&thread, NULL, leave, NULL), 0);
    } else {
        signal(SIGALRM, leave_by_signal);
        ualarm(PAUSE_US, PAUSE_US);
    }
    go_on();
    return 0;
}
