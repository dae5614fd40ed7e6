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
#include "gshmem/host_device/ptx/module.h"

/* At the beginning of a block's memory; zero at first. */
struct barrier_state {
    u32 arrived, yes; /* of this generation */
    u32 generation;
    u32 result_arrived, result_yes; /* of the one before */
};

struct block_state {
    struct barrier_state barrier[PTX_BARRIERS + 1];
    u8 arrived_in
        /* of each thread: the generation of the cluster barrier, its low bits */
        [BLOCK_THREADS_MAX];
};
_Static_assert(sizeof(struct block_state) <= PTX_BLOCK_STATE, "a block's state has room");

static struct block_state *state_of(const struct block *b)
{
    return b->dynamic_shared;
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

static void barrier_state_complete(struct barrier_state *barrier)
{
    barrier->result_arrived = barrier->arrived;
    barrier->result_yes = barrier->yes;
    barrier->arrived = barrier->yes = 0;
    barrier->generation++;
}

/* Threads that have ended do not count, where all of the block are due. */
static bool barrier_state_is_full(const struct barrier_state *barrier, u32 threads)
{
    return barrier->arrived >= (threads ? threads : thread_self()->block->live);
}

static struct barrier_state *barrier_arrive_at(u32 number, int predicate, const char *file,
                                               int line)
{
    struct block_state *state = state_of(thread_self()->block);

    if (number > PTX_BARRIERS)
        gshmem_host_trap("a barrier whose number is above 15", file, line);
    state->barrier[number].arrived++;
    state->barrier[number].yes += predicate != 0;
    order_release(&state->barrier[number]);
    return &state->barrier[number];
}

u32 gshmem_host_ptx_barrier(u32 number, u32 threads, int kind, int predicate, const char *file,
                            int line)
{
    const struct block *b = thread_self()->block;

    if (number == 0 && (!threads || threads == b->size))
        return (u32)gshmem_host_barrier_block(kind, predicate, file, line);
    struct barrier_state *barrier = barrier_arrive_at(number, predicate, file, line);
    const u32 generation = barrier->generation;
    while (barrier->generation == generation) {
        if (barrier_state_is_full(barrier, threads))
            barrier_state_complete(barrier);
        else
            gshmem_host_yield();
    }
    gshmem_host_progress();
    order_acquire(barrier);
    switch (kind) {
    case GSHMEM_HOST_BARRIER_COUNT:
        return barrier->result_yes;
    case GSHMEM_HOST_BARRIER_AND:
        return barrier->result_yes == barrier->result_arrived;
    default:
        return barrier->result_yes > 0;
    }
}

void gshmem_host_ptx_arrive(u32 number, u32 threads, const char *file, int line)
{
    struct barrier_state *barrier = barrier_arrive_at(number, 0, file, line);

    if (number == PTX_CLUSTER_BARRIER)
        state_of(thread_self()->block)->arrived_in[gshmem_host_thread_rank()] =
            (u8)barrier->generation;
    if (barrier_state_is_full(barrier, threads))
        barrier_state_complete(barrier);
}

void gshmem_host_ptx_wait(u32 number, const char *file, int line)
{
    struct block_state *state = state_of(thread_self()->block);
    struct barrier_state *barrier = &state->barrier[number];
    const u8 generation = state->arrived_in[gshmem_host_thread_rank()];

    (void)file, (void)line;
    while ((u8)barrier->generation == generation) {
        if (barrier_state_is_full(barrier, 0))
            barrier_state_complete(barrier);
        else
            gshmem_host_yield();
    }
    gshmem_host_progress();
    order_acquire(barrier);
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
