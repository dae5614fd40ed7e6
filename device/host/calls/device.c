/* What the device is like. */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "device/host/blocks/workers.h"
#include "device/host/calls/devices.h"
#include "device/host/forks.h"
#include "device/host/streams/stream.h"
#include "gshmem/host_device/cuda.h"

enum {
    COMPUTE_MAJOR = 8, /* what its intrinsics amount to */
    COMPUTE_MINOR = 0,
    CLOCK_KHZ = 1000000, /* clock64() counts nanoseconds */
    GRID_MAX = 0x7fffffff,
    GRID_YZ_MAX = 65535,
    BLOCK_Z_MAX = 64,
    CONSTANT_BYTES = 64 << 10,
    PCI_DOMAIN = 0xffff, /* of no device of the machine */
    PCI_DEVICES = 32,    /* of a bus */
};

static size_t memory_bytes(int what)
{
    long pages = sysconf(what), page = sysconf(_SC_PAGESIZE);

    return pages > 0 && page > 0 ? (size_t)pages * (size_t)page : 0;
}

int gshmem_host_nvml(int by)
{
    static atomic_int inits;
    int n = atomic_load_explicit(&inits, memory_order_relaxed);

    while (n + by >= 0 && !atomic_compare_exchange_weak(&inits, &n, n + by))
        continue;
    return n;
}

cudaError_t cudaSetDeviceFlags(unsigned flags)
{
    (void)flags; /* how the host waits; it spins, then sleeps */
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device)
{
    struct capacity c;

    if (!device_exists(device))
        return report_error(cudaErrorInvalidDevice);
    if (!properties)
        return report_error(cudaErrorInvalidValue);
    if (!workers_start(&c))
        return report_error(cudaErrorInitializationError);
    *properties = (struct cudaDeviceProp){
        .totalGlobalMem = memory_bytes(_SC_PHYS_PAGES),
        .sharedMemPerBlock = SHARED_DEFAULT,
        .sharedMemPerBlockOptin = SHARED_MAX,
        .sharedMemPerMultiprocessor = (size_t)SHARED_MAX * c.blocks,
        .totalConstMem = CONSTANT_BYTES,
        .regsPerBlock = 65536,
        .warpSize = WARP_SIZE,
        .maxThreadsPerBlock = BLOCK_THREADS_MAX,
        .maxThreadsDim = {BLOCK_THREADS_MAX, BLOCK_THREADS_MAX, BLOCK_Z_MAX},
        .maxGridSize = {GRID_MAX, GRID_YZ_MAX, GRID_YZ_MAX},
        .clockRate = CLOCK_KHZ,
        .major = COMPUTE_MAJOR,
        .minor = COMPUTE_MINOR,
        .multiProcessorCount = (int)c.workers,
        .maxThreadsPerMultiProcessor = (int)c.threads,
        .maxBlocksPerMultiProcessor = (int)c.blocks,
        .integrated = 1,
        .canMapHostMemory = 1,
        .concurrentKernels = 1,
        .asyncEngineCount = 1,
        .unifiedAddressing = 1,
        .managedMemory = 1,
        .concurrentManagedAccess = 1,
        .pageableMemoryAccess = 1,
        .cooperativeLaunch = 1,
        .pciDomainID = PCI_DOMAIN,
        .pciBusID = device / PCI_DEVICES,
        .pciDeviceID = device % PCI_DEVICES,
        .memPitch = GRID_MAX,
        .textureAlignment = 512,
        .deviceOverlap = 1,
        .streamPrioritiesSupported = 1,
        .regsPerMultiprocessor = 65536,
        .hostNativeAtomicSupported = 1,
        .singleToDoublePrecisionPerfRatio = 2,
        .computePreemptionSupported = 1,
        .canUseHostPointerForRegisteredMem = 1,
        .pageableMemoryAccessUsesHostPageTables = 1,
        .directManagedMemAccessFromHost = 1,
        .hostRegisterSupported = 1,
        .deviceNumaId = -1,
        .hostNumaId = -1,
    };
    snprintf(properties->name, sizeof properties->name, "GSHMEM host device, %u thread%s",
             c.workers, c.workers == 1 ? "" : "s");
    return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char *text, int bytes, int device)
{
    char id[16];

    if (!device_exists(device))
        return report_error(cudaErrorInvalidDevice);
    int n = snprintf(id, sizeof id, "%04x:%02x:%02x.0", PCI_DOMAIN, (unsigned)device / PCI_DEVICES,
                     (unsigned)device % PCI_DEVICES);
    if (!text || bytes <= n)
        return report_error(cudaErrorInvalidValue);
    memcpy(text, id, (size_t)n + 1);
    return cudaSuccess;
}

