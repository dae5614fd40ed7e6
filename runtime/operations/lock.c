/* Distributed locks: a queue of PEs, each of which waits on its own copy of the lock.
 *
 * A lock is a symmetric long of 64 bits. Its home PE is chosen by the object's offset in its
 * segment, which is the same on all PEs, so that locks spread over the job. The low half of the
 * home PE's copy is the queue's tail. The high half of each PE's copy is that PE's place in the
 * queue:
 *
 *     high: waiting | held | lost | left | next PE + 1    low, on the home PE: last PE + 1, 0: free
 *
 * 1. To enter, a PE exchanges the tail for itself. If the queue was empty, it has the lock.
 * 2. Otherwise it writes its number into the place of the PE before it (that PE's `next`), and
 *    waits for its own `waiting` to be cleared. That is one exchange and one update of another PE's
 *    memory, without polling it.
 * 3. To release the lock, a PE clears `waiting` in the next PE's place. If there is no next PE, it
 *    makes the tail 0.
 *
 * Invariant: PEs get the lock in the order in which they reached the tail.
 *
 * Failure: a PE waits for the PE before it alone, so that the death of others changes nothing. When
 * the PE before it has died, no PE will hand over the lock to it, or to those behind it. It marks
 * its place as lost and notifies the next PE, which does the same; a PE that enters later finds the
 * mark when it writes itself as next.
 *
 * A PE that releases the lock waits for the next PE to write its number, but only for LINK_NS,
 * since that PE may be stopped or dead. After that, and where the home PE cannot be reached, it
 * marks its own place as left. The PE that later writes itself as next finds the mark, clears it
 * and has the lock. Until then the PE that left it can take it again.
 *
 * A place has room for one thread: threads of a PE take turns before they enter. */
#include <stdatomic.h>

#include "gshmem.h"
#include "runtime/base/atomic_type.h"
#include "runtime/base/log.h"
#include "runtime/job/job.h"
#include "runtime/job/thread.h"
#include "runtime/memory/map.h"
#include "runtime/network/wait.h"
#include "runtime/network/wait_shown.h"
#include "runtime/operations/lock_turns.h"
#include "runtime/races/races.h"
#include "runtime/teams/context.h"
#include "runtime/teams/departures.h"
#include "runtime/where/record.h"

#define NEXT    0x0fffffffu
#define LEFT    0x10000000u
#define LOST    0x20000000u
#define HELD    0x40000000u
#define WAITING 0x80000000u

enum {
    LINK_NS = 50000000, /* how long a PE that releases the lock waits for one that has reached the
                           tail to write its number */
    TESTS_PER_LOOK = 64 /* testing whether PEs are alive costs a system call */
};

struct lock_halves {
    uint32_t tail;
    uint32_t place;
};

_Static_assert(sizeof(long) == 8 && sizeof(struct lock_halves) == 8, "a long holds both halves");

static gshmem_status_t find_home(long *lock, const char *call, int *home)
{
    struct context *c = context_find(GSHMEM_CTX_DEFAULT, call);
    struct location l;

    if (!c)
        return last_error_status();
    if ((uintptr_t)lock % sizeof(long))
        return fail(GSHMEM_ERR_ARGUMENT, "%s: lock %p is not aligned to 8 bytes", call,
                    (void *)lock);
    if (!map_find(job->map, lock, sizeof *lock, &l) || l.reserved)
        return context_refuse(&l, lock, sizeof *lock, job->pe, call);
    *home = (int)(l.offset / 64 % (uint64_t)job->n_pes);
    return GSHMEM_UNLIKELY(job->checked != NULL)
               ? context_check(&l, lock, sizeof *lock, call, true)
               : GSHMEM_OK;
}

/* On memory that is mapped here. acq_rel, like atomics that other PEs apply for this one. */
static inline uint32_t update_here(enum gshmem_amo op, uint32_t *at, uint32_t operand,
                                   uint32_t compare)
{
    switch (op) {
    case GSHMEM_AMO_FETCH:
        return __atomic_load_n(at, __ATOMIC_ACQUIRE);
    case GSHMEM_AMO_AND:
        return __atomic_fetch_and(at, operand, __ATOMIC_ACQ_REL);
    case GSHMEM_AMO_OR:
        return __atomic_fetch_or(at, operand, __ATOMIC_ACQ_REL);
    case GSHMEM_AMO_SWAP:
        return __atomic_exchange_n(at, operand, __ATOMIC_ACQ_REL);
    case GSHMEM_AMO_COMPARE_SWAP:
        __atomic_compare_exchange_n(at, &compare, operand, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE);
        return compare; /* the old value, whether it succeeded or not */
    default:
        return (uint32_t)atomic_apply(op, GSHMEM_TYPE_UINT32, at, operand, compare);
    }
}

