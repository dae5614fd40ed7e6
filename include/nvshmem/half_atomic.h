/* Atomics on half. No CPU, NIC or message of GSHMEM updates two bytes: an update is a compare-swap
 * of the four bytes around the object, repeated until it succeeds. So it is made by the agent that
 * makes all updates of these bytes, on each path, and an update on another node takes two round
 * trips. The other half of the four bytes keeps its value. */
#ifndef NVSHMEM_HALF_ATOMIC_H
#define NVSHMEM_HALF_ATOMIC_H

#include "nvshmem/base.h"

NVSHMEM_EITHER __half nvshmem_half_of(uint32_t bits)
{
    const uint16_t low = (uint16_t)bits;
    __half value;

    memcpy((void *)&value, &low, sizeof value);
    return value;
}

NVSHMEM_EITHER uint32_t nvshmem_half_bits(__half value)
{
    uint16_t bits;

    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* Where the four bytes begin. An odd address stays as it is, and is refused. */
NVSHMEM_EITHER uint32_t *nvshmem_half_word(const __half *object)
{
    const uintptr_t at = (uintptr_t)object;

    return (uint32_t *)(at % sizeof(__half) ? at : at & ~(uintptr_t)3);
}

/* Adds value or stores it; returns the old value. After a failure, which was handed to the error
 * policy, a call returns 0, and what was compared is 0 in the next turn at the latest. */
NVSHMEM_EITHER __half nvshmem_half_update(__half *dest, __half value, int add, int pe)
{
    uint32_t *word = nvshmem_half_word(dest);
    const unsigned shift = 8 * (unsigned)((uintptr_t)dest & 2);
    uint32_t seen = gshmem_uint32_atomic_fetch(word, pe), was;
    __half old;

    do {
        was = seen;
        old = nvshmem_half_of(was >> shift);
        const __half wanted =
            add ? __float2half_rn(__half2float(old) + __half2float(value)) : value;
        const uint32_t kept = was & ~((uint32_t)0xffff << shift);
        seen = gshmem_uint32_atomic_compare_swap(word, was,
                                                 kept | nvshmem_half_bits(wanted) << shift, pe);
    } while (seen != was);
    return old;
}

NVSHMEM_EITHER __half nvshmem_half_atomic_fetch(const __half *source, int pe)
{
    const unsigned shift = 8 * (unsigned)((uintptr_t)source & 2);

    return nvshmem_half_of(gshmem_uint32_atomic_fetch(nvshmem_half_word(source), pe) >> shift);
}

NVSHMEM_EITHER void nvshmem_half_atomic_set(__half *dest, __half value, int pe)
{
    nvshmem_half_update(dest, value, 0, pe);
}

NVSHMEM_EITHER __half nvshmem_half_atomic_swap(__half *dest, __half value, int pe)
{
    return nvshmem_half_update(dest, value, 0, pe);
}

NVSHMEM_EITHER __half nvshmemx_half_atomic_fetch_add(__half *dest, __half value, int pe)
{
    return nvshmem_half_update(dest, value, 1, pe);
}

NVSHMEM_EITHER void nvshmemx_half_atomic_add(__half *dest, __half value, int pe)
{
    nvshmem_half_update(dest, value, 1, pe);
}

#endif
