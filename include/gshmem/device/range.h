/* Ranges of the program in kernels. A GPU has nobody who takes them. */
#ifndef GSHMEM_DEVICE_RANGE_H
#define GSHMEM_DEVICE_RANGE_H

#include "gshmem/device/scope.h"

/* nvcc's code runs on the host device, which defines them for it. */
#ifdef GSHMEM_PTX
extern "C" __device__ void gshmem_host_range_begins(const char *name);
extern "C" __device__ void gshmem_host_range_ends(void);
#endif

GSHMEM_KERNEL void gshmem_kernel_range_push(const char *name)
{
#if defined(GSHMEM_HOST_DEVICE) || (defined(GSHMEM_PTX) && defined(__CUDA_ARCH__))
    gshmem_host_range_begins(name);
#else
    (void)name;
#endif
}

GSHMEM_KERNEL void gshmem_kernel_range_pop(void)
{
#if defined(GSHMEM_HOST_DEVICE) || (defined(GSHMEM_PTX) && defined(__CUDA_ARCH__))
    gshmem_host_range_ends();
#endif
}

GSHMEM_EITHER void gshmem_range_push(const char *name)
{
    GSHMEM_RETURN(gshmem_kernel_range_push(name), gshmem_on_host::gshmem_range_push(name));
}

GSHMEM_EITHER void gshmem_range_pop(void)
{
    GSHMEM_RETURN(gshmem_kernel_range_pop(), gshmem_on_host::gshmem_range_pop());
}

#endif
