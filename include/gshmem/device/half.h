/* Makes half and bfloat16 types of reductions: gshmem_typed_sum_reduce<__half> and so on. For
 * programs that include it (nvshmem.h does), as CUDA's headers of these types take long to
 * compile. */
#ifndef GSHMEM_DEVICE_HALF_H
#define GSHMEM_DEVICE_HALF_H

#include <cuda_bf16.h>
#include <cuda_fp16.h>

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
