/* The grids that have blocks to give, and how much room the workers have for them. */
#define _GNU_SOURCE
#include "device/host/blocks/pool.h"

#include <sched.h>

#include "device/host/blocks/events.h"
#include "device/host/fibers/sanitizer.h"
#include "gshmem/host_device/cuda_runtime_api.h"
#include "runtime/base/clock.h"

enum { IDLE_SPIN_NS = 20000 }; /* a worker without work looks this long before it sleeps */

/* One for the process: CUDA calls name no object that it could hang from. */
struct pool pool = {
    .lock = PTHREAD_MUTEX_INITIALIZER, .work = PTHREAD_COND_INITIALIZER, .end = &pool.grids};

static unsigned pool_rest(unsigned most, atomic_uint *taken)
{
    const unsigned now = atomic_load_explicit(taken, memory_order_relaxed);

    return now < most ? most - now : 0; /* a cooperative launch may have taken more */
}

/* How many more blocks of the grid fit here. */
static unsigned pool_room(struct worker *w, const struct grid *grid)
{
    const struct capacity *c = &pool.capacity;
    unsigned by_blocks =
        pool_rest(grid->cooperative ? c->cooperative_blocks : c->blocks, &w->blocks);
    unsigned by_threads =
        pool_rest(grid->cooperative ? c->cooperative_threads : c->threads, &w->threads) /
        grid_threads(grid);

    return by_blocks < by_threads ? by_blocks : by_threads;
}

static void pool_take_room(struct worker *w, unsigned threads)
{
    atomic_fetch_add_explicit(&w->blocks, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&w->threads, threads, memory_order_relaxed);
}

void pool_make_room(struct worker *w, unsigned blocks, unsigned threads)
{
    atomic_fetch_sub_explicit(&w->blocks, blocks, memory_order_relaxed);
    atomic_fetch_sub_explicit(&w->threads, threads, memory_order_relaxed);
}

/* Takes grid out of the list; under the lock. */
static void pool_unlist(struct grid **link)
{
    struct grid *grid = *link;

    *link = grid->next;
    if (pool.end == &grid->next)
        pool.end = link;
    atomic_store_explicit(&pool.pending, pool.grids != NULL, memory_order_relaxed);
}

static void pool_call_workers(void)
{
    for (unsigned i = 0; i < pool.capacity.workers; i++)
        atomic_store_explicit(&pool.workers[i].attention, true, memory_order_relaxed);
    pthread_cond_broadcast(&pool.work);
}

/* The blocks of a cooperative launch wait for each other, so it gets room for all of them or none:
 * two that had a part each would wait for ever for the rest. One at a time is promised its places,
 * which its blocks then take without waiting for anybody. */
static bool pool_fits_at_once(const struct grid *grid)
{
    uint64_t all = 0;

    if (pool.cooperative)
        return false;
    for (unsigned i = 0; i < pool.capacity.workers; i++)
        all += pool_room(&pool.workers[i], grid);
    return all >= grid->blocks;
}

/* In turn, so that all workers have as many, where they have the room. */
static void pool_reserve(struct grid *grid)
{
    pool.cooperative = grid;
    for (uint64_t left = grid->blocks, i = 0; left; i++) {
        struct worker *w = &pool.workers[i % pool.capacity.workers];

        if (pool_room(w, grid)) {
            pool_take_room(w, grid_threads(grid));
            w->reserved++;
            left--;
        }
    }
    pool_call_workers();
}

/* A launch that failed needs no more places. */
static void pool_unreserve(void)
{
    for (unsigned i = 0; i < pool.capacity.workers; i++) {
        struct worker *w = &pool.workers[i];

        pool_make_room(w, w->reserved, w->reserved * grid_threads(pool.cooperative));
        w->reserved = 0;
    }
    pool.cooperative = NULL;
    pool_call_workers();
}

/* Whether a block of the grid can be taken here; under the lock. A cooperative launch may get its
 * promise. */
