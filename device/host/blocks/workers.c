/* Runs blocks: an OS thread each worker, a fiber each CUDA thread, first come first served.
 *
 * Blocks are taken one at a time by workers that have nothing better to do or room for more, so
 * that all blocks that fit are under way. */
#define _GNU_SOURCE
#include "device/host/blocks/workers.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "device/host/blocks/barrier.h"
#include "device/host/blocks/block.h"
#include "device/host/blocks/threads.h"
#include "device/host/blocks/watch.h"
#include "device/host/fibers/sanitizer.h"
#include "device/host/forks.h"
#include "runtime/base/log.h"
#include "runtime/base/settings.h"
#include "runtime/base/thread_signals.h"

enum {
    RESIDENT_THREADS_TSAN = 2048, /* it gets slow, then blind, with many */
    ALTERNATE_BYTES = 65536,      /* of the stack on which a thread without stack is handled */
};

/* The bottom frame of every thread. Threads that follow each other without a wait share it. */
static void worker_thread_main(void *argument)
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
        thread_gone(w, t);
        warp_thread_ended(t);
        barrier_thread_ended(b);
        block_settle(w, b);
        if (!w->starting || block_failed(w->starting) || under_tsan())
            break;
        worker_start_next(w, stack);
    }
    stack_give(&w->stacks, stack);
    context_leave(stack, thread_successor(w));
}

static void worker_take_block(struct worker *w)
{
    uint64_t number;

    if (!atomic_load_explicit(&pool.pending, memory_order_relaxed) &&
        !atomic_load_explicit(&w->attention, memory_order_relaxed))
        return;
    struct grid *grid = pool_claim_block(w, &number);
    if (!grid)
        return;
    unsigned threads = grid_threads(grid);
    struct block *b = stack_reserve(&w->stacks, threads) ? block_make(w, grid, number) : NULL;
    if (!b) {
        log_error("kernel %s: no memory for a block of %u threads and their stacks", grid->name,
                  threads);
        grid_fail(grid);
        pool_make_room(w, 1, threads);
        pool_blocks_ended(grid, 1);
        return;
    }
    w->starting = b;
}

/* Ends what waits here of launches that failed. */
static void worker_drop_failed(struct worker *w)
{
    while (w->first && block_failed(w->first->block)) {
        struct thread *t = w->first;

        w->first = t->next;
        w->queued--;
        stack_give(&w->stacks, t->stack);
        thread_gone(w, t);
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

/* A CUDA thread that has used up its stack has no room for the handler that says so
 * (runtime/network/crash.c). NULL: there is another stack already, or no memory. */
static void *worker_use_alternate_stack(void)
{
    stack_t now, ours = {.ss_size = ALTERNATE_BYTES};

    if (sigaltstack(NULL, &now) != 0 || !(now.ss_flags & SS_DISABLE))
        return NULL;
    ours.ss_sp = malloc(ours.ss_size);
    if (ours.ss_sp)
        sigaltstack(&ours, NULL);
    return ours.ss_sp;
}

static void worker_leave_alternate_stack(void *stack)
{
    const stack_t none = {.ss_flags = SS_DISABLE};

    if (stack)
        sigaltstack(&none, NULL);
    free(stack);
}

static void *worker_main(void *argument)
{
    struct worker *w = argument;
    void *const alternate = worker_use_alternate_stack();
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
            stack_pool_trim(&w->stacks);
            open = pool_wait_for_grid(w);
        }
    }
    if (under_tsan())
        __tsan_destroy_fiber(w->tsan_end);
    stack_pool_free(&w->stacks);
    block_free_spare(w);
    worker_leave_alternate_stack(alternate);
    return NULL;
}

/* As many as the stacks of have room in a quarter of the machine's memory. */
static unsigned cooperative_threads(void)
{
    const uint64_t pages = (uint64_t)sysconf(_SC_PHYS_PAGES);
    const uint64_t most = pages * (uint64_t)sysconf(_SC_PAGESIZE) / 4 / COOPERATIVE_THREAD_BYTES;

    return most < COOPERATIVE_THREADS_MAX ? (unsigned)most : COOPERATIVE_THREADS_MAX;
}

static struct capacity capacity_here(void)
{
    cpu_set_t cpus;
    unsigned n = (unsigned)settings_number(SETTING_HOST_THREADS);
    size_t stack = (size_t)settings_number(SETTING_HOST_STACK);

    if (!n)
        n = sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? (unsigned)CPU_COUNT(&cpus) : 1;
    unsigned threads = (under_tsan() ? RESIDENT_THREADS_TSAN : RESIDENT_THREADS_MAX) / n;
    unsigned cooperative = under_tsan() ? RESIDENT_THREADS_TSAN / n : cooperative_threads() / n;

    threads = threads > BLOCK_THREADS_MAX ? threads : BLOCK_THREADS_MAX;
    return (struct capacity){
        .workers = n,
        .threads = threads,
        .blocks = RESIDENT_BLOCKS_MAX,
        .cooperative_threads = cooperative > threads ? cooperative : threads,
        .cooperative_blocks = COOPERATIVE_BLOCKS_MAX,
        .stack_size = under_tsan() || under_asan() ? 4 * stack : stack,
    };
}

/* Signals of the program are for the program's own threads. */
static bool worker_start(struct worker *w, unsigned number)
{
    sigset_t all, before;

    w->number = number;
    w->thread_main = worker_thread_main;
    stack_pool_init(&w->stacks, pool.capacity.stack_size, pool.capacity.threads);
    thread_signals_blocked(&all);
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
    forks_watch();
    watch_start(pool.workers, n);
}

static void workers_leave_parent(void)
{
    pool.lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    pool.work = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
    pool.capacity.workers = 0;
    atomic_store_explicit(&pool.running, 1,
                          memory_order_relaxed); /* workers_stop leaves them alone */
}

__attribute__((constructor)) static void workers_watch_forks(void)
{
    static struct fork_part part = {.leave_parent =
                                        workers_leave_parent}; /* an entry of the list in forks.c */

    forks_add(&part);
}

bool workers_start(struct capacity *capacity)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, worker_start_all);
    *capacity = pool.capacity;
    return pool.capacity.workers > 0;
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