/* *old: the old value, or NULL. Only a status distinguishes a failure from a value. */
static inline gshmem_status_t lock_update(enum gshmem_amo op, uint32_t *word, uint32_t operand,
                                          uint32_t compare, uint32_t *old, int pe)
{
    uint32_t *there = gshmem_ctx_reach(GSHMEM_CTX_DEFAULT, word, sizeof *word, pe);
    gshmem_status_t status = GSHMEM_OK;
    uint64_t was = 0;

    if (GSHMEM_LIKELY(there))
        was = update_here(op, there, operand, compare);
    else
        status = gshmem_path_atomic(GSHMEM_CTX_DEFAULT, op, GSHMEM_TYPE_UINT32, word, operand,
                                    compare, old ? &was : NULL, pe);
    if (!status && old)
        *old = (uint32_t)was;
    return status;
}

/* This PE's own place, which may be in GPU memory. acquire: pairs with the fence in
 * gshmem_clear_lock and the update in lock_let_go */
static inline gshmem_status_t load_place(struct lock_halves *l, uint32_t *place)
{
    if (GSHMEM_UNLIKELY(job->device_heap))
        return lock_update(GSHMEM_AMO_FETCH, &l->place, 0, 0, place, job->pe);
    *place = __atomic_load_n(&l->place, __ATOMIC_ACQUIRE);
    return GSHMEM_OK;
}

static gshmem_status_t store_place(struct lock_halves *l, uint32_t place)
{
    return gshmem_uint32_atomic_set(&l->place, place, job->pe);
}

static gshmem_status_t fail_lost(const char *call)
{
    return fail(GSHMEM_ERR_PEER_DEAD,
                "%s: the lock is lost: a PE that held it, or waited for it before this "
                "one, has died or has left the job",
                call);
}

/* ---- The queue of PEs ---- */

/* Marks this PE's place as lost and notifies the next PE; false: it was handed the lock at the same
 * time. */
static bool lock_give_up(struct lock_halves *l)
{
    uint32_t place = WAITING;

    /* One atomic update decides against a PE that hands over and a PE that writes itself as
     * next. */
    if (lock_update(GSHMEM_AMO_OR, &l->place, LOST, 0, &place, job->pe) == GSHMEM_OK &&
        !(place & WAITING)) {
        lock_update(GSHMEM_AMO_AND, &l->place, ~LOST, 0, NULL, job->pe);
        return false;
    }
    if (place & NEXT) /* if this fails there is no PE to notify */
        lock_update(GSHMEM_AMO_OR, &l->place, LOST, 0, NULL, (int)(place & NEXT) - 1);
    return true;
}

static void show_lock(const struct wait *w, struct where_wait *record)
{
    record->kind = WHERE_LOCK;
    wait_show_object(record, w->object, sizeof(struct lock_halves));
    wait_show_peer(record, w->only);
}

/* Waits until the PE before this one hands over. */
static gshmem_status_t lock_wait_for(struct lock_halves *l, int before)
{
    gshmem_status_t status = GSHMEM_OK, loaded;
    uint32_t place = WAITING;
    struct wait w;

    wait_begin(&w, "gshmem_set_lock", GSHMEM_TEAM_WORLD);
    w.only = before;
    wait_for_object(&w, show_lock, l);
    while (!(loaded = load_place(l, &place)) && place & WAITING && !(place & LOST) && !status)
        status = wait_step(&w);
    wait_end(&w);
    status = loaded ? loaded : status;
    if (!(place & WAITING) || !lock_give_up(l))
        return GSHMEM_OK;
    return status ? departures_fail_found("gshmem_set_lock", status, before)
                  : fail_lost("gshmem_set_lock");
}

/* Takes the lock that the PE before this one has left for the next one. *taken is false if that PE
 * has taken it again meanwhile; it will then hand it over. */
static gshmem_status_t take_what_was_left(struct lock_halves *l, int before, bool *taken)
{
    const uint32_t left = LEFT | ((uint32_t)job->pe + 1);
    uint32_t place = 0;
    gshmem_status_t status =
        lock_update(GSHMEM_AMO_COMPARE_SWAP, &l->place, 0, left, &place, before);

    *taken = !status && place == left;
    if (*taken)
        status = lock_update(GSHMEM_AMO_AND, &l->place, ~WAITING, 0, NULL, job->pe);
    return status;
}

