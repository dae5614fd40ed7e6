/* What CUDA offers inside kernels: barriers, warps, fences, bits. Atomics and mathematics are in
 * headers of their own. */
#ifndef GSHMEM_HOST_DEVICE_DEVICE_FUNCTIONS_H
#define GSHMEM_HOST_DEVICE_DEVICE_FUNCTIONS_H

#include <stdint.h>
#include <string.h>

#include "execution.h"

/* Where the caller stands, for reports of waits that cannot end. */
#define GSHMEM_HOST_PLACE const char *file = __builtin_FILE(), int line = __builtin_LINE()

static constexpr int warpSize = 32;

/* --- Block --- */

static inline void __syncthreads(GSHMEM_HOST_PLACE)
{
    gshmem_host_barrier_block(GSHMEM_HOST_BARRIER, 0, file, line);
}

static inline int __syncthreads_count(int predicate, GSHMEM_HOST_PLACE)
{
    return gshmem_host_barrier_block(GSHMEM_HOST_BARRIER_COUNT, predicate, file, line);
}

static inline int __syncthreads_and(int predicate, GSHMEM_HOST_PLACE)
{
    return gshmem_host_barrier_block(GSHMEM_HOST_BARRIER_AND, predicate, file, line);
}

static inline int __syncthreads_or(int predicate, GSHMEM_HOST_PLACE)
{
    return gshmem_host_barrier_block(GSHMEM_HOST_BARRIER_OR, predicate, file, line);
}

/* --- Warp --- */

static inline void __syncwarp(unsigned mask = 0xffffffff, GSHMEM_HOST_PLACE)
{
    gshmem_host_warp(GSHMEM_HOST_WARP_SYNC, mask, 0, 0, file, line);
}

static inline unsigned __activemask(GSHMEM_HOST_PLACE)
{
    return gshmem_host_active_mask(file, line);
}

static inline unsigned __ballot_sync(unsigned mask, int predicate, GSHMEM_HOST_PLACE)
{
    return (unsigned)gshmem_host_warp(GSHMEM_HOST_WARP_BALLOT, mask, predicate != 0, 0, file, line);
}

static inline int __any_sync(unsigned mask, int predicate, GSHMEM_HOST_PLACE)
{
    return __ballot_sync(mask, predicate, file, line) != 0;
}

static inline int __all_sync(unsigned mask, int predicate, GSHMEM_HOST_PLACE)
{
    return __ballot_sync(mask, !predicate, file, line) == 0;
}

namespace gshmem_host
{

/* The type in which CUDA's overloads take a value: integers smaller than int are promoted. */
template <class T> struct exchanged {
    typedef T type;
};
#define GSHMEM_HOST_PROMOTED(small)                                                                \
    template <> struct exchanged<small> {                                                          \
        typedef int type;                                                                          \
    };
GSHMEM_HOST_PROMOTED(bool)
GSHMEM_HOST_PROMOTED(char)
GSHMEM_HOST_PROMOTED(signed char)
GSHMEM_HOST_PROMOTED(unsigned char)
GSHMEM_HOST_PROMOTED(short)
GSHMEM_HOST_PROMOTED(unsigned short)
#undef GSHMEM_HOST_PROMOTED

template <class T> inline uint64_t to_bits(T value)
{
    static_assert(sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8,
                  "warps exchange values of 2, 4 or 8 bytes");
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof value);
    return bits;
}

template <class T> inline T from_bits(uint64_t bits)
{
    T value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

template <class T>
inline typename exchanged<T>::type shuffle(unsigned mask, T value, unsigned source,
                                           const char *file, int line)
{
    typedef typename exchanged<T>::type type;

    return from_bits<type>(
        gshmem_host_warp(GSHMEM_HOST_WARP_SHUFFLE, mask, to_bits<type>(value), source, file, line));
}

} /* namespace gshmem_host */

/* Lanes work in groups of width, a power of two. A lane that names a lane outside its group gets
 * its own value. */
template <class T>
inline typename gshmem_host::exchanged<T>::type
__shfl_sync(unsigned mask, T value, int source, int width = 32, GSHMEM_HOST_PLACE)
{
    unsigned w = (unsigned)width, first = gshmem_host_lane() & ~(w - 1);

    return gshmem_host::shuffle(mask, value, first | ((unsigned)source & (w - 1)), file, line);
}

template <class T>
inline typename gshmem_host::exchanged<T>::type
__shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, GSHMEM_HOST_PLACE)
{
    unsigned lane = gshmem_host_lane(), within = lane & ((unsigned)width - 1);

    return gshmem_host::shuffle(mask, value, delta <= within ? lane - delta : lane, file, line);
}

template <class T>
inline typename gshmem_host::exchanged<T>::type
__shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, GSHMEM_HOST_PLACE)
{
    unsigned w = (unsigned)width, lane = gshmem_host_lane(), within = lane & (w - 1);

    return gshmem_host::shuffle(mask, value, delta < w - within ? lane + delta : lane, file, line);
}

template <class T>
inline typename gshmem_host::exchanged<T>::type
__shfl_xor_sync(unsigned mask, T value, int lanes, int width = 32, GSHMEM_HOST_PLACE)
{
    unsigned w = (unsigned)width, lane = gshmem_host_lane(), source = lane ^ (unsigned)lanes;

    return gshmem_host::shuffle(mask, value, source < (lane & ~(w - 1)) + w ? source : lane, file,
                                line);
}

