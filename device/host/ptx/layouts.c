/* Functions whose arguments CUDA 13 lays out differently from the host device's own headers.
 * gshmem-ptxcc gives nvcc's calls of them these names. */
#define _GNU_SOURCE
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "device/host/errors.h"

enum {
    PROPERTIES_BYTES = 1008,
    ATTRIBUTES_BYTES = 144,
    LAUNCH_ATTRIBUTE_BYTES = 72, /* of which the value is behind the first 8 */
    LAUNCH_ATTRIBUTES_MOST = 32,
};

struct place {
    size_t to, from, bytes;
};
#define PROPERTY(offset, name)                                                                     \
    {                                                                                              \
        offset, offsetof(struct cudaDeviceProp, name), sizeof((struct cudaDeviceProp *)0)->name    \
    }
static const struct place properties_places[] = {
    PROPERTY(0, name),
    PROPERTY(288, totalGlobalMem),
    PROPERTY(296, sharedMemPerBlock),
    PROPERTY(304, regsPerBlock),
    PROPERTY(308, warpSize),
    PROPERTY(320, maxThreadsPerBlock),
    PROPERTY(324, maxThreadsDim),
    PROPERTY(336, maxGridSize),
    PROPERTY(352, totalConstMem),
    PROPERTY(360, major),
    PROPERTY(364, minor),
    PROPERTY(384, multiProcessorCount),
    PROPERTY(388, integrated),
    PROPERTY(392, canMapHostMemory),
    PROPERTY(560, concurrentKernels),
    PROPERTY(568, pciBusID),
    PROPERTY(572, pciDeviceID),
    PROPERTY(576, pciDomainID),
    PROPERTY(584, asyncEngineCount),
    PROPERTY(588, unifiedAddressing),
    PROPERTY(592, memoryBusWidth),
    PROPERTY(596, l2CacheSize),
    PROPERTY(604, maxThreadsPerMultiProcessor),
    PROPERTY(624, sharedMemPerMultiprocessor),
    PROPERTY(636, managedMemory),
    PROPERTY(652, pageableMemoryAccess),
    PROPERTY(656, concurrentManagedAccess),
    PROPERTY(668, cooperativeLaunch),
    PROPERTY(672, sharedMemPerBlockOptin),
    PROPERTY(688, maxBlocksPerMultiProcessor),
};
#define ATTRIBUTE(offset, name)                                                                    \
    {                                                                                              \
        offset, offsetof(struct cudaFuncAttributes, name),                                         \
            sizeof((struct cudaFuncAttributes *)0)->name                                           \
    }
static const struct place attributes_places[] = {
    ATTRIBUTE(0, sharedSizeBytes), ATTRIBUTE(8, constSizeBytes),
    ATTRIBUTE(16, localSizeBytes), ATTRIBUTE(24, maxThreadsPerBlock),
    ATTRIBUTE(28, numRegs),        ATTRIBUTE(32, ptxVersion),
    ATTRIBUTE(36, binaryVersion),  ATTRIBUTE(44, maxDynamicSharedSizeBytes),
};

static void lay_out(void *to, const void *from, const struct place *places, size_t n)
{
    for (size_t i = 0; i < n; i++)
        memcpy((char *)to + places[i].to, (const char *)from + places[i].from, places[i].bytes);
}

#pragma GCC visibility push(default)
cudaError_t gshmem_host_ptx_cudaGetDeviceProperties(void *properties, int device);
cudaError_t gshmem_host_ptx_cudaFuncGetAttributes(void *attributes, const void *function);
cudaError_t gshmem_host_ptx_cudaLaunchKernelExC(const cudaLaunchConfig_t *config,
                                                const void *function, void **arguments);
cudaError_t gshmem_host_ptx_cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph,
                                                 unsigned long long flags);
cudaError_t gshmem_host_ptx_cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int *blocks, const void *function, int threads, size_t shared, unsigned flags);
#pragma GCC visibility pop

/* What nvcc's headers call where the host device's have it without flags. */
cudaError_t gshmem_host_ptx_cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int *blocks, const void *function, int threads, size_t shared, unsigned flags)
{
    (void)flags; /* about caching global memory */
    return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, threads, shared);
}

/* Inline in the host device's headers, since CUDA 11 and 12 have it with different arguments. */
cudaError_t gshmem_host_ptx_cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph,
                                                 unsigned long long flags)
{
    return cudaGraphInstantiateWithFlags(exec, graph, flags);
}

cudaError_t gshmem_host_ptx_cudaGetDeviceProperties(void *properties, int device)
{
    struct cudaDeviceProp own;
    cudaError_t error = cudaGetDeviceProperties(properties ? &own : NULL, device);

    if (error)
        return error;
    memset(properties, 0, PROPERTIES_BYTES);
    lay_out(properties, &own, properties_places,
            sizeof properties_places / sizeof properties_places[0]);
    return cudaSuccess;
}

cudaError_t gshmem_host_ptx_cudaFuncGetAttributes(void *attributes, const void *function)
{
    struct cudaFuncAttributes own;
    cudaError_t error = cudaFuncGetAttributes(attributes ? &own : NULL, function);

    if (error)
        return error;
    memset(attributes, 0, ATTRIBUTES_BYTES);
    lay_out(attributes, &own, attributes_places,
            sizeof attributes_places / sizeof attributes_places[0]);
    return cudaSuccess;
}

/* The configuration is laid out alike; its attributes are longer there. */
cudaError_t gshmem_host_ptx_cudaLaunchKernelExC(const cudaLaunchConfig_t *config,
                                                const void *function, void **arguments)
{
    cudaLaunchAttribute own[LAUNCH_ATTRIBUTES_MOST];

    if (!config || config->numAttrs > LAUNCH_ATTRIBUTES_MOST ||
        (config->numAttrs && !config->attrs))
        return report_error(cudaErrorInvalidValue);
    cudaLaunchConfig_t copy = *config;
    for (unsigned i = 0; i < config->numAttrs; i++) {
        const char *at = (const char *)config->attrs + i * LAUNCH_ATTRIBUTE_BYTES;

        memcpy(&own[i].id, at, sizeof own[i].id);
        memcpy(&own[i].val, at + 8, sizeof own[i].val);
    }
    copy.attrs = own;
    return cudaLaunchKernelExC(&copy, function, arguments);
}
