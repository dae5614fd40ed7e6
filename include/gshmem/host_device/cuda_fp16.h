/* CUDA's half and half2, for programs built for the host device. */
#ifndef GSHMEM_HOST_DEVICE_CUDA_FP16_H
#define GSHMEM_HOST_DEVICE_CUDA_FP16_H

#define __CUDA_FP16_H__ /* as in toolkit.h */

#include "gshmem_names_begin.h"

#include "small_float.h"

typedef gshmem_host::small<gshmem_host::half_format> __half;
typedef gshmem_host::small_pair<gshmem_host::half_format> __half2;
typedef __half::raw __half_raw;
typedef __half half;
typedef __half2 half2;
typedef __half nv_half;
typedef __half2 nv_half2;

GSHMEM_HOST_SMALL_NAMES(__half, __half2, half, half2)

#include "gshmem_names_end.h"

#endif