template <class T> inline unsigned __match_any_sync(unsigned mask, T value, GSHMEM_HOST_PLACE)
{
    return (unsigned)gshmem_host_warp(
        GSHMEM_HOST_WARP_MATCH, mask,
        gshmem_host::to_bits<typename gshmem_host::exchanged<T>::type>(value), 0, file, line);
}

template <class T>
inline unsigned __match_all_sync(unsigned mask, T value, int *predicate, GSHMEM_HOST_PLACE)
{
    unsigned same = (unsigned)gshmem_host_warp(
        GSHMEM_HOST_WARP_MATCH_ALL, mask,
        gshmem_host::to_bits<typename gshmem_host::exchanged<T>::type>(value), 0, file, line);
    *predicate = same != 0;
    return same;
}

#define GSHMEM_HOST_REDUCE(name, type, kind)                                                       \
    static inline type __reduce_##name##_sync(unsigned mask, type value, GSHMEM_HOST_PLACE)        \
    {                                                                                              \
        return (type)gshmem_host_warp(GSHMEM_HOST_WARP_##kind, mask, (uint32_t)value, 0, file,     \
                                      line);                                                       \
    }
GSHMEM_HOST_REDUCE(add, unsigned, ADD)
GSHMEM_HOST_REDUCE(add, int, ADD)
GSHMEM_HOST_REDUCE(min, unsigned, MIN)
GSHMEM_HOST_REDUCE(min, int, MIN_SIGNED)
GSHMEM_HOST_REDUCE(max, unsigned, MAX)
GSHMEM_HOST_REDUCE(max, int, MAX_SIGNED)
GSHMEM_HOST_REDUCE(and, unsigned, AND)
GSHMEM_HOST_REDUCE(or, unsigned, OR)
GSHMEM_HOST_REDUCE(xor, unsigned, XOR)
#undef GSHMEM_HOST_REDUCE

/* --- Memory and time --- */

static inline void __threadfence_block()
{
    gshmem_host_fence();
}

static inline void __threadfence()
{
    gshmem_host_fence();
}

static inline void __threadfence_system()
{
    gshmem_host_fence();
}

template <class T> inline T __ldg(const T *address)
{
    return *address;
}

#define GSHMEM_HOST_LOAD(name)                                                                     \
    template <class T> inline T name(const T *address)                                             \
    {                                                                                              \
        return *address;                                                                           \
    }
GSHMEM_HOST_LOAD(__ldcg)
GSHMEM_HOST_LOAD(__ldca)
GSHMEM_HOST_LOAD(__ldcs)
GSHMEM_HOST_LOAD(__ldlu)
GSHMEM_HOST_LOAD(__ldcv)
#undef GSHMEM_HOST_LOAD

#define GSHMEM_HOST_STORE(name)                                                                    \
    template <class T> inline void name(T *address, T value)                                       \
    {                                                                                              \
        *address = value;                                                                          \
    }
GSHMEM_HOST_STORE(__stwb)
GSHMEM_HOST_STORE(__stcg)
GSHMEM_HOST_STORE(__stcs)
GSHMEM_HOST_STORE(__stwt)
#undef GSHMEM_HOST_STORE

static inline void __nanosleep(unsigned nanoseconds)
{
    gshmem_host_sleep(nanoseconds);
}

static inline long long clock64()
{
    return (long long)gshmem_host_clock();
}

/* <time.h> has clock() with another meaning; kernels get the low half of clock64(). */
static inline unsigned long long __globaltimer()
{
    return gshmem_host_clock();
}

static inline void __trap_at(GSHMEM_HOST_PLACE)
{
    gshmem_host_trap("__trap", file, line);
}
#define __trap() __trap_at()

/* --- Bits --- */

static inline int __popc(unsigned x)
{
    return __builtin_popcount(x);
}

static inline int __popcll(unsigned long long x)
{
    return __builtin_popcountll(x);
}

static inline int __clz(int x)
{
    return x ? __builtin_clz((unsigned)x) : 32;
}

static inline int __clzll(long long x)
{
    return x ? __builtin_clzll((unsigned long long)x) : 64;
}

static inline int __ffs(int x)
{
    return __builtin_ffs(x);
}

static inline int __ffsll(long long x)
{
    return __builtin_ffsll(x);
}

static inline unsigned __brev(unsigned x)
{
    x = (x >> 1 & 0x55555555u) | (x & 0x55555555u) << 1;
    x = (x >> 2 & 0x33333333u) | (x & 0x33333333u) << 2;
    x = (x >> 4 & 0x0f0f0f0fu) | (x & 0x0f0f0f0fu) << 4;
    return __builtin_bswap32(x);
}

static inline unsigned long long __brevll(unsigned long long x)
{
    return (unsigned long long)__brev((unsigned)x) << 32 | __brev((unsigned)(x >> 32));
}

static inline unsigned __byte_perm(unsigned low, unsigned high, unsigned selector)
{
    uint64_t bytes = (uint64_t)high << 32 | low;
    unsigned result = 0;

    for (int i = 0; i < 4; i++) {
        unsigned choice = selector >> 4 * i & 0xf;
        unsigned byte = (unsigned)(bytes >> 8 * (choice & 7)) & 0xff;
        if (choice & 8)
            byte = byte & 0x80 ? 0xff : 0;
        result |= byte << 8 * i;
    }
    return result;
}

static inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift)
{
    return (unsigned)(((uint64_t)high << 32 | low) << (shift & 31) >> 32);
}

static inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift)
{
    return (unsigned)(((uint64_t)high << 32 | low) >> (shift & 31));
}

#endif
