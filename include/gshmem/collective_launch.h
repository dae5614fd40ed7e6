/* Kernels whose blocks wait for each other and for other PEs must all run at once. These functions
 * launch such a kernel, or say that it does not fit. They need CUDA's runtime API, or the host
 * device's. */
#ifndef GSHMEM_COLLECTIVE_LAUNCH_H
#define GSHMEM_COLLECTIVE_LAUNCH_H

#include <string.h>

#include "gshmem_names_begin.h"

#include "gshmem/stream.h"

static inline cudaError_t gshmem_blocks_at_once(const void *func, dim3 block, size_t shared,
                                                int *blocks)
{
    int device = 0, processors = 0, each = 0;
    cudaError_t error = cudaGetDevice(&device);

    if (!error)
        error = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
    if (!error)
        error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(
            &each, func, (int)(block.x * block.y * block.z), shared);
    *blocks = processors * each;
    return error;
}

/* *blocks: how many blocks of the kernel can run at one time. On the host device a launch may have
 * more, up to 131,072 threads, where the machine has memory for their stacks. */
GSHMEM_NODISCARD static inline gshmem_status_t
gshmem_collective_launch_query_gridsize(const void *func, dim3 block, void **arguments,
                                        size_t shared, int *blocks)
{
    int fit = 0;
    cudaError_t error = gshmem_blocks_at_once(func, block, shared, &fit);

    (void)arguments;
    if (!error)
        *blocks = fit;
    return gshmem_path_cuda("gshmem_collective_launch_query_gridsize", (int)error,
                            cudaGetErrorString(error));
}

/* Whether a grid fits; a grid of 0 blocks becomes the largest that does. `call` is the function
 * that an error line names. */
static inline gshmem_status_t gshmem_fit_grid(const void *func, dim3 *grid, dim3 block,
                                              size_t shared, const char *call)
{
    int fit = 0, cooperative = 0, device = 0;
    cudaError_t error = gshmem_blocks_at_once(func, block, shared, &fit);

    if (!error)
        error = cudaGetDevice(&device);
    if (!error)
        error = cudaDeviceGetAttribute(&cooperative, cudaDevAttrCooperativeLaunch, device);
    if (error)
        return gshmem_path_cuda(call, (int)error, cudaGetErrorString(error));
    if (!cooperative)
        return gshmem_path_not_cooperative(device);
    if (grid->x == 0 && grid->y == 0 && grid->z == 0) {
        grid->x = (unsigned)fit;
        grid->y = grid->z = 1;
    }
#ifdef GSHMEM_HOST_DEVICE /* a grid that is asked for may be larger than those that usually run */
    error = gshmem_host_cooperative_blocks(&fit, func, (int)(block.x * block.y * block.z));
    if (error)
        return gshmem_path_cuda(call, (int)error, cudaGetErrorString(error));
#endif
    const unsigned long long blocks = (unsigned long long)grid->x * grid->y * grid->z;
    return fit == 0 || blocks > (unsigned)fit ? gshmem_path_too_many_blocks(blocks, fit)
                                              : GSHMEM_OK;
}

/* Launches, as cudaLaunchKernel does, a kernel that synchronizes across blocks or PEs. All PEs
 * whose kernels synchronize with each other call it. A grid of 0 blocks stands for as many as can
 * run at one time.
 *
 * Kernels of PEs that share one GPU run in turns, by time slices, unless the PEs are under one MPS
 * server. Kernels that wait for each other then make progress slowly. An atomic by a PE of another
 * node, or of a GPU without access to this one, needs a small kernel on this GPU. Therefore a grid
 * that fills the GPU and waits for such an update never ends. */
GSHMEM_NODISCARD static inline gshmem_status_t
gshmem_collective_launch(const void *func, dim3 grid, dim3 block, void **arguments, size_t shared,
                         cudaStream_t stream)
{
    static const char call[] = "gshmem_collective_launch";
    gshmem_status_t status = gshmem_fit_grid(func, &grid, block, shared, call);

    if (status)
        return status;
    cudaError_t error = cudaLaunchCooperativeKernel(func, grid, block, arguments, shared, stream);
    return gshmem_path_cuda(call, (int)error, cudaGetErrorString(error));
}

#if !defined(CUDART_VERSION) || CUDART_VERSION >= 11080
/* The same with a configuration as cudaLaunchKernelExC takes it. Its attributes, at most 31, are
 * kept; a cooperative launch is added, unless they say whether it is one. */
GSHMEM_NODISCARD static inline gshmem_status_t
gshmem_collective_launch_attr(const cudaLaunchConfig_t *config, const void *func, void **arguments)
{
    static const char call[] = "gshmem_collective_launch_attr";
    cudaLaunchAttribute attributes[32];
    const size_t most = sizeof attributes / sizeof attributes[0];
    cudaError_t error = cudaErrorInvalidValue;
    int said = 0;

    if (!config || config->numAttrs >= most || (config->numAttrs && !config->attrs))
        return gshmem_path_cuda(call, (int)error, cudaGetErrorString(error));
    cudaLaunchConfig_t with = *config;
    gshmem_status_t status =
        gshmem_fit_grid(func, &with.gridDim, with.blockDim, with.dynamicSmemBytes, call);
    if (status)
        return status;
    for (unsigned i = 0; i < with.numAttrs; i++) {
        attributes[i] = config->attrs[i];
        said |= attributes[i].id == cudaLaunchAttributeCooperative;
    }
    with.attrs = attributes;
    if (!said) {
        memset(&attributes[with.numAttrs], 0, sizeof attributes[0]);
        attributes[with.numAttrs].id = cudaLaunchAttributeCooperative;
        attributes[with.numAttrs++].val.cooperative = 1;
    }
    error = cudaLaunchKernelExC(&with, func, arguments);
    return gshmem_path_cuda(call, (int)error, cudaGetErrorString(error));
}
#endif

#include "gshmem_names_end.h"

#endif
