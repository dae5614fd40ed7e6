/* Runs blocks: an OS thread each worker, a fiber each CUDA thread, first come first served.
 *
 * A worker's run queue holds the threads that can go on. One that waits yields: it goes to the end
 * of the queue and the first takes over, without passing through anything else. Threads that were
 * never run come before those of the queue, and go on the stack of the one that ended last, so that
 * a kernel without barriers needs one stack. Blocks are taken one at a time by workers that have
 * nothing better to do or room for more, so that all blocks that fit are under way. */
#define _GNU_SOURCE
#include "device/host/blocks/grid.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "device/host/fibers/sanitizer.h"
#include "gshmem/host_device/cuda_runtime_api.h"
#include "runtime/base/clock.h"
#include "runtime/base/log.h"
#include "runtime/base/settings.h"

enum {
    SPINS = 64,              /* turns of a queue without progress before the OS may run another */
    ALONE_NS = 2000,         /* one that took less has let nobody run: */
    FORBEAR = 8,             /* so many times the OS is not asked */
    ROUNDS_BEFORE_SLEEP = 20000,
    SLEEP_NS = 50000,
    IDLE_SPIN_NS = 20000,    /* a worker without work looks this long before it sleeps */
    RESIDENT_THREADS_TSAN = 2048, /* it gets slow, then blind, with many */
};

__thread uint3 threadIdx GSHMEM_HOST_THREAD_LOCAL;
__thread uint3 blockIdx GSHMEM_HOST_THREAD_LOCAL;
__thread dim3 blockDim GSHMEM_HOST_THREAD_LOCAL;
__thread dim3 gridDim GSHMEM_HOST_THREAD_LOCAL;
__thread void *gshmem_host_dynamic_here GSHMEM_HOST_THREAD_LOCAL;
__thread int gshmem_host_patience GSHMEM_HOST_THREAD_LOCAL = PATIENCE;
__thread struct worker *worker_here __attribute__((tls_model("initial-exec")));

static struct pool {
    pthread_mutex_t lock;
    pthread_cond_t work;        /* grids has become non-empty, or stop is set */
    struct grid *grids, **end;  /* with blocks that nobody has taken */
    atomic_bool pending;        /* grids is not empty */
    atomic_uint running;        /* grids that were submitted and have not ended */
    struct grid *together;      /* the cooperative launch whose blocks are promised to workers */
    unsigned asleep;
    bool stop;
    struct worker *workers;
    struct capacity capacity;
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER, .work = PTHREAD_COND_INITIALIZER, .end = &pool.grids};

/* --- Threads --- */

static void enqueue(struct worker *w, struct thread *t)
{
    t->next = NULL;
    if (w->first)
        w->last->next = t;
    else
        w->first = t;
    w->last = t;
    w->queued++;
}

/* Makes t the one that runs; its stack is switched to next. */
static void become(struct worker *w, struct thread *t)
{
    worker_run(w, t);
    if (t->block != w->block) {
        w->block = t->block;
        blockIdx = t->block->index;
        blockDim = t->block->grid->block_size;
        gridDim = t->block->grid->size;
        gshmem_host_dynamic_here = t->block->dynamic_shared;
    }
}

static void thread_main(void *argument);

/* The block's next thread that was never run, to run on stack. */
static void worker_start_next(struct worker *w, struct stack *stack)
{
    struct block *b = w->starting;
    struct thread *t = &b->threads[b->started++];

    if (b->started == b->size)
        w->starting = NULL;
    t->stack = stack;
    w->spins = w->rounds = 0;
    become(w, t);
}


/* A thread that was never run, on a stack of its own. */
static struct stack *pick_starting(struct worker *w)
{
    if (block_failed(w->starting))
        return NULL;
    struct stack *stack = stack_take(&w->stacks);
    context_prepare(stack, thread_main, stack);
    worker_start_next(w, stack);
    return stack;
}

/* Makes a thread the running one and returns its stack; NULL: main has to see to something. */
static inline struct stack *worker_pick(struct worker *w)
{
    struct thread *t = w->first;

    if (__builtin_expect(w->starting != NULL, 0))
        return pick_starting(w);
    if (!t || block_failed(t->block))
        return NULL;
    w->first = t->next;
    w->queued--;
    become(w, t);
    return t->stack;
}

/* Where the running thread hands over to. */
static struct stack *successor(struct worker *w)
{
    struct stack *stack = NULL;

