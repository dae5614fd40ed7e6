/* Launches of kernels that synchronise, and modules loaded through the driver. */
#ifndef NVSHMEM_LAUNCH_H
#define NVSHMEM_LAUNCH_H

#include "nvshmem/base.h"
#include "gshmem/collective_launch.h"

static inline int nvshmemx_collective_launch(const void *func, dim3 gridDims, dim3 blockDims,
                                             void **args, size_t sharedMem, cudaStream_t stream)
{
    return (int)gshmem_collective_launch(func, gridDims, blockDims, args, sharedMem, stream);
}

static inline int nvshmemx_collective_launch_query_gridsize(const void *func, dim3 blockDims,
                                                            void **args, size_t sharedMem,
                                                            int *gridsize)
{
    return (int)gshmem_collective_launch_query_gridsize(func, blockDims, args, sharedMem, gridsize);
}

#if !defined(CUDART_VERSION) || CUDART_VERSION >= 11080
typedef struct {
    cudaLaunchConfig_t cuda_config;
} nvshmemx_collective_launch_attr_t;

static inline int nvshmemx_collective_launch_attr(const nvshmemx_collective_launch_attr_t *attr,
                                                  const void *func, void **args)
{
    return (int)gshmem_collective_launch_attr(attr ? &attr->cuda_config : NULL, func, args);
}
#endif

/* For modules that the driver loads. On the host device they are refused: kernels find the job by
 * themselves there, also those of PTX modules. */
static inline int nvshmemx_cumodule_init(CUmodule module)
{
    return (int)gshmem_cumodule_init((void *)module);
}

static inline int nvshmemx_cumodule_finalize(CUmodule module)
{
    return (int)gshmem_cumodule_finalize((void *)module);
}

static inline int nvshmemx_culibrary_init(CUlibrary library)
{
    return (int)gshmem_culibrary_init((void *)library);
}

static inline int nvshmemx_culibrary_finalize(CUlibrary library)
{
    return (int)gshmem_culibrary_finalize((void *)library);
}

#endif
