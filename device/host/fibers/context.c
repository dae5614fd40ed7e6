#define _GNU_SOURCE
#include "device/host/fibers/context.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "device/host/fibers/sanitizer.h"

enum {
    SLAB_STACKS = 256,
    COLOURS = 16,
    COLOUR_BYTES = 256,
    TSAN_STACKS = 512, /* made before any is used again under ThreadSanitizer */
    TSAN_NO_SYNC = 1,  /* a switch between fibers orders nothing */
};

struct stack_slab {
    struct stack_slab *next;
    void *memory;
    size_t bytes;
    struct stack stacks[SLAB_STACKS];
};

void stack_pool_init(struct stack_pool *pool, size_t stack_size, unsigned guarded)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);

    *pool = (struct stack_pool){.stack_size = (stack_size + page - 1) / page * page,
                                .guarded = guarded};
}

static void push_first(struct stack_pool *pool, struct stack *stack)
{
    if (!pool->first)
        pool->last = stack;
    stack->next = pool->first;
    pool->first = stack;
    pool->free++;
}

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102 /* since Linux 6.13 */
#endif

/* A page that faults. Where it must not cost mappings it is one by MADV_GUARD_INSTALL: on an older
 * kernel, or if there are too many mappings, an overflow runs into the stack below. */
static void add_guard(char *at, size_t page, bool without_mappings)
{
    if (without_mappings)
        (void)!madvise(at, page, MADV_GUARD_INSTALL);
    else
        (void)!mprotect(at, page, PROT_NONE);
}

/* One mapping, then a guard page below each stack. The stacks begin at different places of their
 * pages, or the frames of all threads of a block would want the same few sets of the cache. */
static bool add_slab(struct stack_pool *pool)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t stride = pool->stack_size + page;
    struct stack_slab *slab = calloc(1, sizeof *slab);

    if (!slab)
        return false;
    slab->bytes = stride * SLAB_STACKS;
    slab->memory = mmap(NULL, slab->bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (slab->memory == MAP_FAILED) {
        free(slab);
        return false;
    }
    for (int i = SLAB_STACKS - 1; i >= 0; i--) {
        char *guard = (char *)slab->memory + (size_t)i * stride;
        add_guard(guard, page, i > 0 && pool->made >= pool->guarded);
        slab->stacks[i].low = guard + page;
        slab->stacks[i].size = pool->stack_size - (unsigned)i % COLOURS * COLOUR_BYTES;
        if (under_tsan()) /* who makes it happens before it: not a CUDA thread, then */
            slab->stacks[i].tsan = __tsan_create_fiber(0);
        push_first(pool, &slab->stacks[i]);
    }
    pool->made += SLAB_STACKS;
    slab->next = pool->slabs;
    pool->slabs = slab;
    return true;
}

bool stack_reserve(struct stack_pool *pool, unsigned count)
{
    while (pool->free < count || (under_tsan() && pool->made < TSAN_STACKS)) {
        if (!add_slab(pool))
            return false;
    }
    return true;
}

struct stack *stack_take(struct stack_pool *pool)
{
    struct stack *stack = pool->first;

    pool->first = stack->next;
    pool->free--;
    if (under_asan()) /* frames that were left for good never cleaned up */
        __asan_unpoison_memory_region(stack->low, stack->size);
    return stack;
}

void stack_give(struct stack_pool *pool, struct stack *stack)
{
    if (!under_tsan() || !pool->first) {
        push_first(pool, stack);
        return;
    }
    pool->free++;
    stack->next = NULL;
    pool->last->next = stack;
    pool->last = stack;
}

/* Frees the newest; none of its stacks is in use. */
static void free_slab(struct stack_pool *pool)
{
    struct stack_slab *slab = pool->slabs;

    pool->slabs = slab->next;
    pool->made -= SLAB_STACKS;
    for (int i = 0; i < SLAB_STACKS; i++) {
        if (slab->stacks[i].tsan)
            __tsan_destroy_fiber(slab->stacks[i].tsan);
    }
    munmap(slab->memory, slab->bytes);
    free(slab);
}

