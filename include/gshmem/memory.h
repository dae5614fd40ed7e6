/* Memory operations on words that two agents share: the GPU's threads, CPU threads, and the proxy.
 *
 * The header serves nvcc and the compilers of C and C++. For nvcc it has inline PTX at system
 * scope, without <cuda/atomic>, which takes longer to compile than all the rest; for the others it
 * has the builtins behind C11's atomics. Each comment says what the operation orders. "Earlier" and
 * "later" refer to the program order of the calling thread. */
#ifndef GSHMEM_MEMORY_H
#define GSHMEM_MEMORY_H

#include <stdint.h>

#if defined(__CUDACC__)
#define GSHMEM_DEVICE static __host__ __device__ __forceinline__
#else
#define GSHMEM_DEVICE static inline
#endif

/* Orders nothing; the value is never torn. */
GSHMEM_DEVICE uint64_t gshmem_load_relaxed(const uint64_t *at)
{
#if defined(__CUDA_ARCH__)
    uint64_t value;
    asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(at) : "memory");
    return value;
#else
    return __atomic_load_n(at, __ATOMIC_RELAXED);
#endif
}

/* No later access moves before it. If it reads what a release wrote, everything earlier than that
 * release is visible to everything later than this load. */
GSHMEM_DEVICE uint64_t gshmem_load_acquire(const uint64_t *at)
{
#if defined(__CUDA_ARCH__)
    uint64_t value;
    asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(at) : "memory");
    return value;
#else
    return __atomic_load_n(at, __ATOMIC_ACQUIRE);
#endif
}

/* The same for 4 bytes. */
GSHMEM_DEVICE uint32_t gshmem_load_relaxed_32(const uint32_t *at)
{
#if defined(__CUDA_ARCH__)
    uint32_t value;
    asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
    return value;
#else
    return __atomic_load_n(at, __ATOMIC_RELAXED);
#endif
}

/* gshmem_load_acquire for 4 and 2 bytes. */
GSHMEM_DEVICE uint32_t gshmem_load_acquire_32(const uint32_t *at)
{
#if defined(__CUDA_ARCH__)
    uint32_t value;
    asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
    return value;
#else
    return __atomic_load_n(at, __ATOMIC_ACQUIRE);
#endif
}

GSHMEM_DEVICE uint16_t gshmem_load_acquire_16(const uint16_t *at)
{
#if defined(__CUDA_ARCH__)
    uint16_t value;
    asm volatile("ld.acquire.sys.global.u16 %0, [%1];" : "=h"(value) : "l"(at) : "memory");
    return value;
#else
    return __atomic_load_n(at, __ATOMIC_ACQUIRE);
#endif
}

/* Orders nothing; the value is never torn. */
GSHMEM_DEVICE void gshmem_store_relaxed(uint64_t *at, uint64_t value)
{
#if defined(__CUDA_ARCH__)
    asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(at), "l"(value) : "memory");
#else
    __atomic_store_n(at, value, __ATOMIC_RELAXED);
#endif
}

/* No earlier access moves after it: a thread that reads the value with acquire sees everything
 * before it. */
GSHMEM_DEVICE void gshmem_store_release(uint64_t *at, uint64_t value)
{
#if defined(__CUDA_ARCH__)
    asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(at), "l"(value) : "memory");
#else
    __atomic_store_n(at, value, __ATOMIC_RELEASE);
#endif
}

/* Adds atomically towards all agents of the system. No earlier access moves after it. */
GSHMEM_DEVICE void gshmem_add_release(uint64_t *at, uint64_t value)
{
#if defined(__CUDA_ARCH__)
    asm volatile("red.release.sys.global.add.u64 [%0], %1;" ::"l"(at), "l"(value) : "memory");
#else
    __atomic_fetch_add(at, value, __ATOMIC_RELEASE);
#endif
}

/* Stores two words at a 16-byte boundary, in one access where the machine has one. Orders nothing.
 * A word is never torn; the pair may be. */
GSHMEM_DEVICE void gshmem_store_pair_relaxed(uint64_t *at, uint64_t first, uint64_t second)
{
#if defined(__CUDA_ARCH__)
    asm volatile("st.relaxed.sys.global.v2.u64 [%0], {%1, %2};" ::"l"(at), "l"(first), "l"(second)
                 : "memory");
#else
    __atomic_store_n(at, first, __ATOMIC_RELAXED);
    __atomic_store_n(at + 1, second, __ATOMIC_RELAXED);
#endif
}

/* The same, but no earlier access moves after the first word: a thread that reads that word with
 * acquire sees everything before it. */
