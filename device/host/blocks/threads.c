/* Which thread of a worker runs: its run queue, waiting, yielding, and ending.
 *
 * A worker's run queue holds the threads that can go on. One that waits yields: it goes to the end
 * of the queue and the first takes over, without passing through anything else. Threads that were
 * never run come before those of the queue, and go on the stack of the one that ended last, so that
 * a kernel without barriers needs one stack. */
#define _GNU_SOURCE
#include "device/host/blocks/threads.h"

#include <sched.h>
#include <time.h>

#include "device/host/blocks/block.h"
#include "device/host/blocks/pool.h"
#include "device/host/blocks/report.h"
#include "runtime/base/clock.h"

enum {
    TURN_LEAST = 8,          /* switches between two times that a wait makes progress */
    LEFT_OUT_MOST = 64,      /* turns in a row of a thread that waits for a word */
    SPINS = 64,              /* turns of a queue without progress before the OS may run another */
    ALONE_NS = 2000,         /* one that took less has let nobody run: */
    FORBEAR = 8,             /* so many times the OS is not asked */
    ROUNDS_BEFORE_SLEEP = 20000,
    SLEEP_NS = 50000,
};

/* Set at each switch of fibers; thread-local, as kernels read them in a few instructions. */
__thread uint3 threadIdx GSHMEM_HOST_THREAD_LOCAL;
__thread uint3 blockIdx GSHMEM_HOST_THREAD_LOCAL;
__thread dim3 blockDim GSHMEM_HOST_THREAD_LOCAL;
__thread dim3 gridDim GSHMEM_HOST_THREAD_LOCAL;
__thread void *gshmem_host_dynamic_here GSHMEM_HOST_THREAD_LOCAL;
__thread int gshmem_host_steps GSHMEM_HOST_THREAD_LOCAL = STEPS_BEFORE_YIELD;
__thread struct worker *worker_here __attribute__((tls_model("initial-exec")));

static void thread_enqueue(struct worker *w, struct thread *t)
{
    t->next = NULL;
    if (w->first)
        w->last->next = t;
    else
        w->first = t;
    w->last = t;
    w->queued++;
}

/* A thread that was never run, on a stack of its own. */
struct stack *thread_start_fresh(struct worker *w)
{
    if (block_failed(w->starting))
        return NULL;
    struct stack *stack = stack_take(&w->stacks);
    context_prepare(stack, w->thread_main, stack);
    worker_start_next(w, stack);
    return stack;
}

static void thread_switch_away(struct worker *w, struct thread *self)
{
    struct stack *to = thread_successor(w);

    gshmem_host_steps = STEPS_BEFORE_YIELD;
    if (to != self->stack)
        context_switch(self->stack, to);
}

void thread_drop(struct thread *self)
{
    struct worker *w = worker_here;
    struct stack *stack = self->stack;

    order_release(&self->block->ended);
    thread_gone(w, self);
    block_settle(w, self->block);
    stack_give(&w->stacks, stack);
    context_leave(stack, thread_successor(w));
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
    thread_switch_away(worker_here, self);
}