    if (w->starting || !atomic_load_explicit(&w->attention, memory_order_relaxed))
        stack = worker_pick(w);
    return stack ? stack : &w->main;
}

static void switch_away(struct worker *w, struct thread *self)
{
    struct stack *to = successor(w);

    gshmem_host_patience = PATIENCE;
    if (to != self->stack)
        context_switch(self->stack, to);
}

static void block_settle(struct worker *w, struct block *b);

/* The worker goes on in nobody's name: what follows may run code of the program (a grid's closure ends with its
 * last thread), where a signal would have a thread yield that is no more. */
static void thread_gone(struct thread *t)
{
    worker_here->self = NULL;
    t->stack = NULL;
    t->warp->live &= ~(1u << t->lane);
    t->block->live--;
}

/* The bottom frame of every thread. Threads that follow each other without a wait share it. */
static void thread_main(void *argument)
{
    struct stack *stack = argument;
    struct worker *w = worker_here;

    context_entered(stack);
    for (;;) {
        struct thread *t = w->self;
        struct block *b = t->block;

        order_acquire(&b->grid->started);
        order_acquire(&b->allocated);
        b->grid->run(b->grid->closure);
        order_release(&b->ended);
        thread_gone(t);
        warp_thread_ended(t);
        barrier_thread_ended(b);
        block_settle(w, b);
        if (!w->starting || block_failed(w->starting) || under_tsan())
            break;
        worker_start_next(w, stack);
    }
    stack_give(&w->stacks, stack);
    context_leave(stack, successor(w));
}

void thread_drop(struct thread *self)
{
    struct worker *w = worker_here;
    struct stack *stack = self->stack;

    thread_gone(self);
    block_settle(w, self->block);
    stack_give(&w->stacks, stack);
    context_leave(stack, successor(w));
}

void thread_park_slowly(struct thread *self)
{
    struct block *b = self->block;

    if (b->parked == b->live) { /* who could ready any of them? */
        if (!block_failed(b)) {
            report_deadlock(b);
            grid_fail(b->grid);
        }
        b->parked--;
        thread_drop(self);
    }
    switch_away(worker_here, self);
}

void thread_ready(struct thread *t)
{
    struct worker *w = worker_here;

    t->block->parked--;
    w->spins = w->rounds = 0;
    enqueue(w, t);
}

void threads_ready(struct thread *first, struct thread *last, unsigned count)
{
    struct worker *w = worker_here;

    *(w->first ? &w->last->next : &w->first) = first;
    w->last = last;
    w->queued += count;
    first->block->parked -= count;
    w->spins = w->rounds = 0;
}

/* Where nobody else wants this CPU, asking the OS only costs time. */
static void worker_let_others_run(struct worker *w)
{
    uint64_t now = clock_ns();

    sched_yield();
    w->forbear = clock_ns() - now < ALONE_NS ? FORBEAR : 0;
}

/* Nothing but waiting goes on: leave the CPU to others, all the more the longer it lasts. */
static void count_spin(struct worker *w)
{
    static const struct timespec nap = {.tv_nsec = SLEEP_NS};

    if (++w->spins <= SPINS + w->queued)
        return;
    w->spins = 0;
    if (++w->rounds >= ROUNDS_BEFORE_SLEEP)
        nanosleep(&nap, NULL);
    else if (w->forbear)
        w->forbear--;
    else
        worker_let_others_run(w);
}

void gshmem_host_yield(void)
{
    struct worker *w = worker_here;

    if (!w || !w->self) {
        gshmem_host_patience = 1 << 20;
        sched_yield();
        return;
    }

    struct thread *self = w->self;
    if (block_failed(self->block))
        thread_drop(self);
    count_spin(w);
    if (w->first || w->starting || atomic_load_explicit(&w->attention, memory_order_relaxed)) {
        enqueue(w, self);
        switch_away(w, self);
    } else {
        clock_pause();
        worker_count_switch(w);
        gshmem_host_patience = PATIENCE;
    }
}

void gshmem_host_progress(void)
{
    if (worker_here)
        worker_here->spins = worker_here->rounds = 0;
}

/* --- Blocks --- */

static uint3 worker_place(uint64_t number, dim3 size)
{
    return (uint3){(unsigned)(number % size.x), (unsigned)(number / size.x % size.y),
                   (unsigned)(number / size.x / size.y)};
}

