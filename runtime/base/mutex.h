/* A lock that costs one atomic step to take and one to give back while nobody else wants it, inline:
 * the C library's own cost a put and its quiet some 230 instructions. Who finds it taken sleeps. */
#ifndef GSHMEM_BASE_MUTEX_H
#define GSHMEM_BASE_MUTEX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { MUTEX_FREE, MUTEX_TAKEN, MUTEX_WANTED /* taken, and somebody may sleep for it */ };

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

void mutex_wait(struct mutex *m); /* takes it, asleep until it can be had */
void mutex_wake(struct mutex *m); /* one who sleeps */

static inline void mutex_take(struct mutex *m)
{
    if (!mutex_try(m))
        mutex_wait(m);
}

static inline void mutex_give(struct mutex *m)
{
    /* release: pairs with the acquire of who takes it next */
    if (atomic_exchange_explicit(&m->state, MUTEX_FREE, memory_order_release) == MUTEX_WANTED)
        mutex_wake(m);
}

#endif
