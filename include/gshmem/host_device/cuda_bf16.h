/* CUDA's bfloat16 and pairs of it, for programs built for the host device. */
#ifndef GSHMEM_HOST_DEVICE_CUDA_BF16_H
#define GSHMEM_HOST_DEVICE_CUDA_BF16_H

#define __CUDA_BF16_H__ /* as in toolkit.h */

#include "gshmem_names_begin.h"

#include "small_float.h"

typedef gshmem_host::small<gshmem_host::bfloat16_format> __nv_bfloat16;
typedef gshmem_host::small_pair<gshmem_host::bfloat16_format> __nv_bfloat162;
typedef __nv_bfloat16::raw __nv_bfloat16_raw;
typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat162 nv_bfloat162;

GSHMEM_HOST_SMALL_NAMES(__nv_bfloat16, __nv_bfloat162, bfloat16, bfloat162)

#include "gshmem_names_end.h"

#endif
