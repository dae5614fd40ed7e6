/* Memory that kernels use, in the forms that the job's device has. The host device has only one
 * kind. The CPU cannot access a GPU's own memory, so that all of it is read and written by these
 * functions. */
#ifndef GSHMEM_PROXY_MEMORY_H
#define GSHMEM_PROXY_MEMORY_H

#include "device/device.h"
#include "gshmem/memory.h"

enum { KERNEL_LINE = 64 }; /* data that different sides write is in different lines */

/* Read and written by kernels and by the proxy. All zero; NULL: out of memory. */
static inline void *memory_shared(struct device *d, size_t bytes)
{
    return d->ops->allocate(d, DEVICE_MEMORY_SHARED, bytes);
}

/* In the device's memory: the host writes it before kernels know of it; from then on it is
 * theirs. */
static inline void *memory_of_device(struct device *d, size_t bytes)
{
    return d->ops->allocate(d, DEVICE_MEMORY_OWN, bytes);
}

static inline void memory_free_shared(struct device *d, void *at)
{
    d->ops->release(d, DEVICE_MEMORY_SHARED, at);
}

static inline void memory_free_of_device(struct device *d, void *at)
{
    d->ops->release(d, DEVICE_MEMORY_OWN, at);
}

/* Writes to memory of the device. */
static inline gshmem_status_t memory_tell(struct device *d, void *to, const void *from,
                                          size_t bytes)
{
    return d->ops->copy(d, to, from, bytes);
}

/* Stores a pointer that a kernel may read at any time: what it points to has been written
 * before. */
static inline void memory_tell_pointer(struct device *d, const void *to, uintptr_t value)
{
    if (d->ops->own_heap)
        d->ops->copy(d, (void *)(uintptr_t)to, &value, sizeof value);
    else /* release: a kernel that reads the pointer sees all of what it points to */
        __atomic_store_n((uintptr_t *)(uintptr_t)to, value, __ATOMIC_RELEASE);
}

/* Reads a word in which kernels count. A failure has been logged. */
static inline gshmem_status_t memory_ask(struct device *d, const uint64_t *at, uint64_t *value)
{
    if (d->ops->own_heap)
        return d->ops->copy(d, value, at, sizeof *value);
    *value = gshmem_load_relaxed(at);
    return GSHMEM_OK;
}

#endif
