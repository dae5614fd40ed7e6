/* The few names of CUDA's headers that GSHMEM's headers for kernels use, for clang without CUDA's
 * headers: these differ by release, and clang reads only those that are older than itself. Included
 * before all else. Host code is not compiled. */
#ifndef GSHMEM_BITCODE_CUDA_H
#define GSHMEM_BITCODE_CUDA_H

#include <stddef.h>
#include <stdint.h>

#define __CUDACC__      1
#define __host__        __attribute__((host))
#define __device__      __attribute__((device))
#define __global__      __attribute__((global))
#define __constant__    __attribute__((constant))
#define __shared__      __attribute__((shared))
#define __forceinline__ inline __attribute__((always_inline))
/* clang's own headers use the word as an attribute's name */
#define __noinline__ __attribute__((noinline))

#define BITCODE_DEVICE static __device__ __forceinline__

struct uint3 {
    unsigned x, y, z;
};
struct dim3 {
    unsigned x, y, z;
};
struct alignas(16) ulonglong2 {
    unsigned long long x, y;
};
#include <__clang_cuda_builtin_vars.h> /* threadIdx … */

struct CUstream_st;
typedef struct CUstream_st *cudaStream_t;

/* __syncthreads is clang's own. */

BITCODE_DEVICE int __syncthreads_or(int mine)
{
    int any;

    asm volatile("{\n\t.reg .pred mine, any;\n\tsetp.ne.u32 mine, %1, 0;\n\t"
                 "bar.red.or.pred any, 0, mine;\n\tselp.u32 %0, 1, 0, any;\n\t}"
                 : "=r"(any)
                 : "r"(mine)
                 : "memory");
    return any;
}

BITCODE_DEVICE void __syncwarp(unsigned lanes)
{
    asm volatile("bar.warp.sync %0;" ::"r"(lanes) : "memory");
}

BITCODE_DEVICE void __threadfence_system(void)
{
    asm volatile("fence.sc.sys;" ::: "memory");
}

BITCODE_DEVICE void __trap(void)
{
    asm volatile("trap;");
}

BITCODE_DEVICE unsigned __ballot_sync(unsigned lanes, int mine)
{
    unsigned found;

    asm volatile("{\n\t.reg .pred mine;\n\tsetp.ne.u32 mine, %1, 0;\n\t"
                 "vote.sync.ballot.b32 %0, mine, %2;\n\t}"
                 : "=r"(found)
                 : "r"(mine), "r"(lanes));
    return found;
}

BITCODE_DEVICE int __any_sync(unsigned lanes, int mine)
{
    return __ballot_sync(lanes, mine) != 0;
}

BITCODE_DEVICE unsigned __match_any_sync(unsigned lanes, unsigned long long mine)
{
    unsigned same;

    asm volatile("match.any.sync.b64 %0, %1, %2;" : "=r"(same) : "l"(mine), "r"(lanes));
    return same;
}

BITCODE_DEVICE unsigned __activemask(void)
{
    unsigned lanes;

    asm volatile("activemask.b32 %0;" : "=r"(lanes));
    return lanes;
}

BITCODE_DEVICE int __popc(unsigned bits)
{
    return __builtin_popcount(bits);
}

BITCODE_DEVICE int __ffs(unsigned bits)
{
    return __builtin_ffs((int)bits);
}

BITCODE_DEVICE unsigned __shfl_sync(unsigned lanes, unsigned mine, int from)
{
    unsigned found;

    asm volatile("shfl.sync.idx.b32 %0, %1, %2, 31, %3;"
                 : "=r"(found)
                 : "r"(mine), "r"(from), "r"(lanes));
    return found;
}

BITCODE_DEVICE unsigned long long __shfl_sync(unsigned lanes, unsigned long long mine, int from)
{
    const unsigned low = __shfl_sync(lanes, (unsigned)mine, from);

    return (unsigned long long)__shfl_sync(lanes, (unsigned)(mine >> 32), from) << 32 | low;
}

BITCODE_DEVICE float __uint_as_float(unsigned bits)
{
    return __builtin_bit_cast(float, bits);
}

BITCODE_DEVICE unsigned __float_as_uint(float value)
{
    return __builtin_bit_cast(unsigned, value);
}

BITCODE_DEVICE void *__cvta_global_to_generic(size_t address)
{
    void *generic;

    asm("cvta.global.u64 %0, %1;" : "=l"(generic) : "l"(address));
    return generic;
}

BITCODE_DEVICE ulonglong2 make_ulonglong2(unsigned long long x, unsigned long long y)
{
    return {x, y};
}

BITCODE_DEVICE long long clock64(void)
{
    long long now;

    asm volatile("mov.u64 %0, %%clock64;" : "=l"(now));
    return now;
}

BITCODE_DEVICE float atomicAdd_system(float *at, float value)
{
    float was;

    asm volatile("atom.relaxed.sys.add.f32 %0, [%1], %2;"
                 : "=f"(was)
                 : "l"(at), "f"(value)
                 : "memory");
    return was;
}

BITCODE_DEVICE double atomicAdd_system(double *at, double value)
{
    double was;

    asm volatile("atom.relaxed.sys.add.f64 %0, [%1], %2;"
                 : "=d"(was)
                 : "l"(at), "d"(value)
                 : "memory");
    return was;
}

/* Half and bfloat16 as reductions use them: computed as float and rounded, to nearest and even,
 * after each step. This is exact for a sum or product of two. */
struct __half {
    uint16_t bits;

    __device__ __forceinline__ operator float() const
    {
        float value;
        asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
        return value;
    }
    __half() = default;
    __device__ __forceinline__ __half(float value)
    {
        asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    }
};

struct __nv_bfloat16 {
    uint16_t bits;

    __device__ __forceinline__ operator float() const
    {
        return __uint_as_float((unsigned)bits << 16);
    }
    __nv_bfloat16() = default;
    /* A NaN keeps one bit, whatever its payload. */
    __device__ __forceinline__ __nv_bfloat16(float value)
    {
        const unsigned whole = __float_as_uint(value);

        bits = value != value ? (uint16_t)0x7fff
                              : (uint16_t)((whole + 0x7fff + (whole >> 16 & 1)) >> 16);
    }
};

/* Parts of the headers that only host code has. */
#define GSHMEM_DEVICE_MODULE_H
#define GSHMEM_COLLECTIVE_LAUNCH_H

#endif