static void spare_free(struct worker *w)
{
    while (w->spare) {
        struct block *b = w->spare;

        w->spare = b->next;
        free(b);
    }
}

static struct block *block_memory(struct worker *w, unsigned size)
{
    struct block *b = w->spare;

    if (b && b->size == size) {
        w->spare = b->next;
        return b;
    }
    spare_free(w); /* of another size: launches mostly come in runs of one */
    unsigned warps = (size + WARP_SIZE - 1) / WARP_SIZE;
    size_t bytes = sizeof *b + size * sizeof b->threads[0] + warps * sizeof b->warps[0];
    void *memory;
    if (posix_memalign(&memory, CACHE_LINE, bytes) != 0)
        return NULL;
    b = memory;
    b->warps = (struct warp *)&b->threads[size];
    return b;
}

static struct block *block_make(struct worker *w, struct grid *grid, uint64_t number)
{
    dim3 shape = grid->block_size;
    unsigned size = shape.x * shape.y * shape.z;
    struct block *b = block_memory(w, size);

    if (!b)
        return NULL;
    *b = (struct block){.grid = grid,
                        .index = worker_place(number, grid->size),
                        .size = size,
                        .live = size,
                        .warps = b->warps};
    if (!shared_begin(b)) {
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
    return b;
}

static void blocks_ended(struct grid *grid, uint64_t count)
{
    /* Release: what the blocks did. Acquire, for the last: what the others released. */
    if (atomic_fetch_sub_explicit(&grid->left, count, memory_order_acq_rel) != count)
        return;
    atomic_fetch_sub_explicit(&pool.running, 1, memory_order_relaxed);
    grid->done(grid);
}

static void worker_make_room(struct worker *w, unsigned blocks, unsigned threads)
{
    atomic_fetch_sub_explicit(&w->blocks, blocks, memory_order_relaxed);
    atomic_fetch_sub_explicit(&w->threads, threads, memory_order_relaxed);
}

static void block_end(struct worker *w, struct block *b)
{
    struct grid *grid = b->grid;

    /* Not by the thread that ended last, nor by the worker: who runs after them is not ordered. */
    void *own = stand_in_for(w->tsan_end);
    order_acquire(&b->ended);
    order_release(&grid->ended);
    for (unsigned i = 0; i < b->shared_numbers; i++)
        free(b->shared[i]);
    free(b->shared);
    free(b->dynamic_shared);
    stand_in_for(own);
    worker_make_room(w, 1, b->size);
    w->block = NULL;
    if (w->starting == b)
        w->starting = NULL;
    b->next = w->spare;
    w->spare = b;
    if (atomic_load_explicit(&pool.pending, memory_order_relaxed)) /* there is room now */
        atomic_store_explicit(&w->attention, true, memory_order_relaxed);
    /* Release: with the acquire of the grid's barrier. */
    atomic_fetch_add_explicit(&grid->blocks_ended, 1, memory_order_release);
    blocks_ended(grid, 1);
}

/* Threads were lost: has the block ended, or have those that are left nobody to wait for? */
static void block_settle(struct worker *w, struct block *b)
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

/* --- Workers --- */

static unsigned threads_of(const struct grid *grid)
{
    return grid->block_size.x * grid->block_size.y * grid->block_size.z;
}

/* How many more blocks of `threads` threads fit here. */
static unsigned room(struct worker *w, unsigned threads)
{
    unsigned by_blocks = pool.capacity.blocks - atomic_load_explicit(&w->blocks, memory_order_relaxed);
    unsigned by_threads =
        (pool.capacity.threads - atomic_load_explicit(&w->threads, memory_order_relaxed)) / threads;

    return by_blocks < by_threads ? by_blocks : by_threads;
}

static void worker_take_room(struct worker *w, unsigned threads)
{
    atomic_fetch_add_explicit(&w->blocks, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&w->threads, threads, memory_order_relaxed);
}

/* Takes grid out of the list; under the lock. */
static void unlist(struct grid **link)
{
    struct grid *grid = *link;

    *link = grid->next;
    if (pool.end == &grid->next)
        pool.end = link;
    atomic_store_explicit(&pool.pending, pool.grids != NULL, memory_order_relaxed);
}

static void call_all_workers(void)
{
    for (unsigned i = 0; i < pool.capacity.workers; i++)
        atomic_store_explicit(&pool.workers[i].attention, true, memory_order_relaxed);
    pthread_cond_broadcast(&pool.work);
}

/* The blocks of a cooperative launch wait for each other, so it gets room for all of them or none: two that
 * had a part each would wait for ever for the rest. One at a time is promised its places, which its blocks
 * then take without waiting for anybody. */
static bool together_fits(const struct grid *grid)
{
    uint64_t all = 0;

    if (pool.together)
        return false;
    for (unsigned i = 0; i < pool.capacity.workers; i++)
        all += room(&pool.workers[i], threads_of(grid));
    return all >= grid->blocks;
}

/* In turn, so that all workers have as many, where they have the room. */
static void promise(struct grid *grid)
{
    pool.together = grid;
    for (uint64_t left = grid->blocks, i = 0; left; i++) {
        struct worker *w = &pool.workers[i % pool.capacity.workers];

        if (room(w, threads_of(grid))) {
            worker_take_room(w, threads_of(grid));
            w->promised++;
            left--;
        }
    }
    call_all_workers();
}

/* A launch that failed needs no more places. */
static void break_promise(void)
{
    for (unsigned i = 0; i < pool.capacity.workers; i++) {
        struct worker *w = &pool.workers[i];

        worker_make_room(w, w->promised, w->promised * threads_of(pool.together));
        w->promised = 0;
    }
    pool.together = NULL;
    call_all_workers();
}

/* Whether a block of the grid can be taken here; under the lock. A cooperative launch may get its promise. */
static bool takes(struct worker *w, struct grid *grid)
{
    if (!grid->cooperative)
        return room(w, threads_of(grid)) > 0;
    if (together_fits(grid))
        promise(grid);
    return grid == pool.together && w->promised;
}

/* Where in the list a grid is that a block can be taken of; *NULL: there is none. */
static struct grid **find_grid(struct worker *w)
{
    struct grid **link = &pool.grids;

