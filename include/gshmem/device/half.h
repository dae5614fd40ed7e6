/* What makes half and bfloat16 types of reductions: gshmem_typed_sum_reduce<__half> and so on. For
 * programs that include it (nvshmem.h does), as CUDA's headers of these types take their time: that of
 * bfloat16 takes nvcc a fifth of a second, and who uses the type includes it, before this or after. */
#ifndef GSHMEM_DEVICE_HALF_H
#define GSHMEM_DEVICE_HALF_H

#include <cuda_fp16.h>
#ifdef __NVCC__
struct __nv_bfloat16;
#else
#include <cuda_bf16.h>
#endif

#include "gshmem_device.h"

template <> __host__ __device__ constexpr enum gshmem_type gshmem_type_of<__half>(void)
{
    return GSHMEM_TYPE_HALF;
}

template <> __host__ __device__ constexpr enum gshmem_type gshmem_type_of<__nv_bfloat16>(void)
{
    return GSHMEM_TYPE_BFLOAT16;
}

#endif
