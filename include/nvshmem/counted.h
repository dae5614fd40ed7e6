/* NVSHMEM's counted signals, which are gshmem/counted.h's. */
#ifndef NVSHMEM_COUNTED_H
#define NVSHMEM_COUNTED_H

#include "nvshmem/base.h"

/* Of this PE's own signal, while no PE adds to it. */
NVSHMEM_EITHER void nvshmemx_signal_counted_reset(uint64_t *signal_addr)
{
    gshmem_raise(gshmem_signal_counted_reset(signal_addr));
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
    gshmem_signal_counted_wait_until((uint64_t *)signal_addr, expected);
}

#ifdef GSHMEM_CUDA
/* By all threads of a block. The source may be reused after a flush or a quiet. A PE that is not
 * mapped takes it from memory that the proxy can read, and so not from shared memory of a GPU. */
GSHMEM_KERNEL int nvshmemx_putmem_signal_counted_nbi_block(void *dest, const void *source,
                                                           size_t bytes, uint64_t *signal_addr,
                                                           int pe)
{
    return (int)gshmem_putmem_signal_counted_nbi_block(dest, source, bytes, signal_addr, pe);
}
#endif

#endif
