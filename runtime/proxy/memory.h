/* Memory that kernels use. On the host device there is but one kind. */
#ifndef GSHMEM_PROXY_MEMORY_H
#define GSHMEM_PROXY_MEMORY_H

#include <stdlib.h>
#include <string.h>

enum { KERNEL_LINE = 64 }; /* what two sides write lies in different lines */

static inline void *kernel_memory(size_t bytes)
{
    size_t whole = (bytes + KERNEL_LINE - 1) / KERNEL_LINE * KERNEL_LINE;
    void *at = aligned_alloc(KERNEL_LINE, whole);

    return at ? memset(at, 0, whole) : NULL;
}

/* Read and written by kernels and by the proxy. All zero; NULL: there is none left. */
static inline void *memory_shared(size_t bytes)
{
    return kernel_memory(bytes);
}

/* With the device: written by the host before kernels know of it, then theirs. */
static inline void *memory_of_device(size_t bytes)
{
    return kernel_memory(bytes);
}

static inline void memory_free_shared(void *at)
{
    free(at);
}

static inline void memory_free_of_device(void *at)
{
    free(at);
}

#endif
