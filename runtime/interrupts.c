/* For the Python package: which call of the main thread a Ctrl-C has found. Python runs handlers
 * between two steps of its interpreter, so that its own one learns of it when the call has ended.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <unistd.h>

#include "gshmem.h"
#include "runtime/job/extensions.h"

/* Of the process, as its handlers are. */
static struct {
    _Atomic uint64_t call; /* written by the caller, without an atomic of this language */
    _Atomic int pipe;
    pid_t owner;
    struct sigaction before; /* the handler in whose place ours is */
    struct sigaction first;  /* the first one: what is in our place may call ours again */
} interrupts;

static _Thread_local volatile sig_atomic_t interrupts_depth;

static void interrupts_hand_on(const struct sigaction *to, int number, siginfo_t *info,
                               void *context)
{
    if (to->sa_flags & SA_SIGINFO)
        to->sa_sigaction(number, info, context);
    else
        to->sa_handler(number);
}

static void interrupts_handle(int number, siginfo_t *info, void *context)
{
    const uint64_t call = atomic_load_explicit(&interrupts.call, memory_order_relaxed);
    const int error = errno;

    if (interrupts_depth++ > 0) {
        interrupts_hand_on(&interrupts.first, number, info, context);
    } else {
        /* a forked child's Ctrl-C is not its parent's; a full pipe has earlier ones of the call */
        if (call && getpid() == interrupts.owner)
            (void)!write(atomic_load_explicit(&interrupts.pipe, memory_order_relaxed), &call,
                         sizeof call);
        interrupts_hand_on(&interrupts.before, number, info, context);
    }
    interrupts_depth--;
    errno = error;
}

static bool interrupts_is_function(const struct sigaction *a)
{
    return a->sa_flags & SA_SIGINFO || (a->sa_handler != SIG_DFL && a->sa_handler != SIG_IGN);
}

uint64_t *gshmem_path_watch_interrupts(int pipe)
{
    struct sigaction now, ours;

    atomic_store_explicit(&interrupts.pipe, pipe, memory_order_relaxed);
    if (sigaction(SIGINT, NULL, &now) != 0 || !interrupts_is_function(&now) ||
        (now.sa_flags & SA_SIGINFO && now.sa_sigaction == interrupts_handle))
        return (uint64_t *)&interrupts.call;
    interrupts.owner = getpid();
    if (!interrupts_is_function(&interrupts.first))
        interrupts.first = now;
    interrupts.before = now;
    ours = now;
    ours.sa_flags |= SA_SIGINFO;
    ours.sa_sigaction = interrupts_handle;
    sigaction(SIGINT, &ours, NULL);
    return (uint64_t *)&interrupts.call;
}
