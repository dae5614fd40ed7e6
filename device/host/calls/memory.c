/* cudaMalloc, cudaFree and their kin. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdlib.h>

#include "device/host/calls/devices.h"
#include "device/host/memory/allocations.h"
#include "device/host/streams/graph.h"
#include "device/host/streams/stream.h"

enum { PITCH = 512 };

static cudaError_t memory_give(void **pointer, size_t bytes, enum cudaMemoryType type)
{
    void *p = NULL;

    if (!pointer)
        return report_error(cudaErrorInvalidValue);
    if (device_error())
        return report_error(device_error());
    if (!bytes) {
        *pointer = NULL;
        return cudaSuccess;
    }
    if (posix_memalign(&p, ALLOCATION_ALIGNMENT, bytes) != 0)
        return report_error(cudaErrorMemoryAllocation);
    if (!allocation_remember((struct allocation){p, bytes, type, false, device_current()})) {
        free(p);
        return report_error(cudaErrorMemoryAllocation);
    }
    *pointer = p;
    return cudaSuccess;
}

/* Freeing waits for the device, as on a GPU: a kernel may still use the memory. */
static cudaError_t memory_take_back(void *pointer, bool host)
{
    if (!pointer)
        return cudaSuccess;
    if (!work_may_wait())
        return report_error(cudaErrorNotPermitted);
    cudaError_t error = streams_wait_all();
    if (!allocation_forget(pointer, host, false))
        return report_error(cudaErrorInvalidValue);
    free(pointer);
    return report_error(error);
}

cudaError_t cudaMalloc(void **pointer, size_t bytes)
{
    return memory_give(pointer, bytes, cudaMemoryTypeDevice);
}

cudaError_t cudaMallocPitch(void **pointer, size_t *pitch, size_t width, size_t height)
{
    size_t row = (width + PITCH - 1) / PITCH * PITCH;

    if (!pitch || (height && row > SIZE_MAX / height))
        return report_error(cudaErrorInvalidValue);
    cudaError_t error = cudaMalloc(pointer, row * height);
    if (!error)
        *pitch = row;
    return error;
}

cudaError_t cudaMallocManaged(void **pointer, size_t bytes, unsigned flags)
{
    (void)flags;
    return memory_give(pointer, bytes, cudaMemoryTypeManaged);
}

cudaError_t cudaHostAlloc(void **pointer, size_t bytes, unsigned flags)
{
    (void)flags;
    return memory_give(pointer, bytes, cudaMemoryTypeHost);
}

cudaError_t cudaMallocHost(void **pointer, size_t bytes)
{
    return cudaHostAlloc(pointer, bytes, cudaHostAllocDefault);
}

cudaError_t cudaFree(void *pointer)
{
    return memory_take_back(pointer, false);
}

cudaError_t cudaFreeHost(void *pointer)
{
    return memory_take_back(pointer, true);
}

cudaError_t cudaMallocAsync(void **pointer, size_t bytes, cudaStream_t stream)
{
    struct CUstream_st *s = stream_find(stream);

    if (!s)
        return report_error(cudaErrorInvalidResourceHandle);
    cudaError_t error = graph_refuses(&s->capture);
    return error ? report_error(error) : cudaMalloc(pointer, bytes);
}

static void free_later(void *pointer)
{
    if (allocation_forget(pointer, false, false))
        free(pointer);
}

cudaError_t cudaFreeAsync(void *pointer, cudaStream_t stream)
{
    struct CUstream_st *s = stream_find(stream);
    cudaError_t error = s ? graph_refuses(&s->capture) : cudaSuccess;

    if (error)
        return report_error(error);
    return pointer ? cudaLaunchHostFunc(stream, free_later, pointer) : cudaSuccess;
}

/* The device reaches every page, registered or not; but copies of pinned memory do not wait. */
cudaError_t cudaHostRegister(void *pointer, size_t bytes, unsigned flags)
{
    (void)flags;
    if (!pointer || !bytes || (uintptr_t)pointer > UINTPTR_MAX - bytes)
        return report_error(cudaErrorInvalidValue);
    if (device_error())
        return report_error(device_error());
    return report_error(allocation_register(
        (struct allocation){pointer, bytes, cudaMemoryTypeHost, true, device_current()}));
}

cudaError_t cudaHostUnregister(void *pointer)
{
    if (!pointer)
        return report_error(cudaErrorInvalidValue);
    return report_error(allocation_forget(pointer, true, true) ? device_error()
                                                               : cudaErrorHostMemoryNotRegistered);
}

cudaError_t cudaHostGetDevicePointer(void **device, void *host, unsigned flags)
{
    if (!device || !host || flags)
        return report_error(cudaErrorInvalidValue);
    *device = host;
    return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *pointer)
{
    struct allocation a = {.type = cudaMemoryTypeUnregistered, .device = -1};

    if (!attributes)
        return report_error(cudaErrorInvalidValue);
    if (device_error())
        return report_error(device_error());
    bool known = allocation_look_up(pointer, device_current(), &a);
    *attributes = (struct cudaPointerAttributes){
        .type = a.type,
        .device = a.device,
        .devicePointer = known ? (void *)(uintptr_t)pointer : NULL,
        .hostPointer = known ? (void *)(uintptr_t)pointer : NULL,
    };
    return cudaSuccess;
}
