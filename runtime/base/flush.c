#define _GNU_SOURCE
#include "runtime/base/flush.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "runtime/base/system.h"
#include "runtime/base/thread_signals.h"

enum { FLUSH_NS = 1000 * CLOCK_MS };

void flush_printed(void)
{
    struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};

    if (system_poll(&out, 1, 0) != 1 || ftrylockfile(stdout) != 0)
        return;
    fflush_unlocked(stdout);
    funlockfile(stdout);
}

static void *flush_streams(void *flushed)
{
    fflush(NULL);
    atomic_store_explicit((atomic_bool *)flushed, true, memory_order_relaxed);
    return NULL;
}

static bool begin_thread(atomic_bool *flushed)
{
    sigset_t ours, program;
    pthread_t thread;

    thread_signals_blocked(&ours);
    pthread_sigmask(SIG_SETMASK, &ours, &program);
    const bool begun = pthread_create(&thread, NULL, flush_streams, flushed) == 0;
    pthread_sigmask(SIG_SETMASK, &program, NULL);
    if (begun)
        pthread_detach(thread);
    return begun;
}

/* Whether another thread has one of the standard streams, as one that waits for a line of input. */
static bool any_is_held(void)
{
    FILE *const standard[] = {stdin, stdout, stderr};
    bool held = false;

    for (int i = 0; i < 3; i++) {
        if (ftrylockfile(standard[i]) == 0)
            funlockfile(standard[i]);
        else
            held = true;
    }
    return held;
}

/* fflush(NULL) waits for each stream's lock, which exit does not. It is called directly where it
 * need not wait: a handler of a signal may be the caller, which must not make a thread. */
void flush_all(void)
{
    static atomic_bool flushed; /* the thread may outlive the call */

    if (!any_is_held()) {
        fflush(NULL);
        return;
    }
    flush_printed();
    const uint64_t end = clock_ns() + FLUSH_NS;
    const bool begun = begin_thread(&flushed);
    /* relaxed: the process ends, and nothing is read that the thread has written */
    while (begun && !atomic_load_explicit(&flushed, memory_order_relaxed) && clock_ns() < end)
        clock_sleep(CLOCK_MS);
}
