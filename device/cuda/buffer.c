/* Memory that the device did not make: whose it is, making it one that GPUs reach, and making
 * memory of a GPU one that NICs reach. */
#include "device/cuda/memory.h"

#include <unistd.h>

/* ---- Whose it is ---- */

/* 0 for memory that no call of the driver made. */
static unsigned kind_of(const struct cuda *c, cuda_address at)
{
    unsigned kind = 0;

    return c->driver.pointer_attribute(&kind, CUDA_POINTER_MEMORY_TYPE, at) ? 0 : kind;
}

/* Where the allocation that `at` is in ends. */
static bool buffer_end_of(const struct cuda *c, cuda_address at, cuda_address *end)
{
    cuda_address start = 0;
    size_t bytes = 0;

    if (c->driver.pointer_attribute(&start, CUDA_POINTER_RANGE_START, at) ||
        c->driver.pointer_attribute(&bytes, CUDA_POINTER_RANGE_BYTES, at))
        return false;
    *end = start + bytes;
    return *end > at;
}

/* From one allocation to the next, which may lie side by side, as the pieces of a heap do. Where
 * the driver does not say how far one goes its last byte has to do. */
static bool is_all(const struct cuda *c, cuda_address at, size_t bytes, unsigned kind)
{
    const cuda_address end = at + bytes;
    cuda_address next;

    if (bytes == 0 || end < at)
        return false;
    for (; at < end; at = next) {
        if (kind_of(c, at) != kind)
            return false;
        if (!buffer_end_of(c, at, &next))
            return kind_of(c, end - 1) == kind;
    }
    return true;
}

static bool cuda_is_gpu_memory(const struct cuda *c, cuda_address at, size_t bytes)
{
    return is_all(c, at, bytes, CUDA_MEMORY_GPU);
}

bool cuda_owns(struct device *base, const void *at, size_t bytes)
{
    struct cuda *c = cuda_of(base);

    if (cuda_enter(c))
        return false;
    bool ours = cuda_is_gpu_memory(c, (cuda_address)(uintptr_t)at, bytes);
    cuda_leave(c);
    return ours;
}

bool cuda_kernels_see(struct device *base, const void *at, size_t bytes)
{
    const cuda_address first = (cuda_address)(uintptr_t)at;
    struct cuda *c = cuda_of(base);

    if (cuda_enter(c))
        return false;
    unsigned kind = kind_of(c, first);
    bool seen = kind && is_all(c, first, bytes, kind);
    cuda_leave(c);
    return seen;
}

/* ---- For GPUs ---- */

/* The driver answers REGISTERED_BEFORE where a part of it is: of what is pinned already, all must
 * be. */
gshmem_status_t cuda_pin(struct device *base, void *at, size_t bytes, bool *pinned)
{
    struct cuda *c = cuda_of(base);
    gshmem_status_t status;
    cuda_result result;

    if ((status = cuda_enter(c)))
        return status;
    bool before = is_all(c, (cuda_address)(uintptr_t)at, bytes, CUDA_MEMORY_HOST);
    result = before ? CUDA_OK
                    : c->driver.host_register(at, bytes, CUDA_HOST_PORTABLE | CUDA_HOST_DEVICE_MAP);
    cuda_leave(c);
    if (result == CUDA_HOST_REGISTERED_BEFORE)
        return cuda_fail(
            c, result,
            "pinning %zu B at %p: a part of it the program has pinned itself; pin all of "
            "it or nothing",
            bytes, at);
    if (result)
        return cuda_fail(c, result, "pinning %zu B of host memory at %p (ulimit -l may limit it)",
                         bytes, at);
    if (!cuda_has(c, CUDA_ATTRIBUTE_REGISTERED_IN_PLACE))
        c->config.info(
            "cuda: GPU %d does not see registered host memory at its own address: copies "
            "reach it, kernels do not",
            c->gpu);
    *pinned = !before;
    return GSHMEM_OK;
}

void cuda_unpin(struct device *base, void *at)
{
    struct cuda *c = cuda_of(base);
    cuda_result result;

    if (cuda_enter(c))
        return;
    if ((result = c->driver.host_unregister(at)))
        c->config.info("cuda: unpinning memory at %p: %s", at, cuda_error(&c->driver, result).text);
    cuda_leave(c);
}

/* ---- For NICs ---- */

/* The driver gives whole pages of the machine, so that the memory begins somewhere in the first. */
gshmem_status_t cuda_export_range(struct device *base, const void *at, size_t bytes, int *fd,
                                  uint64_t *offset)
{
    struct cuda *c = cuda_of(base);
    const cuda_address page = (cuda_address)sysconf(_SC_PAGESIZE);
    const cuda_address first = (cuda_address)(uintptr_t)at / page * page;
    const cuda_address end = ((cuda_address)(uintptr_t)at + bytes + page - 1) / page * page;
    gshmem_status_t status;
    cuda_result result;
    int got = -1;

    if (!cuda_has(c, CUDA_ATTRIBUTE_DMA_BUF) || !cuda_driver_has(&c->driver, CUDA_NEWER_EXPORT))
        return c->config.fail(
            GSHMEM_ERR_UNSUPPORTED,
            "cuda: GPU %d and its driver export no dma-buf (that takes the open kernel "
            "modules and a driver for CUDA 11.7)",
            c->gpu);
    if ((status = cuda_enter(c)))
        return status;
    bool ours = cuda_is_gpu_memory(c, (cuda_address)(uintptr_t)at, bytes);
    result =
        ours ? c->driver.export_range(&got, first, end - first, CUDA_RANGE_DMA_BUF, 0) : CUDA_OK;
    cuda_leave(c);
    if (!ours)
        return c->config.fail(
            GSHMEM_ERR_ARGUMENT,
            "cuda: %zu B at %p are not all memory of a GPU: no dma-buf is made of them", bytes, at);
    if (result)
        return cuda_fail(c, result, "a dma-buf of %zu B at %p", bytes, at);
    *fd = got;
    *offset = (cuda_address)(uintptr_t)at - first;
    return GSHMEM_OK;
}

/* Where the driver does not say what the GPU orders, it orders nothing. */
enum device_nic_order cuda_nic_order(const struct cuda *c)
{
    if (cuda_attribute_of(c, CUDA_ATTRIBUTE_ORDERING) >= CUDA_ORDERED_ALL)
        return DEVICE_NIC_ORDERED;
    return cuda_attribute_of(c, CUDA_ATTRIBUTE_FLUSHES) & CUDA_FLUSHES_BY_HOST &&
                   cuda_driver_has(&c->driver, CUDA_NEWER_FLUSH)
               ? DEVICE_NIC_FLUSHED
               : DEVICE_NIC_UNORDERED;
}

gshmem_status_t cuda_flush(struct device *base)
{
    struct cuda *c = cuda_of(base);
    gshmem_status_t status = cuda_enter(c);
    cuda_result result;

    if (status)
        return status;
    result = c->driver.flush(CUDA_FLUSH_OF_CONTEXT, CUDA_ORDERED_ALL);
    cuda_leave(c);
    return result
               ? cuda_fail(c, result,
                           "flushing what NICs have written to GPU %d (cuFlushGPUDirectRDMAWrites; "
                           "GSHMEM_IB_GPU=staging does without)",
                           c->gpu)
               : GSHMEM_OK;
}
