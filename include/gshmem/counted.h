/* Counted puts: completion by arrival, which needs no order.
 *
 * Each put adds the number of its bytes to a 64-bit counter of the target when its data has
 * arrived. The puts may come from several PEs, blocks and contexts, and arrive in any order: no
 * fence is between them, and a network that keeps no order is not slowed down. A PE that knows how
 * many bytes are due waits until the counter has come so far; it then sees the data of all of them.
 * A smaller number says only that so many bytes have arrived, not which.
 *
 * The counter is a signal as any other: puts with GSHMEM_SIGNAL_ADD count in it, too. It may go on
 * counting from one round to the next, also past the largest number. */
#ifndef GSHMEM_COUNTED_H
#define GSHMEM_COUNTED_H

/* gshmem.h includes this, and gshmem_device.h in CUDA sources. */
#include "gshmem/rma.h"

/* In kernels as well. */
#ifdef GSHMEM_CUDA
#define GSHMEM_COUNTED GSHMEM_EITHER
#else
#define GSHMEM_COUNTED static inline
#endif

/* Copies bytes to dest on pe, then adds bytes to the counter at sig_addr on pe. After the nbi form,
 * source may be reused only after gshmem_quiet. */
GSHMEM_NODISCARD GSHMEM_COUNTED gshmem_status_t gshmem_ctx_putmem_signal_counted(
    gshmem_ctx_t ctx, void *dest, const void *source, size_t bytes, uint64_t *sig_addr, int pe)
{
    return gshmem_ctx_putmem_signal(ctx, dest, source, bytes, sig_addr, bytes, GSHMEM_SIGNAL_ADD,
                                    pe);
}

GSHMEM_NODISCARD GSHMEM_COUNTED gshmem_status_t gshmem_ctx_putmem_signal_counted_nbi(
    gshmem_ctx_t ctx, void *dest, const void *source, size_t bytes, uint64_t *sig_addr, int pe)
{
    return gshmem_ctx_putmem_signal_nbi(ctx, dest, source, bytes, sig_addr, bytes,
                                        GSHMEM_SIGNAL_ADD, pe);
}

GSHMEM_NODISCARD GSHMEM_COUNTED gshmem_status_t gshmem_putmem_signal_counted(
    void *dest, const void *source, size_t bytes, uint64_t *sig_addr, int pe)
{
    return gshmem_ctx_putmem_signal_counted(GSHMEM_CTX_DEFAULT, dest, source, bytes, sig_addr, pe);
}

GSHMEM_NODISCARD GSHMEM_COUNTED gshmem_status_t gshmem_putmem_signal_counted_nbi(
    void *dest, const void *source, size_t bytes, uint64_t *sig_addr, int pe)
{
    return gshmem_ctx_putmem_signal_counted_nbi(GSHMEM_CTX_DEFAULT, dest, source, bytes, sig_addr,
                                                pe);
}

/* Waits until this PE's counter has come to `expected`. After a failure, which was handed to the
 * error policy, it returns. */
GSHMEM_COUNTED void gshmem_signal_counted_wait_until(uint64_t *sig_addr, uint64_t expected)
{
    uint64_t seen = gshmem_signal_fetch(sig_addr), before;

    while ((seen - expected) >> 63) {
        before = seen;
        seen = gshmem_signal_wait_until(sig_addr, GSHMEM_CMP_NE, before);
        if (seen == before)
            return;
    }
}

/* Sets this PE's counter to 0, while no PE adds to it. On the host the agent of the counter's
 * updates stores it, which may take time. */
#ifdef GSHMEM_CUDA
GSHMEM_KERNEL gshmem_status_t gshmem_kernel_counted_reset(uint64_t *sig_addr)
{
    gshmem_store_release(sig_addr, 0); /* pairs with the acquire of who loads or waits */
    return GSHMEM_OK;
}
#endif

static inline gshmem_status_t gshmem_counted_reset_by_host(uint64_t *sig_addr)
{
    const gshmem_status_t status = gshmem_signal_set(sig_addr, 0, gshmem_my_pe());

    return status ? status : gshmem_quiet();
}

GSHMEM_NODISCARD GSHMEM_COUNTED gshmem_status_t gshmem_signal_counted_reset(uint64_t *sig_addr)
{
#ifdef GSHMEM_CUDA
    GSHMEM_RETURN(gshmem_kernel_counted_reset(sig_addr), gshmem_counted_reset_by_host(sig_addr));
#else
    return gshmem_counted_reset_by_host(sig_addr);
#endif
}

/* By all threads of a warp or block together. */
#ifdef GSHMEM_CUDA
#define GSHMEM_KERNEL_COUNTED(suffix, scope)                                                       \
    GSHMEM_KERNEL gshmem_status_t gshmem_ctx_putmem_signal_counted##suffix(                        \
        gshmem_ctx_t ctx, void *dest, const void *source, size_t bytes, uint64_t *sig_addr,        \
        int pe)                                                                                    \
    {                                                                                              \
        return gshmem_kernel_put_signal<scope, false>(ctx, dest, source, bytes, sig_addr, bytes,   \
                                                      GSHMEM_SIGNAL_ADD, pe);                      \
    }                                                                                              \
    GSHMEM_KERNEL gshmem_status_t gshmem_ctx_putmem_signal_counted_nbi##suffix(                    \
        gshmem_ctx_t ctx, void *dest, const void *source, size_t bytes, uint64_t *sig_addr,        \
        int pe)                                                                                    \
    {                                                                                              \
        return gshmem_kernel_put_signal<scope, true>(ctx, dest, source, bytes, sig_addr, bytes,    \
                                                     GSHMEM_SIGNAL_ADD, pe);                       \
    }                                                                                              \
    GSHMEM_KERNEL gshmem_status_t gshmem_putmem_signal_counted##suffix(                            \
        void *dest, const void *source, size_t bytes, uint64_t *sig_addr, int pe)                  \
    {                                                                                              \
        return gshmem_ctx_putmem_signal_counted##suffix(GSHMEM_CTX_DEFAULT, dest, source, bytes,   \
                                                        sig_addr, pe);                             \
    }                                                                                              \
    GSHMEM_KERNEL gshmem_status_t gshmem_putmem_signal_counted_nbi##suffix(                        \
        void *dest, const void *source, size_t bytes, uint64_t *sig_addr, int pe)                  \
    {                                                                                              \
        return gshmem_ctx_putmem_signal_counted_nbi##suffix(GSHMEM_CTX_DEFAULT, dest, source,      \
                                                            bytes, sig_addr, pe);                  \
    }

GSHMEM_KERNEL_COUNTED(_warp, GSHMEM_SCOPE_WARP)
GSHMEM_KERNEL_COUNTED(_block, GSHMEM_SCOPE_BLOCK)
#endif

#endif
