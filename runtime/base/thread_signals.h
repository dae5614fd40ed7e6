/* The signals of threads of the library's own: the program's are for the program's threads. */
#ifndef GSHMEM_RUNTIME_BASE_THREAD_SIGNALS_H
#define GSHMEM_RUNTIME_BASE_THREAD_SIGNALS_H

#include <signal.h>
#include <stddef.h>

/* What such a thread blocks: all but what the processor itself sends to a thread, which ends the
 * process unseen where it is blocked (runtime/network/crash.c). */
static inline void thread_signals_blocked(sigset_t *set)
{
    static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};

    sigfillset(set);
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        sigdelset(set, own[i]);
}

#endif