void thread_ready(struct thread *t)
{
    struct worker *w = worker_here;

    t->block->parked--;
    w->spins = w->rounds = 0;
    thread_enqueue(w, t);
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

/* As far as is known nothing but waiting goes on: leave the CPU to others, all the more the longer
 * it lasts. Where a thread may be computing the worker does not sleep: 24 atomic operations would
 * then take as long as a sleep. */
static void worker_count_spin(struct worker *w)
{
    static const struct timespec moment = {.tv_nsec = SLEEP_NS};
    const bool computes = w->computes;

    if (++w->spins <= SPINS + w->queued)
        return;
    w->spins = 0;
    w->computes = false;
    if (!computes && ++w->rounds >= ROUNDS_BEFORE_SLEEP)
        nanosleep(&moment, NULL);
    else if (w->forbear)
        w->forbear--;
    else
        worker_let_others_run(w);
}

void (*yield_progress)(void); /* of the process, as what a program links */

/* Whether all threads of the queue have had a turn since this was last true. Progress that is made
 * then serves what all of them have asked for; made in each thread's wait, it would cost most of
 * the worker's time. */
static bool worker_has_turned(struct worker *w)
{
    const unsigned turn = w->queued < TURN_LEAST ? TURN_LEAST : w->queued;
    const uint64_t switches = atomic_load_explicit(&w->switches, memory_order_relaxed);

    if (switches - w->turned < turn)
        return false;
    w->turned = switches;
    return true;
}

/* Kernels made from PTX know nothing of the host device: its library makes progress for them. */
static void yield_for_ptx(struct worker *w)
{
    if (!yield_progress || w->in_progress || !worker_has_turned(w))
        return;
    w->in_progress = true;
    yield_progress();
    w->in_progress = false;
}

/* Whether a thread of the queue can be left there, since what it waits for has not come. Relaxed:
 * the thread reads the word again, with acquire. Now and then it runs nevertheless: its wait tests
 * whether it can still end, and shows itself. In a launch that is traced it runs until its wait has
 * begun to count (events.c). */
static inline bool thread_still_waits(struct thread *t)
{
    return t->awaited && (t->waits || !t->block->grid->launch) &&
           ++t->left_out % LEFT_OUT_MOST != 0 && !block_failed(t->block) &&
           __atomic_load_n(t->awaited, __ATOMIC_RELAXED) == t->seen;
}

/* Moves threads that still wait from the front of the queue to its end. To find that a word is as
 * it was takes a fraction of a switch to the thread's stack. A turn that is left out counts as a
 * switch, and as a spin unless another thread may be computing. If all of them still wait, the
 * queue is as it was, and its first runs. */
static void worker_leave_out(struct worker *w)
{
    unsigned n = 0;

    for (; n < w->queued && w->first != w->last && thread_still_waits(w->first); n++) {
        struct thread *t = w->first;

        w->first = t->next;
        t->next = NULL;
        w->last->next = t;
        w->last = t;
    }
    if (!w->computes)
        w->spins += n;
    atomic_store_explicit(&w->switches,
                          atomic_load_explicit(&w->switches, memory_order_relaxed) + n,
                          memory_order_relaxed);
}

static inline void thread_yield(struct worker *w, struct thread *self, bool leaves_out)
{
    if (block_failed(self->block))
        thread_drop(self);
    if (self->block->grid->state_bytes)
        yield_for_ptx(w);
    worker_count_spin(w);
    if (w->first || w->starting || atomic_load_explicit(&w->attention, memory_order_relaxed)) {
        thread_enqueue(w, self);
        if (leaves_out)
            worker_leave_out(w);
        thread_switch_away(w, self);
    } else {
        clock_pause();
        worker_count_switch(w);
        gshmem_host_steps = STEPS_BEFORE_YIELD;
    }
    if (__builtin_expect(self->waits, 0))
        events_thread_resumed(self);
}

static void yield_outside(void)
{
    gshmem_host_steps = 1 << 20;
    sched_yield();
}

void gshmem_host_yield(void)
{
    struct worker *w = worker_here;

    if (w && w->self)
        thread_yield(w, w->self, false);
    else
        yield_outside();
}

void gshmem_host_rest(void)
{
    struct worker *w = worker_here;

    if (w && w->self) {
        w->computes = true;
        thread_yield(w, w->self, false);
    } else {
        yield_outside();
    }
}

int gshmem_host_yield_turn(const uint64_t *word, uint64_t seen)
{
    struct worker *w = worker_here;

    if (!w || !w->self) {
        yield_outside();
        return 1;
    }

    struct thread *self = w->self;
    self->awaited = word;
    self->seen = seen;
    thread_yield(w, self, true);
    self->awaited = NULL;
    return worker_has_turned(w);
}

void gshmem_host_progress(void)
{
    struct worker *w = worker_here;

    if (!w)
        return;
    w->spins = w->rounds = 0;
    if (__builtin_expect(w->self && w->self->waits, 0))
        events_wait_ends(w->self);
}
