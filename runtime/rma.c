/* Put and get, out of line: strided forms, signals, and whatever inline code could not do. */
#include <stdatomic.h>
#include <string.h>

#include "runtime/context.h"

gshmem_status_t gshmem_path_put(gshmem_ctx_t ctx, void *dest, const void *source, size_t bytes,
                                int pe, int nbi)
{
    void *there;
    gshmem_status_t status = context_reach(ctx, dest, bytes, pe, "put", &there);

    (void)nbi; /* mapped: done on return */
    if (status)
        return status;
    gshmem_copy(there, source, bytes);
    return GSHMEM_OK;
}

gshmem_status_t gshmem_path_get(gshmem_ctx_t ctx, void *dest, const void *source, size_t bytes,
                                int pe, int nbi)
{
    void *there;
    gshmem_status_t status = context_reach(ctx, source, bytes, pe, "get", &there);

    (void)nbi;
    if (status)
        return status;
    gshmem_copy(dest, there, bytes);
    return GSHMEM_OK;
}

/* ---- Strided ---- */

/* Blocks of `run` bytes, to_step and from_step bytes apart. The common sizes are loops of single
 * moves; a call per element would cost several times the move. */
static void copy_blocks(char *to, const char *from, size_t to_step, size_t from_step, size_t run,
                        size_t n)
{
    switch (run) {
    case 4:
        for (size_t i = 0; i < n; i++)
            memcpy(to + i * to_step, from + i * from_step, 4);
        break;
    case 8:
        for (size_t i = 0; i < n; i++)
            memcpy(to + i * to_step, from + i * from_step, 8);
        break;
    default:
        for (size_t i = 0; i < n; i++)
            memcpy(to + i * to_step, from + i * from_step, run);
    }
}

struct strided {
    size_t run;       /* bytes moved at once */
    size_t to_step;   /* bytes from one block to the next */
    size_t from_step;
    size_t to_span;   /* bytes from the first byte to the last */
    size_t from_span;
};

static gshmem_status_t check_strides(const char *call, ptrdiff_t dst, ptrdiff_t sst, size_t block,
                                     size_t element, size_t n, struct strided *s)
{
    size_t to_end, from_end;

    if (dst < 1 || sst < 1 || (size_t)dst < block || (size_t)sst < block)
        return fail(GSHMEM_ERR_ARGUMENT,
                    "%s: strides are %td and %td elements; they must be at least %zu, the block",
                    call, dst, sst, block);
    if (__builtin_mul_overflow(block, element, &s->run) ||
        __builtin_mul_overflow((size_t)dst, element, &s->to_step) ||
        __builtin_mul_overflow((size_t)sst, element, &s->from_step) ||
        __builtin_mul_overflow(n - 1, s->to_step, &to_end) ||
        __builtin_mul_overflow(n - 1, s->from_step, &from_end) ||
        __builtin_add_overflow(to_end, s->run, &s->to_span) ||
        __builtin_add_overflow(from_end, s->run, &s->from_span))
        return fail(GSHMEM_ERR_ARGUMENT,
                    "%s: %zu blocks of %zu elements of %zu B with strides %td and %td exceed memory",
                    call, n, block, element, dst, sst);
    return GSHMEM_OK;
}

static gshmem_status_t put_strided(const char *call, gshmem_ctx_t ctx, void *dest,
                                   const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t block,
                                   size_t element, size_t n, int pe)
{
    struct strided s = {.to_span = 0};
    gshmem_status_t status = GSHMEM_OK;
    void *there;

    if (n && block)
        status = check_strides(call, dst, sst, block, element, n, &s);
    if (!status)
        status = context_reach(ctx, dest, s.to_span, pe, call, &there);
    if (!status && s.run)
        copy_blocks(there, source, s.to_step, s.from_step, s.run, n);
    return status;
}

static gshmem_status_t get_strided(const char *call, gshmem_ctx_t ctx, void *dest,
                                   const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t block,
                                   size_t element, size_t n, int pe)
{
    struct strided s = {.to_span = 0};
    gshmem_status_t status = GSHMEM_OK;
    void *there;

    if (n && block)
        status = check_strides(call, dst, sst, block, element, n, &s);
    if (!status)
        status = context_reach(ctx, source, s.from_span, pe, call, &there);
    if (!status && s.run)
        copy_blocks(dest, there, s.to_step, s.from_step, s.run, n);
    return status;
}

