#define _GNU_SOURCE
#include "runtime/base/flush.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdio_ext.h>
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

/* ---- All streams, as far as they are not held ---- */

static bool is_held(FILE *stream)
{
    if (ftrylockfile(stream) != 0)
        return true;
    funlockfile(stream);
    return false;
}

/* Whether it is held, and was left alone. */
static bool flush_unless_held(FILE *stream)
{
    if (ftrylockfile(stream) != 0)
        return true;
    if (__fpending(stream)) /* as fflush(NULL), which leaves those alone that are read */
        fflush_unlocked(stream);
    funlockfile(stream);
    return false;
}

#ifdef __GLIBC__
/* The list that fflush(NULL) goes through, and its lock, under which no stream is closed. Exported
 * since glibc 2.2, without a header. NULL: of a C library that has them no more. */
extern FILE *_IO_list_all __attribute__((weak));
extern void _IO_list_lock(void) __attribute__((weak));
extern void _IO_list_unlock(void) __attribute__((weak));

static bool has_list(void)
{
    return &_IO_list_all && _IO_list_lock && _IO_list_unlock;
}

/* For all streams: whether the function is true for any of them. Waits for a thread that is within
 * fflush(NULL), as exit does. */
static bool any_stream(bool (*is)(FILE *stream))
{
    bool any = false;

    _IO_list_lock();
    for (FILE *stream = _IO_list_all; stream; stream = stream->_chain)
        any |= stream->_lock && is(stream);
    _IO_list_unlock();
    return any;
}
#else
static bool has_list(void)
{
    return false;
}

static bool any_stream(bool (*is)(FILE *stream))
{
    return is(stdin) || is(stdout) || is(stderr);
}
#endif

/* Whether another thread has a stream, as one that waits for a line of input. */
static bool any_is_held(void)
{
    return is_held(stdin) || is_held(stdout) || is_held(stderr) ||
           (has_list() && any_stream(is_held));
}

/* Whether none was held meanwhile. Without a list this waits for those that the program has
 * opened. */
static bool flush_free(void)
{
    if (has_list())
        return !any_stream(flush_unless_held);
    fflush(NULL);
    return true;
}

/* ---- All streams ---- */

/* fflush(NULL) flushes none behind the first that is held, and keeps the list of streams from all
 * other threads while it waits for that one. */
static void *flush_streams(void *flushed)
{
    while (!flush_free())
        clock_sleep(CLOCK_MS);
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

/* fflush(NULL) waits for each stream's lock, which exit does not. Where none is held there is no
 * thread: a handler of a signal may be the caller, which must not make one. */
void flush_all(void)
{
    static atomic_bool flushed; /* the thread may outlive the call */

    if (!any_is_held() && flush_free())
        return;
    flush_printed();
    const uint64_t end = clock_ns() + FLUSH_NS;
    const bool begun = begin_thread(&flushed);
    /* relaxed: the process ends, and nothing is read that the thread has written */
    while (begun && !atomic_load_explicit(&flushed, memory_order_relaxed) && clock_ns() < end)
        clock_sleep(CLOCK_MS);
}