/* Waits in the queue behind `before`, which was at the tail. */
static gshmem_status_t queue_up(struct lock_halves *l, int before)
{
    bool taken = false;
    uint32_t place;
    gshmem_status_t status =
        lock_update(GSHMEM_AMO_OR, &l->place, (uint32_t)job->pe + 1, 0, &place, before);

    if (status)
        return lock_give_up(l) ? status : GSHMEM_OK;
    if (place & LOST)
        return lock_give_up(l) ? fail_lost("gshmem_set_lock") : GSHMEM_OK;
    if (place & LEFT && (status = take_what_was_left(l, before, &taken)))
        return lock_give_up(l) ? status : GSHMEM_OK;
    return taken ? GSHMEM_OK : lock_wait_for(l, before);
}

/* This PE had left the lock for the next PE, and wants it itself. *place: its own place as it is
 * afterwards. */
static gshmem_status_t take_again(struct lock_halves *l, uint32_t *place)
{
    gshmem_status_t status = GSHMEM_OK;
    uint32_t was = *place;

    while (!status && (*place = was) & LEFT) {
        status = lock_update(GSHMEM_AMO_COMPARE_SWAP, &l->place, was ^ (LEFT | HELD), *place, &was,
                             job->pe);
        if (!status && was == *place) {
            /* pairs with the fence in gshmem_clear_lock */
            atomic_thread_fence(memory_order_acquire);
            *place ^= LEFT | HELD;
            break;
        }
    }
    return status;
}

static gshmem_status_t lock_enter(struct lock_halves *l, int home)
{
    uint32_t place, last = 0;
    gshmem_status_t status = load_place(l, &place);

    if (status)
        return status;
    if (place & LEFT && ((status = take_again(l, &place)) || place & HELD))
        return status;
    if (place & HELD)
        return lock_fail_held("gshmem_set_lock");
    if (place & LOST)
        return fail_lost("gshmem_set_lock");
    if ((status = store_place(l, WAITING)))
        return status;
    atomic_thread_fence(memory_order_release); /* before the tail leads other PEs to this place */
    if ((status = lock_update(GSHMEM_AMO_SWAP, &l->tail, (uint32_t)job->pe + 1, 0, &last, home))) {
        const gshmem_status_t stored = store_place(l, 0);
        return stored ? stored : status;
    }
    if (last && (status = queue_up(l, (int)last - 1)))
        return status;
    /* One atomic update, since another PE may write itself as next meanwhile. The PE that handed
     * over has cleared `waiting`. */
    status = lock_update(GSHMEM_AMO_XOR, &l->place, last ? HELD : HELD | WAITING, 0, NULL, job->pe);
    atomic_thread_fence(memory_order_acquire); /* pairs with the fence in gshmem_clear_lock, and the
                                                  update in lock_let_go */
    return status;
}

gshmem_status_t gshmem_set_lock(long *lock)
{
    gshmem_status_t status;
    int home = 0;
    bool busy;

    if ((status = find_home(lock, "gshmem_set_lock", &home)) ||
        (status = lock_take_turn(lock, true, &busy)))
        return status;
    if ((status = lock_enter((struct lock_halves *)lock, home)))
        lock_end_turn(lock, NULL);
    else if (GSHMEM_UNLIKELY(job->races != NULL))
        races_see(lock, sizeof *lock, job->pe);
    return status;
}

/* For a thread that tests again and again: checks sometimes whether the lock can still become
 * free. */
static gshmem_status_t look_after(struct lock_halves *l, int home, int last)
{
    gshmem_status_t status;
    uint32_t place = 0, tail = 0;
    struct wait w;

    if (++this_thread.lock_tests % TESTS_PER_LOOK)
        return GSHMEM_OK;
    wait_begin(&w, "gshmem_test_lock", GSHMEM_TEAM_WORLD);
    w.only = last;
    if ((status = wait_look(&w)) == GSHMEM_ERR_PEER_DEAD) {
        /* That PE may have released the lock before it left. */
        if (!lock_update(GSHMEM_AMO_FETCH, &l->tail, 0, 0, &tail, home) &&
            tail != (uint32_t)last + 1)
            return GSHMEM_OK;
        return departures_fail_found("gshmem_test_lock", status, last);
    }
    if (status || (status = lock_update(GSHMEM_AMO_FETCH, &l->place, 0, 0, &place, last)))
        return status;
    return place & LOST ? fail_lost("gshmem_test_lock") : GSHMEM_OK;
}

