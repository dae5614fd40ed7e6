/* Copies and fills that are done on return, and small memory for the library and kernels. */
#include "device/cuda/memory.h"

#include <string.h>

static gshmem_status_t memory_finish(struct cuda *c, cuda_result result, const char *what,
                                     const void *to, size_t bytes)
{
    if (!result)
        result = c->driver.stream_wait(c->stream);
    cuda_leave(c);
    return result ? cuda_fail(c, result, "%s %zu B to %p on GPU %d", what, bytes, to, c->gpu)
                  : GSHMEM_OK;
}

gshmem_status_t cuda_copy(struct device *base, void *to, const void *from, size_t bytes)
{
    struct cuda *c = cuda_of(base);
    gshmem_status_t status;

    if (bytes == 0)
        return GSHMEM_OK;
    if ((status = cuda_enter(c)))
        return status;
    return memory_finish(c,
                         c->driver.copy_async((cuda_address)(uintptr_t)to,
                                              (cuda_address)(uintptr_t)from, bytes, c->stream),
                         "copying", to, bytes);
}

gshmem_status_t cuda_fill(struct device *base, void *at, int byte, size_t bytes)
{
    struct cuda *c = cuda_of(base);
    gshmem_status_t status;

    if (bytes == 0)
        return GSHMEM_OK;
    if ((status = cuda_enter(c)))
        return status;
    return memory_finish(
        c, c->driver.fill_async((cuda_address)(uintptr_t)at, (unsigned char)byte, bytes, c->stream),
        "filling", at, bytes);
}

/* ---- Small memory ---- */

/* Shared memory is pinned, and mapped for the GPU: with unified addressing at the same address. */
static cuda_result memory_take(struct cuda *c, enum device_memory kind, size_t bytes, void **at)
{
    cuda_address address = 0;
    cuda_result result;

    if (kind == DEVICE_MEMORY_SHARED) {
        result = c->driver.host_allocate(at, bytes, CUDA_HOST_PORTABLE | CUDA_HOST_DEVICE_MAP);
    } else {
        result = c->driver.allocate(&address, bytes);
        *at = (void *)(uintptr_t)address;
    }
    return result;
}

void cuda_release(struct device *base, enum device_memory kind, void *at)
{
    struct cuda *c = cuda_of(base);

    if (!at || cuda_enter(c))
        return;
    if (kind == DEVICE_MEMORY_SHARED)
        c->driver.host_free(at);
    else
        c->driver.free((cuda_address)(uintptr_t)at);
    cuda_leave(c);
}

void *cuda_allocate(struct device *base, enum device_memory kind, size_t bytes)
{
    struct cuda *c = cuda_of(base);
    cuda_result result;
    void *at = NULL;

    if (cuda_enter(c))
        return NULL;
    result = memory_take(c, kind, bytes, &at);
    cuda_leave(c);
    if (result) {
        cuda_fail(c, result, "%zu KiB of %s memory on GPU %d", (bytes + 1023) >> 10,
                  kind == DEVICE_MEMORY_SHARED ? "pinned" : "GPU", c->gpu);
        return NULL;
    }
    if (kind == DEVICE_MEMORY_SHARED)
        return memset(at, 0, bytes);
    if (cuda_fill(base, at, 0, bytes)) {
        cuda_release(base, kind, at);
        return NULL;
    }
    return at;
}
