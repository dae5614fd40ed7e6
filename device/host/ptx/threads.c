/* What the code of a kernel made from PTX asks about its block: barriers with numbers, shared
 * memory, its end. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "device/host/blocks/barrier.h"
#include "device/host/blocks/block.h"
#include "device/host/blocks/pool.h"
#include "device/host/blocks/threads.h"
#include "device/host/fibers/sanitizer.h"
#include "device/host/ptx/weak.h"
#include "gshmem/host_device/ptx/module.h"

/* A warp has come to a barrier when all of its lanes that have not ended are there; it counts as 32
 * threads then. */
struct barrier_state {
    u32 lanes[BLOCK_WARPS_MAX]; /* of each warp: those that are there, while others are missing */
    u32 arrived;                /* 32 for each time that a warp has come */
    u32 warps, waiting;         /* those that have come; of them, those that wait */
    u32 threads, yes;           /* lanes that wait, and those of them whose predicate is true */
};

/* At the beginning of a block's memory; zero at first. */
struct block_state {
    struct barrier_state barrier[PTX_BARRIERS];
    u32 at_cluster_barrier[BLOCK_WARPS_MAX]; /* lanes that have arrived in this generation */
    struct gshmem_host_ptx_weak_block *weak; /* with weak memory: what the block holds back */
};
_Static_assert(sizeof(struct block_state) <= PTX_BLOCK_STATE, "a block's state has room");

static struct block_state *state_of(const struct block *b)
{
    return b->dynamic_shared;
}

struct gshmem_host_ptx_weak_block **ptx_weak_block_at(void *state)
{
    return &((struct block_state *)state)->weak;
}

/* --- Shared memory --- */

u32 gshmem_host_ptx_dynamic(void)
{
    return (u32)thread_self()->block->grid->static_shared;
}

u32 gshmem_host_ptx_shared_bytes(int dynamic)
{
    const struct grid *g = thread_self()->block->grid;

    return (u32)(g->dynamic_shared - g->state_bytes - (dynamic ? g->static_shared : 0));
}

int gshmem_host_ptx_space(u64 address)
{
    const struct thread *self = thread_self();
    const u64 shared = (u64)(uintptr_t)self->block->dynamic_shared + PTX_BLOCK_STATE;
    const u64 stack = (u64)(uintptr_t)self->stack->low;

    if (address - shared < self->block->shared_bytes)
        return 2;
    return address - stack < self->stack->size;
}

u64 gshmem_host_ptx_stack(void)
{
    return (u64)(uintptr_t)thread_self()->stack->low;
}

/* --- Waits and ranges --- */

void gshmem_host_ptx_polls(u64 address)
{
    struct thread *self = thread_self();

    if (self)
        events_polls(self, address);
    gshmem_host_yield();
}

void gshmem_host_ptx_range_begins(u8 *name)
{
    const char *text;

    memcpy(&text, name, sizeof text);
    gshmem_host_range_begins(text);
}

void gshmem_host_ptx_range_ends(void)
{
    gshmem_host_range_ends();
}

/* --- Who and where --- */

u32 gshmem_host_ptx_worker(void)
{
    return worker_here->number;
}

u32 gshmem_host_ptx_workers(void)
{
    return pool.capacity.workers;
}

u64 gshmem_host_ptx_grid(void)
{
    return (u64)(uintptr_t)thread_self()->block->grid;
}

/* As a thread that has returned from its kernel. */
void gshmem_host_ptx_exit(void)
{
    struct thread *self = thread_self();
    struct worker *w = worker_here;
    struct block *b = self->block;
    struct stack *stack = self->stack;

    order_release(&b->ended);
    thread_gone(w, self);
    warp_thread_ended(self);
    barrier_thread_ended(b);
    block_settle(w, b);
    stack_give(&w->stacks, stack);
    context_leave(stack, thread_successor(w));
}

/* --- Barriers with numbers --- */

#define FOR_BITS(bit, set)                                                                         \
    for (u32 rest_ = (set), bit; rest_ && (bit = (u32)__builtin_ctz(rest_), true);                 \
         rest_ &= rest_ - 1)

/* Warps whose threads have not all ended. */
static u32 warps_alive(const struct block *b)
{
    u32 alive = 0;

    for (u32 i = 0; i * WARP_SIZE < b->size; i++)
        alive |= (u32)(b->warps[i].live != 0) << i;
    return alive;
}

static u32 warp_number(const struct thread *self)
{
    return (u32)(self->warp - self->block->warps);
}

static void warp_answer(struct warp *warp, u64 result)
{
    FOR_BITS(lane, warp->live)
    warp->threads[lane].result = result;
}

