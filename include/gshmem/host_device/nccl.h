/* <nccl.h>, with half and bfloat16 of the host device (toolkit.h), which has no floats of 8 bits.
 * Programs compile with it; the library's calls do not link, and a line says so: with gcc at those
 * by which programs begin. */
#include "cuda_bf16.h"
#include "cuda_fp16.h"
#define __CUDA_FP8_H__
#if defined(__clang__) && __has_attribute(warning) /* as GSHMEM_HOST_NOT_LINKED */
#pragma clang attribute push(                                                                      \
    __attribute__((                                                                                \
        warning("the host device has no NCCL: this call compiles, and does not link"))),           \
    apply_to = function)
#include_next <nccl.h>
#pragma clang attribute pop
#else
#include_next <nccl.h>
#if !defined(__clang__) && !defined(GSHMEM_HOST_DEVICE_NCCL_H)
#define GSHMEM_HOST_DEVICE_NCCL_H
extern __typeof__(ncclGetVersion) ncclGetVersion GSHMEM_HOST_NOT_LINKED("NCCL");
extern __typeof__(ncclGetUniqueId) ncclGetUniqueId GSHMEM_HOST_NOT_LINKED("NCCL");
extern __typeof__(ncclCommInitRank) ncclCommInitRank GSHMEM_HOST_NOT_LINKED("NCCL");
extern __typeof__(ncclCommInitAll) ncclCommInitAll GSHMEM_HOST_NOT_LINKED("NCCL");
#endif
#endif
