/* NVSHMEM's counted signals: a put adds the number of its bytes to a signal of the target, when
 * they have arrived. Several PEs may add to one signal. It is a signal as any other: puts with
 * NVSHMEM_SIGNAL_ADD count in it, too. */
#ifndef NVSHMEM_COUNTED_H
#define NVSHMEM_COUNTED_H

#include "nvshmem/base.h"

/* Host code has the agent of the signal set it, which may take time. */
static inline gshmem_status_t nvshmem_counted_reset_by_host(uint64_t *signal_addr)
{
    const gshmem_status_t status = gshmem_signal_set(signal_addr, 0, gshmem_my_pe());

    return status ? status : gshmem_quiet();
}

#ifdef GSHMEM_CUDA
/* A store is enough: nobody adds to it, and it is this device's own memory. */
GSHMEM_KERNEL gshmem_status_t nvshmem_counted_reset_here(uint64_t *signal_addr)
{
    gshmem_store_release(signal_addr, 0); /* pairs with the acquire of who loads or waits */
    return GSHMEM_OK;
}

GSHMEM_EITHER gshmem_status_t nvshmem_counted_reset(uint64_t *signal_addr)
{
    GSHMEM_RETURN(nvshmem_counted_reset_here(signal_addr),
                  nvshmem_counted_reset_by_host(signal_addr));
}
#else
#define nvshmem_counted_reset nvshmem_counted_reset_by_host
#endif

/* Of this PE's own signal, while no PE adds to it. */
NVSHMEM_EITHER void nvshmemx_signal_counted_reset(uint64_t *signal_addr)
{
    gshmem_raise(nvshmem_counted_reset(signal_addr));
}

NVSHMEM_EITHER uint64_t nvshmemx_signal_counted_load(const uint64_t *signal_addr)
{
    return gshmem_signal_fetch(signal_addr);
}

/* Waits until this PE's signal has come to `expected`, also past the largest number. After a
 * failure, which was handed to the error policy, it returns. */
NVSHMEM_EITHER void nvshmemx_signal_counted_wait_until(const uint64_t *signal_addr,
                                                       uint64_t expected)
{
    uint64_t seen = gshmem_signal_fetch(signal_addr), before;

    while ((seen - expected) >> 63) {
        before = seen;
        seen = gshmem_signal_wait_until((uint64_t *)signal_addr, GSHMEM_CMP_NE, before);
        if (seen == before)
            return;
    }
}

#ifdef GSHMEM_CUDA
/* By all threads of a block. The source may be reused after a flush or a quiet. A PE that is not
 * mapped takes it from memory that the proxy can read, and so not from shared memory of a GPU. */
GSHMEM_KERNEL int nvshmemx_putmem_signal_counted_nbi_block(void *dest, const void *source,
                                                           size_t bytes, uint64_t *signal_addr,
                                                           int pe)
{
    return (int)gshmem_kernel_put_signal<GSHMEM_SCOPE_BLOCK, true>(
        GSHMEM_CTX_DEFAULT, dest, source, bytes, signal_addr, (uint64_t)bytes, GSHMEM_SIGNAL_ADD,
        pe);
}
#endif

#endif
