/* Which thread of a worker runs: its run queue, waiting, yielding, and ending. */
#ifndef GSHMEM_DEVICE_HOST_THREADS_H
#define GSHMEM_DEVICE_HOST_THREADS_H

#include "device/host/blocks/events.h"

/* What kernels made from PTX call now and then while they wait; NULL: nothing. */
extern void (*yield_progress)(void);

/* The caller's thread waits until another one readies it. */
static inline void thread_park(struct thread *self, enum thread_state state, const char *file,
                               int line);
void thread_ready(struct thread *thread);
/* The same for count threads of a block, linked from first to last. */
void threads_ready(struct thread *first, struct thread *last, unsigned count);
/* The caller's thread ends here, without returning. */
_Noreturn void thread_drop(struct thread *self);

/* ---- What thread_park needs, here because __syncthreads is little else ---- */

void thread_park_slowly(struct thread *self);

/* Only this worker writes it: no atomic addition is needed. */
static inline void worker_count_switch(struct worker *w)
{
    uint64_t n = atomic_load_explicit(&w->switches, memory_order_relaxed);

    atomic_store_explicit(&w->switches, n + 1, memory_order_relaxed);
}

static inline void worker_run(struct worker *w, struct thread *t)
{
    w->self = t;
    worker_count_switch(w);
    threadIdx = t->index;
}

/* Short where the next in the queue is of the same block, as at most barriers. */
static inline void thread_park(struct thread *self, enum thread_state state, const char *file,
                               int line)
{
    struct worker *w = worker_here;
    struct block *b = self->block;
    struct thread *next = w->first;

    if (__builtin_expect(self->waits, 0)) /* of PTX: the next poll would have shown it */
        events_wait_was_over(self);
    self->state = (uint8_t)state;
    self->file = file;
    self->line = line;
    if (++b->parked == b->live || !next || next->block != b || w->starting || block_failed(b) ||
        atomic_load_explicit(&w->attention, memory_order_relaxed)) {
        thread_park_slowly(self);
        return;
    }
    w->first = next->next;
    w->queued--;
    worker_run(w, next);
    gshmem_host_steps = STEPS_BEFORE_YIELD;
    context_switch(self->stack, next->stack);
}

struct stack *thread_start_fresh(struct worker *w);

/* Makes t the one that runs; its stack is switched to next. */
static inline void thread_become(struct worker *w, struct thread *t)
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

/* The block's next thread that was never run, to run on stack. */
static inline void worker_start_next(struct worker *w, struct stack *stack)
{
    struct block *b = w->starting;
    struct thread *t = &b->threads[b->started++];

    if (b->started == b->size)
        w->starting = NULL;
    t->stack = stack;
    w->spins = w->rounds = 0;
    thread_become(w, t);
}

/* The thread that runs next: its record, and where it has left its registers and its last frames.
 * The stacks of a thousand threads are not all in the first caches. */
static inline void thread_prefetch(const struct thread *t)
{
    const char *sp = t->stack->sp;

    __builtin_prefetch(&t->awaited);
    for (int line = 0; line < 4; line++)
        __builtin_prefetch(sp + line * CACHE_LINE);
}

/* Makes a thread the running one and returns its stack; NULL: main has to see to something. */
static inline struct stack *worker_pick(struct worker *w)
{
    struct thread *t = w->first;

    if (__builtin_expect(w->starting != NULL, 0))
        return thread_start_fresh(w);
    if (!t || block_failed(t->block))
        return NULL;
    w->first = t->next;
    w->queued--;
    if (t->next)
        thread_prefetch(t->next);
    thread_become(w, t);
    return t->stack;
}

/* Where the running thread hands over to. */
static inline struct stack *thread_successor(struct worker *w)
{
    struct stack *stack = NULL;

    if (w->starting || !atomic_load_explicit(&w->attention, memory_order_relaxed))
        stack = worker_pick(w);
    return stack ? stack : &w->main;
}

#endif
