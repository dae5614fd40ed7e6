/* A block's memory and its end. */
#define _GNU_SOURCE
#include "device/host/blocks/block.h"

#include <stdlib.h>
#include <string.h>

#include "device/host/blocks/events.h"
#include "device/host/blocks/pool.h"
#include "device/host/blocks/report.h"
#include "device/host/fibers/sanitizer.h"

enum { DYNAMIC_ALIGN = 128 };

static uint3 worker_place(uint64_t number, dim3 size)
{
    return (uint3){(unsigned)(number % size.x), (unsigned)(number / size.x % size.y),
                   (unsigned)(number / size.x / size.y)};
}

void block_free_spare(struct worker *w)
{
    while (w->spare) {
        struct block *b = w->spare;

        w->spare = b->next;
        free(b);
    }
}

static struct block *block_allocate(struct worker *w, unsigned size)
{
    struct block *b = w->spare;

    if (b && b->size == size) {
        w->spare = b->next;
        return b;
    }
    block_free_spare(w); /* of another size: launches mostly come in runs of one */
    unsigned warps = (size + WARP_SIZE - 1) / WARP_SIZE;
    size_t bytes = sizeof *b + size * sizeof b->threads[0] + warps * sizeof b->warps[0];
    void *memory;
    if (posix_memalign(&memory, CACHE_LINE, bytes) != 0)
        return NULL;
    b = memory;
    b->warps = (struct warp *)&b->threads[size];
    return b;
}

static bool block_make_dynamic_shared(struct block *b)
{
    size_t bytes = (b->grid->dynamic_shared + DYNAMIC_ALIGN - 1) / DYNAMIC_ALIGN * DYNAMIC_ALIGN;

    if (bytes && posix_memalign(&b->dynamic_shared, DYNAMIC_ALIGN, bytes) != 0)
        return false;
    if (b->grid->state_bytes)
        memset(b->dynamic_shared, 0, b->grid->state_bytes);
    b->shared_bytes = bytes - b->grid->state_bytes;
    order_release(&b->allocated);
    return true;
}

struct block *block_make(struct worker *w, struct grid *grid, uint64_t number)
{
    dim3 shape = grid->block_size;
    unsigned size = shape.x * shape.y * shape.z;
    struct block *b = block_allocate(w, size);

    if (!b)
        return NULL;
    *b = (struct block){.grid = grid,
                        .index = worker_place(number, grid->size),
                        .size = size,
                        .live = size,
                        .warps = b->warps};
    if (!block_make_dynamic_shared(b)) {
        free(b);
        return NULL;
    }
    for (unsigned i = 0; i < size; i++) {
        struct warp *warp = &b->warps[i / WARP_SIZE];

        if (i % WARP_SIZE == 0)
            *warp = (struct warp){.threads = &b->threads[i]};
        warp->live |= 1u << i % WARP_SIZE;
        b->threads[i] = (struct thread){.block = b,
                                        .warp = warp,
                                        .index = worker_place(i, shape),
                                        .lane = (uint8_t)(i % WARP_SIZE)};
    }
    events_block_begins(b);
    return b;
}

void (*block_state_end)(void *state); /* of the process, as kernels made from PTX are */

static void block_end(struct worker *w, struct block *b)
{
    struct grid *grid = b->grid;

    events_block_ends(b);
    /* Not by the thread that ended last, nor by the worker: who runs after them is not ordered. */
    void *own = stand_in_for(w->tsan_end);
    order_acquire(&b->allocated); /* of a block that has failed, perhaps no thread has run */
    order_acquire(&b->ended);
    order_release(&grid->ended);
    for (unsigned i = 0; i < b->shared_numbers; i++)
        free(b->shared[i]);
    free(b->shared);
    if (grid->state_bytes && block_state_end)
        block_state_end(b->dynamic_shared);
    free(b->dynamic_shared);
    stand_in_for(own);
    pool_make_room(w, 1, b->size);
    w->block = NULL;
    if (w->starting == b)
        w->starting = NULL;
    b->next = w->spare;
    w->spare = b;
    if (atomic_load_explicit(&pool.pending, memory_order_relaxed)) /* there is room now */
        atomic_store_explicit(&w->attention, true, memory_order_relaxed);
    /* Release: with the acquire of the grid's barrier. */
    atomic_fetch_add_explicit(&grid->blocks_ended, 1, memory_order_release);
    pool_blocks_ended(grid, 1);
}

/* Threads were lost: has the block ended, or have those that are left nobody to wait for? */
void block_settle(struct worker *w, struct block *b)
{
    if (b->live > b->parked)
        return;
    if (b->live && !block_failed(b)) {
        report_deadlock(b);
        grid_fail(b->grid);
    }
    for (unsigned i = 0; b->live && i < b->size; i++) {
        if (b->threads[i].stack) /* all that are left are parked */
            stack_give(&w->stacks, b->threads[i].stack);
    }
    block_end(w, b);
}

/* The worker goes on in nobody's name: what follows may run code of the program (a grid's closure
 * ends with its last thread), where a signal would have a thread yield that is no more. */
void thread_gone(struct worker *w, struct thread *t)
{
    if (t->waits)
        events_wait_was_over(t);
    w->self = NULL;
    t->stack = NULL;
    t->warp->live &= ~(1u << t->lane);
    t->block->live--;
}
