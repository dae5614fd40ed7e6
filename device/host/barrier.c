/* What all threads of a block do together, and all blocks of a cooperative launch.
 *
 * Threads that have ended do not count, as on a GPU. The one that arrives last goes straight on and
 * readies the others. */
#define _GNU_SOURCE
#include "device/host/grid.h"

#include <string.h>

#include "device/host/sanitizer.h"

/* waiting: how many there are beside the caller. */
static void complete(struct block *b, unsigned waiting)
{
    if (waiting)
        threads_ready(b->waiting, b->waiting_last, waiting);
    b->waiting = NULL;
    b->result_arrived = b->arrived;
    b->result_count = b->count;
    b->arrived = b->count = 0;
    b->generation++;
}

/* CUDA wants all threads to come to the same barrier; a GPU mostly lets them pass at any. */
static void note_place(struct block *b, const char *file, int line)
{
    if (!b->arrived) {
        b->file = file;
        b->line = line;
        return;
    }
    bool same = line == b->line && (file == b->file || strcmp(file, b->file) == 0);
    if (!same && !atomic_exchange_explicit(&b->grid->warned, true, memory_order_relaxed))
        report_mismatch(b, file, line);
}

static int result(const struct block *b, enum gshmem_host_barrier kind)
{
    switch (kind) {
    case GSHMEM_HOST_BARRIER_COUNT:
        return (int)b->result_count;
    case GSHMEM_HOST_BARRIER_AND:
        return b->result_count == b->result_arrived;
    case GSHMEM_HOST_BARRIER_OR:
        return b->result_count > 0;
    case GSHMEM_HOST_BARRIER:
        break;
    }
    return 0;
}

int gshmem_host_barrier_block(enum gshmem_host_barrier kind, int predicate, const char *file,
                              int line)
{
    struct thread *self = thread_self();

    if (!self)
        return 0;
    struct block *b = self->block;
    /* Nobody arrives at the barrier after next before everybody has left this one: two are enough. */
    char *clock = &b->clock[b->generation % 2];

    order_release(clock);
    note_place(b, file, line);
    b->arrived++;
    b->count += predicate != 0;
    if (b->arrived == b->live) {
        complete(b, b->arrived - 1);
    } else {
        self->next = NULL;
        *(b->waiting ? &b->waiting_last->next : &b->waiting) = self;
        b->waiting_last = self;
        thread_park(self, THREAD_AT_BARRIER, file, line);
    }
    order_acquire(clock);
    order_acquire(&fence_clock);
    return result(b, kind);
}

void barrier_thread_ended(struct block *b)
{
    if (b->arrived && b->arrived == b->live)
        complete(b, b->arrived);
}

/* One thread of each block waits for those of the others. */
static void meet_other_blocks(struct thread *self, const char *file, int line)
{
    struct grid *g = self->block->grid;
    uint64_t generation = atomic_load_explicit(&g->sync_generation, memory_order_relaxed);

    order_release(&g->sync_generation);
    /* Release and acquire: the last to arrive passes on what all before it have done. */
    if (atomic_fetch_add_explicit(&g->sync_arrived, 1, memory_order_acq_rel) + 1 == g->blocks) {
        atomic_store_explicit(&g->sync_arrived, 0, memory_order_relaxed);
        /* Release: with the acquire below. */
        atomic_store_explicit(&g->sync_generation, generation + 1, memory_order_release);
    }
    for (;;) {
        /* Acquire: a block that has passed this barrier before it ended has changed generation. */
        uint64_t ended = atomic_load_explicit(&g->blocks_ended, memory_order_acquire);

        /* Acquire: with the release above. */
        if (atomic_load_explicit(&g->sync_generation, memory_order_acquire) != generation)
            break;
        if (ended && !atomic_load_explicit(&g->failed, memory_order_relaxed)) {
            report_grid_deadlock(self->block, file, line);
            grid_fail(g);
        }
        gshmem_host_yield();
    }
    gshmem_host_progress();
    order_acquire(&g->sync_generation);
}

void gshmem_host_barrier_grid(const char *file, int line)
{
    struct thread *self = thread_self();

    if (!self)
        return;
    gshmem_host_barrier_block(GSHMEM_HOST_BARRIER, 0, file, line);
    if (self == self->block->threads)
        meet_other_blocks(self, file, line);
    gshmem_host_barrier_block(GSHMEM_HOST_BARRIER, 0, file, line);
}
