/* PE 0 exits with 0 while its main thread is in gshmem_init, and waits there for PE 1.
 *
 *     exit-early thread ROUND     another thread does: the job begins first, and ends well
 *     exit-early handler ROUND    a signal's handler does, which the job cannot survive
 *
 * In the first round or the second of gshmem_init. PE 1 waits for the end of an alarm that PE 0 has as well, and for
 * some time more: it may come before or after, either is right. */
#include <pthread.h>
#include <signal.h>

#include "pe.h"

enum { PAUSE_US = 300 * 1000 };

static void *leave(void *nothing)
{
    (void)nothing;
    usleep(PAUSE_US);
    exit(0);
}

static void leave_by_signal(int number)
{
    (void)number;
    exit(0);
}

static void go_on(void)
{
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
        usleep(3 * PAUSE_US);
    } else if (strcmp(argv[1], "thread") == 0) {
        CHECK_EQ(pthread_create(&thread, NULL, leave, NULL), 0);
    } else {
        signal(SIGALRM, leave_by_signal);
        ualarm(PAUSE_US, 0);
    }
    go_on();
    return 0;
}