/* *taken: whether this PE now has it. */
static gshmem_status_t try_to_enter(struct lock_halves *l, int home, bool *taken)
{
    uint32_t place, last = 0;
    gshmem_status_t status = load_place(l, &place);

    *taken = false;
    if (status)
        return status;
    if (place & LOST)
        return fail_lost("gshmem_test_lock");
    if (place & LEFT) {
        status = take_again(l, &place);
        *taken = !status && place & HELD;
        if (status || *taken)
            return status;
    }
    if (place)
        return GSHMEM_OK;
    /* A read first: a write would take the cache line from the PEs that use it. */
    if ((status = lock_update(GSHMEM_AMO_FETCH, &l->tail, 0, 0, &last, home)) || last)
        return status ? status : look_after(l, home, (int)last - 1);
    if ((status = store_place(l, HELD)))
        return status;
    atomic_thread_fence(memory_order_release); /* before the tail leads other PEs to this place */
    status = lock_update(GSHMEM_AMO_COMPARE_SWAP, &l->tail, (uint32_t)job->pe + 1, 0, &last, home);
    *taken = !status && !last;
    const gshmem_status_t stored = *taken ? GSHMEM_OK : store_place(l, 0);
    atomic_thread_fence(memory_order_acquire); /* pairs with the fence in gshmem_clear_lock */
    return status ? status : stored;
}

int gshmem_test_lock(long *lock)
{
    bool busy = false, taken = false;
    gshmem_status_t status;
    int home = 0;

    if ((status = find_home(lock, "gshmem_test_lock", &home)) ||
        (status = lock_take_turn(lock, false, &busy)))
        return -1;
    if (busy)
        return 1;
    status = try_to_enter((struct lock_halves *)lock, home, &taken);
    if (!taken)
        lock_end_turn(lock, NULL);
    else if (GSHMEM_UNLIKELY(job->races != NULL))
        races_see(lock, sizeof *lock, job->pe);
    return status ? -1 : !taken;
}

/* *next: the next PE in the queue + 1. 0: either there is none, and *is_free is true, or it has not
 * written its number. */
static gshmem_status_t leave_queue(struct lock_halves *l, int home, uint32_t *next, bool *is_free)
{
    const uint32_t me = (uint32_t)job->pe + 1;
    uint32_t place = 0, last = 0;
    gshmem_status_t status = load_place(l, &place);
    struct wait w;

    if (status || (*next = place & NEXT))
        return status;
    if ((status = lock_update(GSHMEM_AMO_COMPARE_SWAP, &l->tail, 0, me, &last, home)))
        return status;
    if ((*is_free = last == me))
        return GSHMEM_OK;
    /* A PE is at the tail already and about to write its number. */
    wait_begin(&w, "gshmem_clear_lock", WAIT_FOR_NETWORK);
    while (!status && !(status = load_place(l, &place)) && !(place & NEXT) &&
           (!w.since || clock_ns() - w.since < LINK_NS))
        status = wait_step(&w);
    wait_end(&w);
    return (*next = place & NEXT) ? GSHMEM_OK : status;
}

/* *next: as in leave_queue. True: there is none yet, and the lock is left to the PE that comes
 * next. */
static bool leave_behind(struct lock_halves *l, uint32_t *next)
{
    uint32_t place = 0;

    /* One atomic update decides against the PE that writes itself as next. */
    lock_update(GSHMEM_AMO_XOR, &l->place, HELD | LEFT, 0, &place, job->pe);
    *next = place & NEXT;
    return !*next;
}

static gshmem_status_t lock_let_go(struct lock_halves *l, int home)
{
    bool is_free = false;
    uint32_t next = 0;
    gshmem_status_t status = leave_queue(l, home, &next, &is_free);

    if (!next && !is_free && leave_behind(l, &next))
        return status;
    /* This PE's place first: once the next PE has the lock, threads of this one may enter again. */
    if ((status = store_place(l, 0)))
        return status;
    return next ? lock_update(GSHMEM_AMO_AND, &l->place, ~WAITING, 0, NULL, (int)next - 1)
                : GSHMEM_OK;
}

gshmem_status_t gshmem_clear_lock(long *lock)
{
    struct lock_halves *l = (struct lock_halves *)lock;
    uint32_t place;
    int home = 0;
    gshmem_status_t status = find_home(lock, "gshmem_clear_lock", &home);

    if (status || (status = load_place(l, &place)))
        return status;
    if (!(place & HELD))
        return fail(GSHMEM_ERR_STATE, "gshmem_clear_lock: this PE does not hold the lock");
    /* A failed operation is reported and does not keep other PEs from the lock. seq_cst fence:
     * pairs with the acquire of the next holder, in lock_enter or try_to_enter */
    gshmem_status_t completed = gshmem_quiet();
    status = lock_let_go(l, home);
    lock_end_turn(lock, NULL);
    return completed ? completed : status;
}
