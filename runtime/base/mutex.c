#define _GNU_SOURCE
#include "runtime/base/mutex.h"

#include <limits.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SLEEPS = 4 }; /* of a thread that waits, before the lock is promised to it */

static void sleep_while(struct mutex *m, uint32_t state)
{
    syscall(SYS_futex, &m->state, FUTEX_WAIT_PRIVATE, state, NULL, NULL, 0);
}

/* The next state, for a thread that wants the lock and has seen `seen`. A thread that has slept
 * does not know whether others still sleep, and so leaves the lock as wanted when it takes it. */
static uint32_t next_state(uint32_t seen, bool promised, int slept)
{
    if (seen == MUTEX_FREE || (seen == MUTEX_GIVEN && promised))
        return MUTEX_WANTED;
    if (seen == MUTEX_TAKEN || seen == MUTEX_WANTED)
        return slept < SLEEPS ? MUTEX_WANTED : MUTEX_PROMISED;
    return seen;
}

void mutex_wait(struct mutex *m)
{
    uint32_t seen = atomic_load_explicit(&m->state, memory_order_relaxed);
    bool promised = false;

    for (int slept = 0;;) {
        const uint32_t next = next_state(seen, promised, slept);
        /* acquire: pairs with the releases of the threads that released it */
        if (next != seen && !atomic_compare_exchange_weak_explicit(
                                &m->state, &seen, next, memory_order_acquire, memory_order_relaxed))
            continue;
        if (seen == MUTEX_FREE || (seen == MUTEX_GIVEN && promised))
            return;
        promised |= next == MUTEX_PROMISED && next != seen;
        sleep_while(m, next);
        slept++;
        seen = atomic_load_explicit(&m->state, memory_order_relaxed);
    }
}

void mutex_give_away(struct mutex *m)
{
    uint32_t seen = atomic_load_explicit(&m->state, memory_order_relaxed), next;

    /* release: pairs with the acquire of the thread that takes it next */
    do {
        next = seen == MUTEX_PROMISED ? MUTEX_GIVEN : MUTEX_FREE;
    } while (!atomic_compare_exchange_weak_explicit(&m->state, &seen, next, memory_order_release,
                                                    memory_order_relaxed));
    /* the system does not know to which of them it was promised */
    syscall(SYS_futex, &m->state, FUTEX_WAKE_PRIVATE, next == MUTEX_GIVEN ? INT_MAX : 1, NULL, NULL,
            0);
}