void stack_pool_trim(struct stack_pool *pool)
{
    if (pool->made < pool->guarded + SLAB_STACKS || pool->free != pool->made)
        return;
    while (pool->made >= pool->guarded + SLAB_STACKS)
        free_slab(pool);
    pool->first = pool->last = NULL;
    pool->free = 0;
    for (struct stack_slab *slab = pool->slabs; slab; slab = slab->next) {
        for (int i = SLAB_STACKS - 1; i >= 0; i--)
            push_first(pool, &slab->stacks[i]);
    }
}

void stack_pool_free(struct stack_pool *pool)
{
    while (pool->slabs)
        free_slab(pool);
    pool->first = pool->last = NULL;
}

void context_adopt(struct stack *stack)
{
    pthread_attr_t attributes;
    void *low;

    *stack = (struct stack){.sp = NULL};
    if (under_tsan())
        stack->tsan = __tsan_get_current_fiber();
    if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
        if (pthread_attr_getstack(&attributes, &low, &stack->size) == 0)
            stack->low = low;
        pthread_attr_destroy(&attributes);
    }
}

#ifdef CONTEXT_UCONTEXT

/* makecontext passes ints only: the pointers travel in halves. */
static void start(unsigned entry_high, unsigned entry_low, unsigned high, unsigned low)
{
    void (*entry)(void *) = (void (*)(void *))(((uintptr_t)entry_high << 16 << 16) | entry_low);

    entry((void *)(((uintptr_t)high << 16 << 16) | low));
}

static void host_context_prepare(struct stack *stack, void (*entry)(void *), void *argument)
{
    uintptr_t e = (uintptr_t)entry, a = (uintptr_t)argument;

    getcontext(&stack->context);
    stack->context.uc_stack.ss_sp = stack->low;
    stack->context.uc_stack.ss_size = stack->size;
    stack->context.uc_link = NULL;
    makecontext(&stack->context, (void (*)(void))start, 4, (unsigned)(e >> 16 >> 16), (unsigned)e,
                (unsigned)(a >> 16 >> 16), (unsigned)a);
}

static void switch_registers(struct stack *from, struct stack *to)
{
    swapcontext(&from->context, &to->context);
}

#else

/* What a prepared stack returns into: calls entry(argument), both put there by
 * host_context_prepare(). */
void gshmem_host_start_context(void) __attribute__((visibility("hidden")));

#if defined(__x86_64__)

enum { SAVED_WORDS = 7, SLOT_ENTRY = 3, SLOT_ARGUMENT = 2, SLOT_RETURN = 6 };

__asm__(".text\n"
        ".p2align 4\n"
        ".hidden gshmem_host_switch_registers\n"
        ".globl gshmem_host_switch_registers\n"
        ".type gshmem_host_switch_registers, @function\n"
        "gshmem_host_switch_registers:\n"
        "    .cfi_startproc\n"
        "    pushq %rbp\n"
        "    pushq %rbx\n"
        "    pushq %r12\n"
        "    pushq %r13\n"
        "    pushq %r14\n"
        "    pushq %r15\n"
        "    movq %rsp, (%rdi)\n"
        "    movq %rsi, %rsp\n"
        "    popq %r15\n"
        "    popq %r14\n"
        "    popq %r13\n"
        "    popq %r12\n"
        "    popq %rbx\n"
        "    popq %rbp\n"
        "    ret\n"
        "    .cfi_endproc\n"
        ".size gshmem_host_switch_registers, . - gshmem_host_switch_registers\n"
        ".p2align 4\n"
        ".hidden gshmem_host_start_context\n"
        ".globl gshmem_host_start_context\n"
        ".type gshmem_host_start_context, @function\n"
        "gshmem_host_start_context:\n"
        "    .cfi_startproc\n"
        "    .cfi_undefined rip\n" /* a debugger's backtrace ends here */
        "    movq %r13, %rdi\n"
        "    callq *%r12\n"
        "    ud2\n"
        "    .cfi_endproc\n"
        ".size gshmem_host_start_context, . - gshmem_host_start_context\n");

#else /* aarch64 */

enum { SAVED_WORDS = 20, SLOT_ENTRY = 0, SLOT_ARGUMENT = 1, SLOT_RETURN = 11 };