    while (*link && !takes(w, *link))
        link = &(*link)->next;
    return link;
}

/* The next block that fits here; number is its place in the grid. */
static struct grid *claim_block(struct worker *w, uint64_t *number)
{
    pthread_mutex_lock(&pool.lock);
    struct grid **link = find_grid(w);
    struct grid *grid = *link;
    if (grid) {
        *number = grid->next_block++;
        if (grid->cooperative)
            w->promised--;
        else
            worker_take_room(w, threads_of(grid));
        if (grid->next_block == grid->blocks) {
            unlist(link);
            if (grid == pool.together)
                pool.together = NULL;
        }
    }
    /* Under the lock: a grid that is submitted after this sets it again. */
    if (!grid || !pool.grids)
        atomic_store_explicit(&w->attention, false, memory_order_relaxed);
    pthread_mutex_unlock(&pool.lock);
    return grid;
}

static void worker_take_block(struct worker *w)
{
    uint64_t number;

    if (!atomic_load_explicit(&pool.pending, memory_order_relaxed) &&
        !atomic_load_explicit(&w->attention, memory_order_relaxed))
        return;
    struct grid *grid = claim_block(w, &number);
    if (!grid)
        return;
    unsigned threads = threads_of(grid);
    struct block *b = stack_reserve(&w->stacks, threads) ? block_make(w, grid, number) : NULL;
    if (!b) {
        log_error("kernel %s: no memory for a block of %u threads and their stacks", grid->name,
                  threads);
        grid_fail(grid);
        worker_make_room(w, 1, threads);
        blocks_ended(grid, 1);
        return;
    }
    w->starting = b;
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
            unlist(link);
            if (grid == pool.together)
                break_promise();
            break;
        }
    }
    pthread_mutex_unlock(&pool.lock);
    /* The caller's block is not among them: the grid is not done yet. */
    atomic_fetch_sub_explicit(&grid->left, unclaimed, memory_order_relaxed);
}

/* Ends what waits here of launches that failed. */
static void worker_drop_failed(struct worker *w)
{
    while (w->first && block_failed(w->first->block)) {
        struct thread *t = w->first;

        w->first = t->next;
        w->queued--;
        stack_give(&w->stacks, t->stack);
        thread_gone(t);
        block_settle(w, t->block);
    }

    struct block *b = w->starting;
    if (b && block_failed(b)) {
        w->starting = NULL;
        b->live -= b->size - b->started;
        b->started = b->size;
        block_settle(w, b);
    }
}

