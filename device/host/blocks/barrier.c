/* What all threads of a block do together, and all blocks of a cooperative launch.
 *
 * Threads that have ended do not count, as on a GPU. The one that arrives last goes straight on and
 * readies the others. */
#define _GNU_SOURCE
#include "device/host/blocks/barrier.h"

#include <string.h>

#include "device/host/blocks/pool.h"
#include "device/host/blocks/report.h"
#include "device/host/blocks/threads.h"
#include "device/host/fibers/sanitizer.h"

/* waiting: how many there are beside the caller. */
__attribute__((noinline)) static void barrier_complete(struct block *b, unsigned waiting)
{
    if (waiting)
        threads_ready(b->waiting, b->waiting_last, waiting);
    b->waiting = NULL;
    b->result_arrived = b->arrived;
    b->result_count = b->count;
    b->arrived = b->count = 0;
    b->worker = NULL;
    b->once = false;
    b->generation++;
}

/* Whether the others of this generation wait at this very place. */
static inline bool same_place(struct block *b, const char *file, int line)
{
    if (!b->arrived) {
        b->file = file;
        b->line = line;
    }
    return line == b->line && file == b->file;
}

/* CUDA wants all threads to come to the same barrier; a GPU mostly lets them pass at any. */
static void compare_place(struct block *b, const char *file, int line)
{
    bool same = line == b->line && strcmp(file, b->file) == 0;

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

static inline void wait_there(struct thread *self, const char *file, int line)
{
    struct block *b = self->block;

    self->next = NULL;
    *(b->waiting ? &b->waiting_last->next : &b->waiting) = self;
    b->waiting_last = self;
    thread_park(self, THREAD_AT_BARRIER, file, line);
}

/* Comes to the barrier and waits there, unless it is the last to arrive: then true. */
static bool barrier_arrive(struct thread *self, const char *file, int line)
{
    struct block *b = self->block;

    if (!same_place(b, file, line))
        compare_place(b, file, line);
    if (++b->arrived == b->live)
        return true;
    wait_there(self, file, line);
    return false;
}

/* Nobody arrives at the barrier after next before everybody has left this one: two are enough. */
static char *clock_of(struct block *b)
{
    return &b->clock[b->generation % 2];
}

__attribute__((noinline)) static void meet_traced(struct thread *self, const char *file, int line)
{
    char *clock = clock_of(self->block);

    order_release(clock);
    if (barrier_arrive(self, file, line))
        barrier_complete(self->block, self->block->arrived - 1);
    order_acquire(clock);
    order_acquire(&fence_clock);
}

/* As short as it can be, and what it would have to keep while it waits it asks for again: it is run
 * by each thread of a block, on a stack of its own. */
int gshmem_host_barrier_block(enum gshmem_host_barrier kind, int predicate, const char *file,
                              int line)
{
    struct thread *self = thread_self();

    if (!self)
        return 0;
    struct block *b = self->block;

    b->count += predicate != 0;
    if (!same_place(b, file, line) || under_tsan())
        meet_traced(self, file, line);
    else if (++b->arrived == b->live)
        barrier_complete(b, b->arrived - 1);
    else
        wait_there(self, file, line);
    return kind == GSHMEM_HOST_BARRIER ? 0 : result(worker_here->self->block, kind);
}

/* The last to arrive does the work; or the one chosen when another has ended instead of coming. */
int gshmem_host_once_block(int (*work)(void *), void *argument, const char *file, int line)
{
    struct thread *self = thread_self();

    if (!self)
        return work(argument);
    struct block *b = self->block;
    char *clock = clock_of(b);

    order_release(clock);
    b->once = true;
    bool last = barrier_arrive(self, file, line);
    order_acquire(clock);
    order_acquire(&fence_clock);
    if (last || b->worker == self) {
        b->result_once = work(argument);
        order_release(clock);
        barrier_complete(b, b->arrived - 1);
    }
    return b->result_once;
}

void barrier_thread_ended(struct block *b)
{
    if (!b->arrived || b->arrived != b->live)
        return;
    if (!b->once) {
        barrier_complete(b, b->arrived);
        return;
    }
    b->worker = b->waiting;
    b->waiting = b->waiting->next;
    thread_ready(b->worker);
}

/* One thread of each block waits for those of the others. */
static void meet_other_blocks(struct thread *self, const char *file, int line)
{
    struct grid *g = self->block->grid;
    /* relaxed: it cannot change before this block arrives, and the arrival is the release */
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
        if (!self->waits)
            gshmem_host_wait_begins(NULL);
    }
    gshmem_host_progress();
    order_acquire(&g->sync_generation);
}

void gshmem_host_barrier_grid(const char *file, int line)
{
    struct thread *self = thread_self();

    if (!self)
        return;
    if (!self->block->grid->cooperative)
        gshmem_host_trap("a barrier of the grid in a launch that is not cooperative", file, line);
    gshmem_host_barrier_block(GSHMEM_HOST_BARRIER, 0, file, line);
    if (self == self->block->threads)
        meet_other_blocks(self, file, line);
    gshmem_host_barrier_block(GSHMEM_HOST_BARRIER, 0, file, line);
}
