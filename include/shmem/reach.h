/* Common to the inline forms of shmem.h's functions: how this PE's address of an object becomes a
 * peer's.
 *
 * They read the context that the library names. Once a tool has replaced a function that exists
 * inline, the library names a context without PEs: every call then goes out of line, by the
 * function's name, and the tool sees it. */
#ifndef SHMEM_REACH_H
#define SHMEM_REACH_H

/* A body that is only ever inlined; the function with this name is in the library. */
#define SHMEM_INLINE extern inline __attribute__((gnu_inline))
#define SHMEM_ALWAYS extern inline __attribute__((gnu_inline, always_inline))

/* The default context, or one without PEs if calls are to go out of line. */
extern GSHMEM_API const struct gshmem_ctx *gshmem_shmem_view;

/* Where a peer's segment begins, plus an offset; NULL if it is not mapped. */
SHMEM_ALWAYS void *gshmem_shmem_address(uintptr_t peer, size_t offset)
{
    if (GSHMEM_UNLIKELY(!peer))
        return NULL;
    if (peer + offset == 0)
        __builtin_unreachable(); /* otherwise every caller would test the sum for NULL again */
    return (void *)(peer + offset);
}

/* Copies 1 KiB or more by the method that suits the size: gshmem_path_copy (gshmem/rma.h), called
 * through a variable. Therefore a program need not be linked with the library that has it. */
extern GSHMEM_API void (*const gshmem_shmem_copy_much)(void *to, const void *from, size_t bytes);

/* The address at which pe's copy of the object at mine is mapped in this process; NULL: call the
 * library. It does what gshmem_ctx_reach does. These bodies cannot call that function, because it
 * is static. */
SHMEM_ALWAYS void *gshmem_shmem_reach(shmem_ctx_t ctx, const void *mine, size_t bytes, int pe)
{
    const struct gshmem_ctx *view = gshmem_shmem_view;

    if (ctx != SHMEM_CTX_DEFAULT) {
        if (GSHMEM_UNLIKELY(ctx == SHMEM_CTX_INVALID || view->n_pes == 0))
            return NULL;
        view = ctx;
    }
    if (GSHMEM_UNLIKELY((uint32_t)pe >= (uint32_t)view->n_pes))
        return NULL;
    size_t offset = (uintptr_t)mine - view->heap.base;
    if (GSHMEM_LIKELY(offset < view->heap.bytes && bytes <= view->heap.bytes - offset))
        return gshmem_shmem_address(view->heap.peer[pe], offset);
    offset = (uintptr_t)mine - view->data.base;
    if (GSHMEM_LIKELY(offset < view->data.bytes && bytes <= view->data.bytes - offset))
        return gshmem_shmem_address(view->data.peer[pe], offset);
    return NULL;
}

/* NULL also for an object that is not aligned to its size. */
SHMEM_ALWAYS void *gshmem_shmem_reach_atomic(shmem_ctx_t ctx, const void *mine, size_t bytes,
                                             int pe)
{
    if (GSHMEM_UNLIKELY((uintptr_t)mine & (bytes - 1)))
        return NULL;
    return gshmem_shmem_reach(ctx, mine, bytes, pe);
}

/* The bytes of n elements. Where the product would overflow, a number that is larger than any
 * object. */
SHMEM_ALWAYS size_t gshmem_shmem_bytes(size_t n, size_t element)
{
    return GSHMEM_UNLIKELY(n > SIZE_MAX / element) ? SIZE_MAX : n * element;
}

/* Like gshmem_copy and the functions it calls (gshmem/rma.h has the reasons). */
SHMEM_ALWAYS void gshmem_shmem_copy_end_last(char *to, const char *from, size_t bytes)
{
    size_t most = bytes - 8;

    __asm__("" : "+r"(most));
    __builtin_memcpy(to, from, most);
    __asm__ volatile("" : : : "memory");
    __builtin_memcpy(to + most, from + most, 8);
}

SHMEM_ALWAYS void gshmem_shmem_copy(void *to, const void *from, size_t bytes)
{
    if (bytes == 8)
        __builtin_memcpy(to, from, 8);
    else if (bytes == 4)
        __builtin_memcpy(to, from, 4);
    else if (GSHMEM_UNLIKELY(bytes >= 1024))
        gshmem_shmem_copy_much(to, from, bytes);
    else if (bytes == 2)
        __builtin_memcpy(to, from, 2);
    else if (bytes < 8 || __builtin_constant_p(bytes))
        __builtin_memcpy(to, from, bytes);
    else
        gshmem_shmem_copy_end_last((char *)to, (const char *)from, bytes);
}

#endif
