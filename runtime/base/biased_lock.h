/* A lock that one thread, its owner, takes without an atomic step (docs/decisions/0036).
 *
 *     the owner     enters and leaves: two loads and two stores
 *     other threads take and give; they fail while there is an owner
 *     a revoker     ends the ownership: it makes all threads of the process fence (membarrier), so
 *                   that either it sees the owner within, and waits, or the owner sees the
 *                   revocation, and does not enter
 *
 * A revocation takes some µs. Whoever holds the lock, in either way, waits for nothing.
 * tests/model/biased.pml is a model of this. */
#ifndef GSHMEM_BASE_BIASED_LOCK_H
#define GSHMEM_BASE_BIASED_LOCK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "gshmem/base.h"

/* What a thread needs that owns locks. It is not the lock's: a thread that has found itself the
 * owner may store that it is within so late that another one owns the lock. */
struct biased_thread {
    _Atomic uintptr_t self; /* biased_self */
    _Atomic bool within;    /* one of its locks, or about to find out that it is not its own */
    struct biased_thread *next;
};

struct biased_lock { /* all zeros: free, without an owner */
    /* NULL: threads take it. biased_revoked: neither, since the owner may still be within. */
    _Atomic(struct biased_thread *) owner;
    _Atomic bool taken; /* by a thread that is not the owner */
};

extern struct biased_thread biased_revoked;

/* A number of this thread, which no other living thread has. A later thread may have it; the C
 * library then orders what the earlier one did before what that one does, since they have the same
 * memory. */
static inline uintptr_t biased_self(void)
{
#if defined(__x86_64__) && !defined(GSHMEM_SIMULATED)
    uintptr_t self; /* pthread_self, without a call */

    __asm__("mov %%fs:0, %0" : "=r"(self));
    return self;
#else
    return (uintptr_t)pthread_self();
#endif
}

/* ---- The owner ---- */

/* Enters it, and returns this thread's record; NULL: this thread is not the owner. */
static inline struct biased_thread *biased_lock_enter(struct biased_lock *l)
{
    /* acquire: pairs with the release in biased_lock_bias: the record of another thread is one */
    struct biased_thread *me = atomic_load_explicit(&l->owner, memory_order_acquire);

    if (!me || atomic_load_explicit(&me->self, memory_order_relaxed) != biased_self())
        return NULL;
    atomic_store_explicit(&me->within, true, memory_order_relaxed);
    /* The compiler keeps the order of the two. For the CPU, biased_lock_fence does. */
    atomic_signal_fence(memory_order_seq_cst);
    if (GSHMEM_LIKELY(atomic_load_explicit(&l->owner, memory_order_relaxed) == me))
        return me;
    atomic_store_explicit(&me->within, false, memory_order_release);
    return NULL;
}

static inline void biased_lock_leave(struct biased_thread *me)
{
    /* release: pairs with the acquire in biased_thread_wait */
    atomic_store_explicit(&me->within, false, memory_order_release);
}

/* ---- Other threads ---- */

void biased_lock_wait(struct biased_lock *l); /* until it can be taken, and takes it */

static inline void biased_lock_give(struct biased_lock *l)
{
    atomic_store_explicit(&l->taken, false, memory_order_release);
}

/* False: it has an owner. */
static inline bool biased_lock_take(struct biased_lock *l)
{
    /* acquire: pairs with the release above */
    if (GSHMEM_UNLIKELY(atomic_exchange_explicit(&l->taken, true, memory_order_acquire)))
        biased_lock_wait(l);
    /* acquire: pairs with the release in biased_lock_revoke_end */
    if (GSHMEM_LIKELY(!atomic_load_explicit(&l->owner, memory_order_acquire)))
        return true;
    biased_lock_give(l);
    return false;
}

/* By a thread that has taken it: makes this thread the owner, as soon as it gives it. */
static inline void biased_lock_bias(struct biased_lock *l, struct biased_thread *me)
{
    /* release: pairs with the acquire in biased_lock_enter */
    atomic_store_explicit(&l->owner, me, memory_order_release);
}

/* ---- Revoking: one thread at a time, which an outer lock sees to, as to biasing ---- */

/* Whether locks may have owners: the system has a fence for all threads of a process. Call before
 * the first one has. */
bool biased_lock_prepare(void);

/* This thread's record in a list of them, in which it is entered; NULL: out of memory. */
struct biased_thread *biased_thread_find(struct biased_thread **list);
void biased_threads_free(struct biased_thread **list);

/* Begins it, and returns the owner; NULL: there is nothing to revoke. Several can be begun, for one
 * fence. */
static inline struct biased_thread *biased_lock_revoke_begin(struct biased_lock *l)
{
    struct biased_thread *owner = atomic_load_explicit(&l->owner, memory_order_relaxed);

    if (!owner || atomic_load_explicit(&owner->self, memory_order_relaxed) == biased_self())
        return NULL;
    atomic_store_explicit(&l->owner, &biased_revoked, memory_order_relaxed);
    return owner;
}

/* False: the system has refused it. The stores of other CPUs are visible nevertheless, but no more
 * locks may have owners. */
bool biased_lock_fence(void);
/* After the fence, once for each owner: it has left. */
void biased_thread_wait(const struct biased_thread *owner);
/* From now on threads can take it. Does nothing to a lock that is not being revoked. */
static inline void biased_lock_revoke_end(struct biased_lock *l)
{
    /* release: pairs with the acquire of the thread that takes it */
    if (atomic_load_explicit(&l->owner, memory_order_relaxed) == &biased_revoked)
        atomic_store_explicit(&l->owner, NULL, memory_order_release);
}

/* Whether nobody has it: a signal handler may have interrupted one that does. */
static inline bool biased_lock_is_free(const struct biased_lock *l)
{
    const struct biased_thread *owner = atomic_load_explicit(&l->owner, memory_order_relaxed);

    return !atomic_load_explicit(&l->taken, memory_order_relaxed) &&
           !(owner && atomic_load_explicit(&owner->within, memory_order_relaxed));
}

#endif