/* Opens the barrier if all have come who are due: so many threads, or those that have not ended. */
static void barrier_try(const struct block *b, struct barrier_state *barrier, u32 threads)
{
    if (threads ? barrier->arrived < threads : (warps_alive(b) & ~barrier->warps) != 0)
        return;
    FOR_BITS(i, barrier->waiting)
    warp_answer(&b->warps[i], (u64)barrier->yes << 32 | barrier->threads);
    barrier->arrived = barrier->warps = barrier->waiting = barrier->threads = barrier->yes = 0;
}

/* The warp of `self` has come. */
static void barrier_count_warp(const struct thread *self, struct barrier_state *barrier, bool waits)
{
    const struct warp *warp = self->warp;
    const u32 number = warp_number(self);

    barrier->lanes[number] = 0;
    barrier->arrived += WARP_SIZE;
    barrier->warps |= 1u << number;
    if (!waits)
        return;
    barrier->waiting |= 1u << number;
    FOR_BITS(lane, warp->live)
    {
        barrier->threads++;
        barrier->yes += warp->threads[lane].value != 0;
    }
}

/* Comes to a barrier, and returns when the caller's warp has come. waits: for the others. */
static struct barrier_state *barrier_enter(struct thread *self, u32 number, u32 threads, bool waits,
                                           const char *file, int line)
{
    if (number >= PTX_BARRIERS)
        gshmem_host_trap("a barrier whose number is above 15", file, line);
    if (threads % WARP_SIZE && threads != self->block->size)
        gshmem_host_trap("a barrier for a number of threads that is no multiple of 32", file, line);
    struct barrier_state *barrier = &state_of(self->block)->barrier[number];
    u32 *lanes = &barrier->lanes[warp_number(self)];

    order_release(barrier);
    *lanes |= 1u << self->lane;
    while (*lanes & 1u << self->lane) {
        if (self->warp->live & ~*lanes)
            gshmem_host_yield();
        else
            barrier_count_warp(self, barrier, waits);
    }
    return barrier;
}

/* As gshmem_host_ptx_barrier, also where other warps only arrive at barrier 0. */
u32 gshmem_host_ptx_barrier_counted(u32 number, u32 threads, int kind, int predicate,
                                    const char *file, int line)
{
    struct thread *self = thread_self();

    self->value = predicate != 0;
    struct barrier_state *barrier = barrier_enter(self, number, threads, true, file, line);
    const u32 own = 1u << warp_number(self);
    for (;;) {
        barrier_try(self->block, barrier, threads);
        if (!(barrier->waiting & own))
            break;
        gshmem_host_yield();
    }
    gshmem_host_progress();
    order_acquire(barrier);
    const u32 came = (u32)self->result, yes = (u32)(self->result >> 32);
    switch (kind) {
    case GSHMEM_HOST_BARRIER_COUNT:
        return yes;
    case GSHMEM_HOST_BARRIER_AND:
        return yes == came;
    default:
        return yes > 0;
    }
}

u32 gshmem_host_ptx_barrier(u32 number, u32 threads, int kind, int predicate, const char *file,
                            int line)
{
    if (number == 0 && (!threads || threads == thread_self()->block->size))
        return (u32)gshmem_host_barrier_block(kind, predicate, file, line);
    return gshmem_host_ptx_barrier_counted(number, threads, kind, predicate, file, line);
}

void gshmem_host_ptx_arrive(u32 number, u32 threads, const char *file, int line)
{
    struct thread *self = thread_self();

    barrier_try(self->block, barrier_enter(self, number, threads, false, file, line), threads);
}

/* --- The barrier of a cluster, which is one block --- */

void gshmem_host_ptx_cluster_arrive(void)
{
    struct thread *self = thread_self();
    struct block_state *state = state_of(self->block);

    order_release(state);
    state->at_cluster_barrier[warp_number(self)] |= 1u << self->lane;
}

/* Opens the barrier if all have arrived that have not ended. */
static void cluster_barrier_try(const struct block *b)
{
    u32 *arrived = state_of(b)->at_cluster_barrier;

    for (u32 i = 0; i * WARP_SIZE < b->size; i++) {
        if (b->warps[i].live & ~arrived[i])
            return;
    }
    memset(arrived, 0, BLOCK_WARPS_MAX * sizeof arrived[0]);
}

void gshmem_host_ptx_cluster_wait(void)
{
    const struct thread *self = thread_self();
    struct block_state *state = state_of(self->block);

    for (;;) {
        cluster_barrier_try(self->block);
        if (!(state->at_cluster_barrier[warp_number(self)] & 1u << self->lane))
            break;
        gshmem_host_yield();
    }
    gshmem_host_progress();
    order_acquire(state);
}

/* --- The grid --- */

/* Where the barrier of a cooperative launch lies, in two halves; cooperative groups find it so. 0:
 * the launch is not cooperative. */
u32 gshmem_host_ptx_grid_barrier(int half)
{
    struct grid *g = thread_self()->block->grid;
    const u64 at = g->cooperative ? (u64)(uintptr_t)&g->ptx_barrier : 0;

    return half == 1 ? (u32)(at >> 32) : (u32)at;
}
