/* Distributed locks: a queue of PEs, each waiting on its own copy of the lock.
 *
 * A lock is a symmetric long of 64 bits. The copy on its home PE (chosen by its address, so that
 * locks spread over the job) has the queue's tail in its low half; the high half of every PE's copy
 * is that PE's place in the queue:
 *
 *     high: waiting | held | next PE + 1        low, on the home PE: last PE + 1, 0: free
 *
 * To enter, a PE puts itself at the tail and, if somebody was there, tells it who is next and waits
 * for its own `waiting` to go: one exchange and one update of another PE's memory, and no polling of
 * it. PEs get the lock in the order in which they reached the tail. */
#include <stdatomic.h>

#include "gshmem.h"
#include "runtime/context.h"
#include "runtime/wait.h"

#define NEXT    0x3fffffffu
#define HELD    0x40000000u
#define WAITING 0x80000000u

struct lock_halves {
    uint32_t tail;
    uint32_t place;
};

_Static_assert(sizeof(long) == 8 && sizeof(struct lock_halves) == 8, "a long holds both halves");

static gshmem_status_t check_lock(long *lock, const char *call, int *home)
{
    struct context *c = context_find(GSHMEM_CTX_DEFAULT, call);
    struct target mine;
    gshmem_status_t status;

    if (!c)
        return last_error_status();
    if ((uintptr_t)lock % sizeof(long))
        return fail(GSHMEM_ERR_ARGUMENT, "%s: lock %p is not aligned to 8 bytes", call,
                    (void *)lock);
    if ((status = context_aim(c, lock, sizeof *lock, job->pe, call, &mine)))
        return status;
    /* The place within its segment is the same on all PEs, unlike its address. */
    const struct gshmem_ctx *view = gshmem_ctx_default;
    uintptr_t offset = (uintptr_t)lock - view->heap.base;
    if (offset >= view->heap.bytes)
        offset = (uintptr_t)lock - view->data.base;
    if (mine.device || mine.by_nic)
        offset = mine.offset;
    *home = (int)(offset / 64 % (uintptr_t)job->n_pes);
    return GSHMEM_OK;
}

/* This PE's own place, which may be in GPU memory. acquire: pairs with the fence and update in
 * gshmem_clear_lock */
static uint32_t load_place(struct lock_halves *l)
{
    if (GSHMEM_LIKELY(!job->device_heap))
        return __atomic_load_n(&l->place, __ATOMIC_ACQUIRE);
    return gshmem_uint32_atomic_fetch(&l->place, job->pe);
}

static void store_place(struct lock_halves *l, uint32_t place)
{
    gshmem_uint32_atomic_set(&l->place, place, job->pe);
}

/* Whoever calls while this PE has the lock, or is in the queue, would wait for itself. */
static gshmem_status_t check_free(uint32_t place, const char *call)
{
    if (place & (HELD | WAITING))
        return fail(GSHMEM_ERR_STATE, "%s: this PE %s the lock already", call,
                    place & HELD ? "holds" : "waits for");
    return GSHMEM_OK;
}

static gshmem_status_t wait_turn(struct lock_halves *l)
{
    gshmem_status_t status = GSHMEM_OK;
    struct wait w;

    wait_begin(&w, "gshmem_set_lock", GSHMEM_TEAM_WORLD);
    while (!status && load_place(l) & WAITING)
        status = wait_step(&w);
    return status;
}

gshmem_status_t gshmem_set_lock(long *lock)
{
    struct lock_halves *l = (struct lock_halves *)lock;
    int home = 0;
    gshmem_status_t status = check_lock(lock, "gshmem_set_lock", &home);

    if (status || (status = check_free(load_place(l), "gshmem_set_lock")))
        return status;
    store_place(l, WAITING);
    atomic_thread_fence(memory_order_release); /* before the tail leads others here */
    uint32_t last = gshmem_uint32_atomic_swap(&l->tail, (uint32_t)job->pe + 1, home);
    if (last) {
        gshmem_uint32_atomic_or(&l->place, (uint32_t)job->pe + 1, (int)last - 1);
        status = wait_turn(l);
    }
    if (!status)
        gshmem_uint32_atomic_and(&l->place, ~WAITING, job->pe);
    gshmem_uint32_atomic_or(&l->place, status ? 0 : HELD, job->pe);
    atomic_thread_fence(memory_order_acquire); /* pairs with the fence and update in gshmem_clear_lock */
    return status;
}

int gshmem_test_lock(long *lock)
{
    struct lock_halves *l = (struct lock_halves *)lock;
    int home = 0;

    if (check_lock(lock, "gshmem_test_lock", &home) ||
        check_free(load_place(l), "gshmem_test_lock"))
        return -1;
    if (gshmem_uint32_atomic_fetch(&l->tail, home) != 0)
        return 1; /* without a write that would take the line from whoever works with it */
    store_place(l, HELD);
    atomic_thread_fence(memory_order_release); /* before the tail leads others here */
    if (gshmem_uint32_atomic_compare_swap(&l->tail, 0, (uint32_t)job->pe + 1, home) != 0) {
        store_place(l, 0);
        return 1;
    }
    atomic_thread_fence(memory_order_acquire); /* pairs with the fence in gshmem_clear_lock */
    return 0;
}

/* The next PE in the queue + 1, or 0 if there is none and the lock is free now. */
static gshmem_status_t leave_queue(struct lock_halves *l, int home, uint32_t *next)
{
    const uint32_t me = (uint32_t)job->pe + 1;
    gshmem_status_t status = GSHMEM_OK;
    struct wait w;

    *next = load_place(l) & NEXT;
    if (!*next && gshmem_uint32_atomic_compare_swap(&l->tail, me, 0, home) == me)
        return GSHMEM_OK;
    /* Somebody is at the tail already and about to say who. */
    wait_begin(&w, "gshmem_clear_lock", GSHMEM_TEAM_WORLD);
    while (!status && !*next) {
        *next = load_place(l) & NEXT;
        if (!*next)
            status = wait_step(&w);
    }
    return status;
}

gshmem_status_t gshmem_clear_lock(long *lock)
{
    struct lock_halves *l = (struct lock_halves *)lock;
    uint32_t next;
    int home = 0;
    gshmem_status_t status = check_lock(lock, "gshmem_clear_lock", &home);

    if (status)
        return status;
    if (!(load_place(l) & HELD))
        return fail(GSHMEM_ERR_STATE, "gshmem_clear_lock: this PE does not hold the lock");
    /* seq_cst fence: pairs with the acquire of the next holder, in wait_turn or test_lock */
    if ((status = gshmem_quiet()) || (status = leave_queue(l, home, &next)))
        return status;
    /* Mine first: once the next one has it, this PE may be asked for again. */
    store_place(l, 0);
    if (next)
        gshmem_uint32_atomic_and(&l->place, ~WAITING, (int)next - 1);
    return GSHMEM_OK;
}