gshmem_status_t gshmem_ctx_iputmem(gshmem_ctx_t ctx, void *dest, const void *source, ptrdiff_t dst,
                                   ptrdiff_t sst, size_t element, size_t n, int pe)
{
    return put_strided("iput", ctx, dest, source, dst, sst, 1, element, n, pe);
}

gshmem_status_t gshmem_ctx_igetmem(gshmem_ctx_t ctx, void *dest, const void *source, ptrdiff_t dst,
                                   ptrdiff_t sst, size_t element, size_t n, int pe)
{
    return get_strided("iget", ctx, dest, source, dst, sst, 1, element, n, pe);
}

gshmem_status_t gshmem_ctx_ibputmem(gshmem_ctx_t ctx, void *dest, const void *source, ptrdiff_t dst,
                                    ptrdiff_t sst, size_t block, size_t element, size_t n, int pe)
{
    return put_strided("ibput", ctx, dest, source, dst, sst, block, element, n, pe);
}

gshmem_status_t gshmem_ctx_ibgetmem(gshmem_ctx_t ctx, void *dest, const void *source, ptrdiff_t dst,
                                    ptrdiff_t sst, size_t block, size_t element, size_t n, int pe)
{
    return get_strided("ibget", ctx, dest, source, dst, sst, block, element, n, pe);
}

/* ---- Signals ---- */

static gshmem_status_t reach_signal(gshmem_ctx_t ctx, uint64_t *sig_addr, int signal_op, int pe,
                                    const char *call, uint64_t **there)
{
    if (signal_op != GSHMEM_SIGNAL_SET && signal_op != GSHMEM_SIGNAL_ADD)
        return fail(GSHMEM_ERR_ARGUMENT,
                    "%s: signal_op is %d; it is GSHMEM_SIGNAL_SET or GSHMEM_SIGNAL_ADD", call,
                    signal_op);
    if ((uintptr_t)sig_addr % sizeof *sig_addr)
        return fail(GSHMEM_ERR_ARGUMENT, "%s: sig_addr %p is not aligned to 8 bytes", call,
                    (void *)sig_addr);
    return context_reach(ctx, sig_addr, sizeof *sig_addr, pe, call, (void **)there);
}

/* release: pairs with the acquire in gshmem_signal_fetch and the waits: who sees it sees the data */
static void update_signal(uint64_t *there, uint64_t signal, int signal_op)
{
    if (signal_op == GSHMEM_SIGNAL_SET)
        __atomic_store_n(there, signal, __ATOMIC_RELEASE);
    else
        __atomic_fetch_add(there, signal, __ATOMIC_RELEASE);
}

gshmem_status_t gshmem_ctx_putmem_signal(gshmem_ctx_t ctx, void *dest, const void *source,
                                         size_t bytes, uint64_t *sig_addr, uint64_t signal,
                                         int signal_op, int pe)
{
    uint64_t *there;
    gshmem_status_t status = reach_signal(ctx, sig_addr, signal_op, pe, "put_signal", &there);

    if (status || (status = gshmem_ctx_putmem(ctx, dest, source, bytes, pe)))
        return status;
    update_signal(there, signal, signal_op);
    return GSHMEM_OK;
}

gshmem_status_t gshmem_ctx_putmem_signal_nbi(gshmem_ctx_t ctx, void *dest, const void *source,
                                             size_t bytes, uint64_t *sig_addr, uint64_t signal,
                                             int signal_op, int pe)
{
    return gshmem_ctx_putmem_signal(ctx, dest, source, bytes, sig_addr, signal, signal_op, pe);
}

static gshmem_status_t signal_alone(gshmem_ctx_t ctx, uint64_t *sig_addr, uint64_t signal,
                                    int signal_op, int pe, const char *call)
{
    uint64_t *there;
    gshmem_status_t status = reach_signal(ctx, sig_addr, signal_op, pe, call, &there);

    if (!status)
        update_signal(there, signal, signal_op);
    return status;
}

gshmem_status_t gshmem_ctx_signal_add(gshmem_ctx_t ctx, uint64_t *sig_addr, uint64_t signal, int pe)
{
    return signal_alone(ctx, sig_addr, signal, GSHMEM_SIGNAL_ADD, pe, "signal_add");
}

gshmem_status_t gshmem_ctx_signal_set(gshmem_ctx_t ctx, uint64_t *sig_addr, uint64_t signal, int pe)
{
    return signal_alone(ctx, sig_addr, signal, GSHMEM_SIGNAL_SET, pe, "signal_set");
}