__asm__(".text\n"
        ".p2align 4\n"
        ".hidden gshmem_host_switch_registers\n"
        ".globl gshmem_host_switch_registers\n"
        ".type gshmem_host_switch_registers, %function\n"
        "gshmem_host_switch_registers:\n"
        "    .cfi_startproc\n"
        "    sub sp, sp, #160\n"
        "    stp x19, x20, [sp, #0]\n"
        "    stp x21, x22, [sp, #16]\n"
        "    stp x23, x24, [sp, #32]\n"
        "    stp x25, x26, [sp, #48]\n"
        "    stp x27, x28, [sp, #64]\n"
        "    stp x29, x30, [sp, #80]\n"
        "    stp d8, d9, [sp, #96]\n"
        "    stp d10, d11, [sp, #112]\n"
        "    stp d12, d13, [sp, #128]\n"
        "    stp d14, d15, [sp, #144]\n"
        "    mov x9, sp\n"
        "    str x9, [x0]\n"
        "    mov sp, x1\n"
        "    ldp x19, x20, [sp, #0]\n"
        "    ldp x21, x22, [sp, #16]\n"
        "    ldp x23, x24, [sp, #32]\n"
        "    ldp x25, x26, [sp, #48]\n"
        "    ldp x27, x28, [sp, #64]\n"
        "    ldp x29, x30, [sp, #80]\n"
        "    ldp d8, d9, [sp, #96]\n"
        "    ldp d10, d11, [sp, #112]\n"
        "    ldp d12, d13, [sp, #128]\n"
        "    ldp d14, d15, [sp, #144]\n"
        "    add sp, sp, #160\n"
        "    ret\n"
        "    .cfi_endproc\n"
        ".size gshmem_host_switch_registers, . - gshmem_host_switch_registers\n"
        ".p2align 4\n"
        ".hidden gshmem_host_start_context\n"
        ".globl gshmem_host_start_context\n"
        ".type gshmem_host_start_context, %function\n"
        "gshmem_host_start_context:\n"
        "    .cfi_startproc\n"
        "    .cfi_undefined x30\n"
        "    mov x0, x20\n"
        "    blr x19\n"
        "    brk #1\n"
        "    .cfi_endproc\n"
        ".size gshmem_host_start_context, . - gshmem_host_start_context\n");

#endif

static void host_context_prepare(struct stack *stack, void (*entry)(void *), void *argument)
{
    uintptr_t top = ((uintptr_t)stack->low + stack->size) & ~(uintptr_t)63;
    void **saved = (void **)top - 8 - (SAVED_WORDS + 1) / 2 * 2;

    /* After the return that starts it, x86-64's stack pointer is a multiple of 16 as a call wants.
     */
    if (SAVED_WORDS % 2)
        saved++;
    for (int i = 0; i < SAVED_WORDS; i++)
        saved[i] = NULL;
    saved[SLOT_ENTRY] = (void *)entry;
    saved[SLOT_ARGUMENT] = argument;
    saved[SLOT_RETURN] = (void *)gshmem_host_start_context;
    stack->sp = saved;
}

static void switch_registers(struct stack *from, struct stack *to)
{
    gshmem_host_switch_registers(&from->sp, to->sp);
}

#endif

void context_prepare(struct stack *stack, void (*entry)(void *), void *argument)
{
    stack->asan = NULL;
    host_context_prepare(stack, entry, argument);
}

void context_entered(struct stack *stack)
{
    if (__sanitizer_finish_switch_fiber)
        __sanitizer_finish_switch_fiber(stack->asan, NULL, NULL);
}

void context_switch_watched(struct stack *from, struct stack *to)
{
    if (under_tsan())
        __tsan_switch_to_fiber(to->tsan, TSAN_NO_SYNC);
    if (__sanitizer_start_switch_fiber)
        __sanitizer_start_switch_fiber(&from->asan, to->low, to->size);
    switch_registers(from, to);
    if (__sanitizer_finish_switch_fiber)
        __sanitizer_finish_switch_fiber(from->asan, NULL, NULL);
}

void context_leave(struct stack *from, struct stack *to)
{
    if (under_tsan())
        __tsan_switch_to_fiber(to->tsan, TSAN_NO_SYNC);
    if (__sanitizer_start_switch_fiber)
        __sanitizer_start_switch_fiber(NULL, to->low, to->size);
    switch_registers(from, to);
    __builtin_unreachable();
}
