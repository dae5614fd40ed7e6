/* Where a signal has interrupted a thread, and its stack. */
#ifndef GSHMEM_RUNTIME_BASE_PROGRAM_COUNTER_H
#define GSHMEM_RUNTIME_BASE_PROGRAM_COUNTER_H

#ifndef _GNU_SOURCE
#error "REG_RIP needs _GNU_SOURCE, before the first include"
#endif

#include <stdint.h>
#include <ucontext.h>

/* The address of its next instruction, from the handler's third argument; 0: not known on this
 * processor. */
static inline uintptr_t program_counter(const ucontext_t *context)
{
#if defined(__x86_64__)
    return (uintptr_t)context->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
    return (uintptr_t)context->uc_mcontext.pc;
#else
    (void)context;
    return 0;
#endif
}

/* The address of the innermost word of its stack; 0: not known. */
static inline uintptr_t stack_pointer(const ucontext_t *context)
{
#if defined(__x86_64__)
    return (uintptr_t)context->uc_mcontext.gregs[REG_RSP];
#elif defined(__aarch64__)
    return (uintptr_t)context->uc_mcontext.sp;
#else
    (void)context;
    return 0;
#endif
}

#endif
