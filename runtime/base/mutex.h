/* A lock that costs one atomic step to take and one to release while no other thread wants it,
 * inline (docs/decisions/0005). A thread that finds it taken sleeps.
 *
 * A thread that is woken may find it taken again, by the thread that released it and goes on at
 * once. So a thread that was overtaken some times makes the holder promise it.
 * tests/model/mutex.pml is a model of this. */
#ifndef GSHMEM_BASE_MUTEX_H
#define GSHMEM_BASE_MUTEX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    MUTEX_FREE,
    MUTEX_TAKEN,
    MUTEX_WANTED,   /* taken, and a thread may sleep until it is free */
    MUTEX_PROMISED, /* the same, and one of these threads is to have it next */
    MUTEX_GIVEN     /* handed to that thread */
};

struct mutex { /* all zeros: free */
    _Atomic uint32_t state;
};

static inline bool mutex_try(struct mutex *m)
{
    uint32_t free = MUTEX_FREE;

    /* acquire: pairs with the release in mutex_give */
    return atomic_compare_exchange_strong_explicit(&m->state, &free, MUTEX_TAKEN, memory_order_acquire,
                                                   memory_order_relaxed);
}

void mutex_wait(struct mutex *m);      /* takes it; sleeps until that is possible */
void mutex_give_away(struct mutex *m); /* releases it where other threads want it */

static inline void mutex_take(struct mutex *m)
{
    if (!mutex_try(m))
        mutex_wait(m);
}

static inline void mutex_give(struct mutex *m)
{
    uint32_t taken = MUTEX_TAKEN;

    /* release: pairs with the acquire of the thread that takes it next */
    if (!atomic_compare_exchange_strong_explicit(&m->state, &taken, MUTEX_FREE,
                                                 memory_order_release, memory_order_relaxed))
        mutex_give_away(m);
}

#endif
