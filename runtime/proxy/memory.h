/* Memory that kernels use, as the job's device has it. On the host device there is but one kind; a GPU's own
 * the CPU cannot touch, so that all of it is read and written by these. */
#ifndef GSHMEM_PROXY_MEMORY_H
#define GSHMEM_PROXY_MEMORY_H

#include "device/device.h"
#include "gshmem/memory.h"

enum { KERNEL_LINE = 64 }; /* what two sides write lies in different lines */

/* Read and written by kernels and by the proxy. All zero; NULL: there is none left. */
static inline void *memory_shared(struct device *d, size_t bytes)
{
    return d->ops->allocate(d, DEVICE_MEMORY_SHARED, bytes);
}

/* With the device: written by the node before kernels know of it, then theirs. */
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
static inline gshmem_status_t memory_tell(struct device *d, void *to, const void *from, size_t bytes)
{
    return d->ops->copy(d, to, from, bytes);
}

/* A pointer there, which a kernel may look at: what it points to has been written before. */
static inline void memory_tell_pointer(struct device *d, const void *to, uintptr_t value)
{
    if (d->ops->own_heap)
        d->ops->copy(d, (void *)(uintptr_t)to, &value, sizeof value);
    else /* release: a kernel that finds the pointer sees all of what it points to */
        __atomic_store_n((uintptr_t *)(uintptr_t)to, value, __ATOMIC_RELEASE);
}

/* A word that kernels count in. A failure has been logged. */
static inline gshmem_status_t memory_ask(struct device *d, const uint64_t *at, uint64_t *value)
{
    if (d->ops->own_heap)
        return d->ops->copy(d, value, at, sizeof *value);
    *value = gshmem_load_relaxed(at);
    return GSHMEM_OK;
}

#endif