cudaError_t cudaDeviceGetByPCIBusId(int *device, const char *text)
{
    unsigned domain, bus, number;

    if (!device || !text)
        return report_error(cudaErrorInvalidValue);
    if (sscanf(text, "%x:%x:%x", &domain, &bus, &number) != 3 || domain != PCI_DOMAIN ||
        number >= PCI_DEVICES || bus > 255 || !device_exists((int)(bus * PCI_DEVICES + number)))
        return report_error(cudaErrorInvalidDevice);
    *device = (int)(bus * PCI_DEVICES + number);
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device)
{
    struct cudaDeviceProp p;

    if (!value)
        return report_error(cudaErrorInvalidValue);
    cudaError_t error = cudaGetDeviceProperties(&p, device);
    if (error)
        return error;

    const struct {
        enum cudaDeviceAttr attribute;
        int value;
    } table[] = {
        {cudaDevAttrMaxThreadsPerBlock, p.maxThreadsPerBlock},
        {cudaDevAttrMaxBlockDimX, p.maxThreadsDim[0]},
        {cudaDevAttrMaxBlockDimY, p.maxThreadsDim[1]},
        {cudaDevAttrMaxBlockDimZ, p.maxThreadsDim[2]},
        {cudaDevAttrMaxGridDimX, p.maxGridSize[0]},
        {cudaDevAttrMaxGridDimY, p.maxGridSize[1]},
        {cudaDevAttrMaxGridDimZ, p.maxGridSize[2]},
        {cudaDevAttrMaxSharedMemoryPerBlock, (int)p.sharedMemPerBlock},
        {cudaDevAttrWarpSize, p.warpSize},
        {cudaDevAttrClockRate, p.clockRate},
        {cudaDevAttrMultiProcessorCount, p.multiProcessorCount},
        {cudaDevAttrIntegrated, p.integrated},
        {cudaDevAttrCanMapHostMemory, p.canMapHostMemory},
        {cudaDevAttrConcurrentKernels, p.concurrentKernels},
        {cudaDevAttrMaxThreadsPerMultiProcessor, p.maxThreadsPerMultiProcessor},
        {cudaDevAttrUnifiedAddressing, p.unifiedAddressing},
        {cudaDevAttrComputeCapabilityMajor, p.major},
        {cudaDevAttrComputeCapabilityMinor, p.minor},
        {cudaDevAttrManagedMemory, p.managedMemory},
        {cudaDevAttrPageableMemoryAccess, p.pageableMemoryAccess},
        {cudaDevAttrConcurrentManagedAccess, p.concurrentManagedAccess},
        {cudaDevAttrCooperativeLaunch, p.cooperativeLaunch},
        {cudaDevAttrMaxSharedMemoryPerBlockOptin, (int)p.sharedMemPerBlockOptin},
        {cudaDevAttrMaxBlocksPerMultiprocessor, p.maxBlocksPerMultiProcessor},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        if (table[i].attribute == attribute) {
            *value = table[i].value;
            return cudaSuccess;
        }
    }
    return report_error(cudaErrorInvalidValue);
}

cudaError_t cudaDeviceSynchronize(void)
{
    if (!work_may_wait())
        return report_error(cudaErrorNotPermitted);
    pthread_mutex_lock(&work_lock);
    bool captured = streams_captured(true);
    pthread_mutex_unlock(&work_lock);
    return report_error(captured ? cudaErrorStreamCaptureUnsupported : streams_wait_all());
}

cudaError_t cudaDeviceReset(void)
{
    if (!work_may_wait())
        return report_error(cudaErrorNotPermitted);
    if (forks_is_child()) /* its parent has the threads of the device, also after a reset */
        return report_error(cudaErrorInitializationError);
    streams_wait_all();
    errors_forget();
    return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    if (least)
        *least = 0;
    if (greatest)
        *greatest = 0;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    if (!version)
        return report_error(cudaErrorInvalidValue);
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version)
{
    return cuDriverGetVersion(version) ? report_error(cudaErrorInvalidValue) : cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total)
{
    if (!free_bytes || !total)
        return report_error(cudaErrorInvalidValue);
    if (device_error())
        return report_error(device_error());
    *free_bytes = memory_bytes(_SC_AVPHYS_PAGES);
    *total = memory_bytes(_SC_PHYS_PAGES);
    return cudaSuccess;
}
