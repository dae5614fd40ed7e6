/* A lock that costs one atomic step to take and one to give back while nobody else wants it, inline:
 * the C library's own cost a put and its quiet some 230 instructions. Who finds it taken sleeps.
 *
 * Who is woken may find it taken again, by the one who gave it back and goes on at once: that is the
 * faster way, as long as it does not go on for ever. So who has been overtaken some times makes the
 * holder promise it. tests/model/mutex.pml is a model of this. */
#ifndef GSHMEM_BASE_MUTEX_H
#define GSHMEM_BASE_MUTEX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    MUTEX_FREE,
    MUTEX_TAKEN,
    MUTEX_WANTED,   /* taken, and somebody may sleep for it */
    MUTEX_PROMISED, /* the same, and one of those is to have it next */
    MUTEX_GIVEN     /* to that one */
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

void mutex_wait(struct mutex *m);      /* takes it, asleep until it can be had */
void mutex_give_away(struct mutex *m); /* gives it back where others want it */

static inline void mutex_take(struct mutex *m)
{
    if (!mutex_try(m))
        mutex_wait(m);
}

static inline void mutex_give(struct mutex *m)
{
    uint32_t taken = MUTEX_TAKEN;

    /* release: pairs with the acquire of who takes it next */
    if (!atomic_compare_exchange_strong_explicit(&m->state, &taken, MUTEX_FREE,
                                                 memory_order_release, memory_order_relaxed))
        mutex_give_away(m);
}

#endif
