/* Stacks, and switching from one to another: the whole of what a fiber needs from the machine.
 *
 * A stack that is not running keeps its registers on itself, below sp. Switching saves what the
 * calling convention asks a function to keep, and no signal mask or floating-point mode
 * (docs/decisions/0020). The sanitizers are told of every switch. Knows nothing of CUDA. */
#ifndef GSHMEM_DEVICE_HOST_CONTEXT_H
#define GSHMEM_DEVICE_HOST_CONTEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "device/host/fibers/sanitizer.h"

#if defined(CONTEXT_PORTABLE) || !(defined(__x86_64__) || defined(__aarch64__))
#include <ucontext.h>
#define CONTEXT_UCONTEXT 1
#endif

struct stack {
    void *sp;
    struct stack *next; /* in a list of free stacks */
    char *low;          /* the lowest usable byte; a page that faults is below it */
    size_t size;
    void *tsan;         /* ThreadSanitizer's own record of this stack */
    void *asan;         /* AddressSanitizer's */
#ifdef CONTEXT_UCONTEXT
    ucontext_t context;
#endif
};

/* Stacks, mapped some hundred at a time and kept for the next launch, each with a guard page. Those
 * of the first `guarded` cost the process two mappings each, of which it may have some 65,000.
 * Beyond them guards cost none, and need Linux 6.13: before, one in some hundred has a guard. */
struct stack_pool {
    struct stack *first, *last; /* free */
    struct stack_slab *slabs;
    size_t stack_size;
    unsigned made, free, guarded;
};

void stack_pool_init(struct stack_pool *pool, size_t stack_size, unsigned guarded);
/* Sees to it that so many can be taken; false: no memory. To be called on an OS thread's own stack:
 * for ThreadSanitizer, what that has done happens before what the new stacks will do. */
bool stack_reserve(struct stack_pool *pool, unsigned count);
/* ThreadSanitizer tells threads apart by their stacks, so while it runs a stack is used again as
 * late as possible; otherwise as early, while it is in the cache. */
struct stack *stack_take(struct stack_pool *pool);
void stack_give(struct stack_pool *pool, struct stack *stack);
/* Gives stacks beyond `guarded` back to the system, if none is in use: one launch needed them. */
void stack_pool_trim(struct stack_pool *pool);
void stack_pool_free(struct stack_pool *pool);

/* Makes this record stand for the stack the caller runs on. */
void context_adopt(struct stack *stack);
/* The next switch to stack calls entry(argument), which must not return. */
void context_prepare(struct stack *stack, void (*entry)(void *), void *argument);
static inline void context_switch(struct stack *from, struct stack *to);
/* The same, never to come back: what runs next on from must be prepared again. */
_Noreturn void context_leave(struct stack *from, struct stack *to);
/* The first thing an entry calls. */
void context_entered(struct stack *stack);

/* ---- What context_switch needs ---- */

void context_switch_watched(struct stack *from, struct stack *to);
#ifndef CONTEXT_UCONTEXT
/* Saves the caller's registers on its stack, the stack pointer in *save, and takes up load. */
void gshmem_host_switch_registers(void **save, void *load) __attribute__((visibility("hidden")));
#endif

static inline void context_switch(struct stack *from, struct stack *to)
{
#ifndef CONTEXT_UCONTEXT
    if (!under_tsan() && !__sanitizer_start_switch_fiber) {
        gshmem_host_switch_registers(&from->sp, to->sp);
        return;
    }
#endif
    context_switch_watched(from, to);
}

#endif