static bool pool_can_give(struct worker *w, struct grid *grid)
{
    if (!grid->cooperative)
        return pool_room(w, grid) > 0;
    if (pool_fits_at_once(grid))
        pool_reserve(grid);
    return grid == pool.cooperative && w->reserved;
}

/* Where in the list a grid is that a block can be taken of; *NULL: there is none. */
static struct grid **pool_find_grid(struct worker *w)
{
    struct grid **link = &pool.grids;

    while (*link && !pool_can_give(w, *link))
        link = &(*link)->next;
    return link;
}

/* The next block that fits here; number is its place in the grid. */
struct grid *pool_claim_block(struct worker *w, uint64_t *number)
{
    pthread_mutex_lock(&pool.lock);
    struct grid **link = pool_find_grid(w);
    struct grid *grid = *link;
    if (grid) {
        *number = grid->next_block++;
        if (grid->cooperative)
            w->reserved--;
        else
            pool_take_room(w, grid_threads(grid));
        if (grid->next_block == grid->blocks) {
            pool_unlist(link);
            if (grid == pool.cooperative)
                pool.cooperative = NULL;
        }
    }
    /* Under the lock: a grid that is submitted after this sets it again. */
    if (!grid || !pool.grids)
        atomic_store_explicit(&w->attention, false, memory_order_relaxed);
    pthread_mutex_unlock(&pool.lock);
    return grid;
}

void grid_fail(struct grid *grid)
{
    grid_fail_for(grid, cudaErrorLaunchFailure);
}

void grid_fail_for(struct grid *grid, int error)
{
    uint64_t unclaimed = 0;
    int none = 0;

    atomic_compare_exchange_strong(&grid->why, &none, error);
    atomic_store_explicit(&grid->failed, true, memory_order_relaxed);
    pthread_mutex_lock(&pool.lock);
    for (struct grid **link = &pool.grids; *link; link = &(*link)->next) {
        if (*link == grid) {
            unclaimed = grid->blocks - grid->next_block;
            pool_unlist(link);
            if (grid == pool.cooperative)
                pool_unreserve();
            break;
        }
    }
    pthread_mutex_unlock(&pool.lock);
    /* The caller's block is not among them: the grid is not done yet. */
    atomic_fetch_sub_explicit(&grid->left, unclaimed, memory_order_relaxed);
}

void pool_blocks_ended(struct grid *grid, uint64_t count)
{
    /* Release: what the blocks did. Acquire, for the last: what the others released. */
    if (atomic_fetch_sub_explicit(&grid->left, count, memory_order_acq_rel) != count)
        return;
    atomic_fetch_sub_explicit(&pool.running, 1, memory_order_relaxed);
    events_grid_ends(grid);
    grid->done(grid);
}

/* False: the pool closes. */
bool pool_wait_for_grid(struct worker *w)
{
    uint64_t until = clock_ns() + IDLE_SPIN_NS;
    bool stop;

    while (!atomic_load_explicit(&pool.pending, memory_order_relaxed) && clock_ns() < until)
        sched_yield();
    pthread_mutex_lock(&pool.lock);
    pool.asleep++;
    while (!*pool_find_grid(w) && !pool.stop)
        pthread_cond_wait(&pool.work, &pool.lock);
    pool.asleep--;
    stop = pool.stop;
    pthread_mutex_unlock(&pool.lock);
    return !stop;
}

void grid_submit(struct grid *grid)
{
    events_grid_begins(grid);
    order_release(&grid->started);
    atomic_fetch_add_explicit(&pool.running, 1, memory_order_relaxed);
    pthread_mutex_lock(&pool.lock);
    grid->next = NULL;
    *pool.end = grid;
    pool.end = &grid->next;
    atomic_store_explicit(&pool.pending, true, memory_order_relaxed);
    for (unsigned i = 0; i < pool.capacity.workers; i++)
        atomic_store_explicit(&pool.workers[i].attention, true, memory_order_relaxed);
    for (uint64_t i = 0; i < pool.asleep && i < grid->blocks; i++)
        pthread_cond_signal(&pool.work);
    pthread_mutex_unlock(&pool.lock);
}
