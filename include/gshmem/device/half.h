/* Makes half and bfloat16 types of reductions: gshmem_typed_sum_reduce<__half> and so on. A
 * program that needs them includes this header (nvshmem.h does), because CUDA's headers of these
 * types take long to compile. */
#ifndef GSHMEM_DEVICE_HALF_H
#define GSHMEM_DEVICE_HALF_H

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "gshmem_device.h"

#include "gshmem_names_begin.h"

#define GSHMEM_HALF_small(name, in_kernels)                                                        \
    template <> __host__ __device__ constexpr enum gshmem_type gshmem_type_of<in_kernels>(void)    \
    {                                                                                              \
        return GSHMEM_TYPE_##name;                                                                 \
    }
#define GSHMEM_HALF_sint(name, in_kernels)
#define GSHMEM_HALF_uint(name, in_kernels)
#define GSHMEM_HALF_real(name, in_kernels)
#define GSHMEM_HALF_wide(name, in_kernels)
#define GSHMEM_HALF_pair(name, in_kernels)
#define X(name, number, text, type, in_kernels, class, ...) GSHMEM_HALF_##class(name, in_kernels)
GSHMEM_TYPE_TABLE(X)
#undef X

#include "gshmem_names_end.h"

#endif