/* False: the pool closes. */
static bool wait_for_work(struct worker *w)
{
    uint64_t until = clock_ns() + IDLE_SPIN_NS;
    bool stop;

    while (!atomic_load_explicit(&pool.pending, memory_order_relaxed) && clock_ns() < until)
        sched_yield();
    pthread_mutex_lock(&pool.lock);
    pool.asleep++;
    while (!*find_grid(w) && !pool.stop)
        pthread_cond_wait(&pool.work, &pool.lock);
    pool.asleep--;
    stop = pool.stop;
    pthread_mutex_unlock(&pool.lock);
    return !stop;
}

static void *worker_main(void *argument)
{
    struct worker *w = argument;
    bool open = true;

    worker_here = w;
    pthread_setname_np(pthread_self(), "gshmem-worker");
    context_adopt(&w->main);
    if (under_tsan())
        w->tsan_end = __tsan_create_fiber(0);
    while (open) {
        worker_drop_failed(w);
        if (!w->starting)
            worker_take_block(w);

        struct stack *stack = worker_pick(w);
        if (stack) {
            if (!atomic_load_explicit(&w->busy, memory_order_relaxed)) {
                atomic_store(&w->busy, true);
                watch_kernels();
            }
            context_switch(&w->main, stack);
            w->self = NULL;
        } else if (!w->first && !w->starting) {
            atomic_store(&w->busy, false);
            open = wait_for_work(w);
        }
    }
    if (under_tsan())
        __tsan_destroy_fiber(w->tsan_end);
    stack_pool_free(&w->stacks);
    spare_free(w);
    return NULL;
}

static struct capacity capacity_here(void)
{
    cpu_set_t cpus;
    unsigned n = (unsigned)settings_number(SETTING_HOST_THREADS);
    size_t stack = (size_t)settings_number(SETTING_HOST_STACK);

    if (!n)
        n = sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? (unsigned)CPU_COUNT(&cpus) : 1;
    unsigned threads = (under_tsan() ? RESIDENT_THREADS_TSAN : RESIDENT_THREADS_MAX) / n;

    return (struct capacity){
        .workers = n,
        .threads = threads > BLOCK_THREADS_MAX ? threads : BLOCK_THREADS_MAX,
        .blocks = RESIDENT_BLOCKS_MAX,
        .stack_size = under_tsan() || under_asan() ? 4 * stack : stack,
    };
}

/* Signals of the program are for the program's own threads. */
static bool worker_start(struct worker *w, unsigned number)
{
    sigset_t all, before;

    w->number = number;
    stack_pool_init(&w->stacks, pool.capacity.stack_size);
    sigfillset(&all);
    sigdelset(&all, SIGURG); /* the watch's */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&w->id, NULL, worker_main, w);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error)
        log_error("starting worker %u of the host device: %s", number, strerror(error));
    return error == 0;
}

static void worker_start_all(void)
{
    if (settings_load()) /* which says what is wrong with them */
        return;
    pool.capacity = capacity_here();
    pool.workers = calloc(pool.capacity.workers, sizeof pool.workers[0]);
    unsigned n = 0;

    if (pool.workers) {
        while (n < pool.capacity.workers && worker_start(&pool.workers[n], n))
            n++;
    }
    pool.capacity.workers = n;
    work_watch_forks();
    watch_start(pool.workers, n);
}

void workers_leave_parent(void)
{
    pool.lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    pool.work = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
    pool.capacity.workers = 0;
    atomic_store_explicit(&pool.running, 1, memory_order_relaxed); /* workers_stop leaves them alone */
}

bool workers_start(struct capacity *capacity)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, worker_start_all);
    *capacity = pool.capacity;
    return pool.capacity.workers > 0;
}

void grid_submit(struct grid *grid)
{
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

/* When the library goes, and kernels are not left running: they may wait for what never comes. */
__attribute__((destructor)) static void workers_stop(void)
{
    unsigned n = pool.capacity.workers;

    bool idle = atomic_load_explicit(&pool.running, memory_order_relaxed) == 0;

    pthread_mutex_lock(&pool.lock);
    pool.stop = idle;
    pthread_cond_broadcast(&pool.work);
    pthread_mutex_unlock(&pool.lock);
    if (idle)
        watch_stop();
    for (unsigned i = 0; idle && i < n; i++)
        pthread_join(pool.workers[i].id, NULL);
    if (idle)
        free(pool.workers);
}