GSHMEM_DEVICE void gshmem_store_pair_release(uint64_t *at, uint64_t first, uint64_t second)
{
#if defined(__CUDA_ARCH__)
    asm volatile("st.release.sys.global.v2.u64 [%0], {%1, %2};" ::"l"(at), "l"(first), "l"(second)
                 : "memory");
#else
    __atomic_store_n(at, first, __ATOMIC_RELEASE);
    __atomic_store_n(at + 1, second, __ATOMIC_RELAXED);
#endif
}

/* ---- Among the threads of this device, for memory of this device ----------------------------- */

/* Orders nothing; the value is never torn. */
GSHMEM_DEVICE uint64_t gshmem_device_load(const uint64_t *at)
{
#if defined(__CUDA_ARCH__)
    uint64_t value;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(at) : "memory");
    return value;
#else
    return __atomic_load_n(at, __ATOMIC_RELAXED);
#endif
}

GSHMEM_DEVICE uint32_t gshmem_device_load_32(const uint32_t *at)
{
#if defined(__CUDA_ARCH__)
    uint32_t value;
    asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
    return value;
#else
    return __atomic_load_n(at, __ATOMIC_RELAXED);
#endif
}

/* Everything earlier than the gshmem_raise_to that stored the value is visible to everything later
 * than this load. */
GSHMEM_DEVICE uint64_t gshmem_device_load_acquire(const uint64_t *at)
{
#if defined(__CUDA_ARCH__)
    uint64_t value;
    asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(at) : "memory");
    return value;
#else
    return __atomic_load_n(at, __ATOMIC_ACQUIRE);
#endif
}

/* Adds n, 1 or 2, and returns the old value. Orders nothing. Lanes of a warp that call it together
 * get consecutive numbers, by one atomic operation of one of them. */
GSHMEM_DEVICE uint64_t gshmem_take_ticket(uint64_t *counter, uint32_t n)
{
#if defined(__CUDA_ARCH__)
    unsigned lanes = __match_any_sync(__activemask(), (unsigned long long)counter);
    unsigned twos = __ballot_sync(lanes, n == 2), before, first = __ffs(lanes) - 1;
    unsigned long long was = 0;

    asm("mov.u32 %0, %%lanemask_lt;" : "=r"(before));
    if ((lanes & before) == 0)
        asm volatile("atom.relaxed.gpu.global.add.u64 %0, [%1], %2;"
                     : "=l"(was)
                     : "l"(counter), "l"((uint64_t)(__popc(lanes) + __popc(twos)))
                     : "memory");
    return __shfl_sync(lanes, was, first) + __popc(lanes & before) + __popc(twos & before);
#else
    return __atomic_fetch_add(counter, n, __ATOMIC_RELAXED);
#endif
}

/* Stores the maximum of *at and value in *at, and returns the old value. No earlier access moves
 * after it: a thread that reads the value with acquire sees everything before it. */
GSHMEM_DEVICE uint64_t gshmem_raise_to(uint64_t *at, uint64_t value)
{
#if defined(__CUDA_ARCH__)
    uint64_t was;
    asm volatile("atom.release.gpu.global.max.u64 %0, [%1], %2;"
                 : "=l"(was)
                 : "l"(at), "l"(value)
                 : "memory");
    return was;
#else
    uint64_t was = __atomic_load_n(at, __ATOMIC_RELAXED);
    while (was < value && !__atomic_compare_exchange_n(at, &was, value, 1, __ATOMIC_RELEASE,
                                                       __ATOMIC_RELAXED))
        ;
    return was;
#endif
}

/* Changes *at from `was` to `now`, and returns whether it did. If so, no later access moves before
 * it, and everything earlier than the gshmem_let_go that stored `was` is visible. */
GSHMEM_DEVICE int gshmem_claim(uint32_t *at, uint32_t was, uint32_t now)
{
#if defined(__CUDA_ARCH__)
    uint32_t found;
    asm volatile("atom.acquire.gpu.global.cas.b32 %0, [%1], %2, %3;"
                 : "=r"(found)
                 : "l"(at), "r"(was), "r"(now)
                 : "memory");
    return found == was;
#else
    return __atomic_compare_exchange_n(at, &was, now, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
#endif
}

GSHMEM_DEVICE void gshmem_let_go(uint32_t *at, uint32_t now)
{
#if defined(__CUDA_ARCH__)
    asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(at), "r"(now) : "memory");
#else
    __atomic_store_n(at, now, __ATOMIC_RELEASE); /* pairs with the acquire in gshmem_claim */
#endif
}

#endif
