/* Where a kernel finds a peer's copy of an object: which segment it is in, and whether that is
 * mapped here. */
#ifndef GSHMEM_DEVICE_REACH_H
#define GSHMEM_DEVICE_REACH_H

#include "gshmem/device/module.h"
#include "gshmem/device/scope.h"

/* The context of a handle; NULL for one that kernels cannot use. */
GSHMEM_KERNEL const struct gshmem_device_ctx *gshmem_kernel_ctx(gshmem_ctx_t handle)
{
    if (handle == GSHMEM_CTX_DEFAULT)
        return &gshmem_device_here.ctx;
    return handle == GSHMEM_CTX_INVALID ? NULL : handle->device;
}

/* Whether there is a context. nvcc does not know that the address of a constant is not NULL, so
 * this test is left out there. */
GSHMEM_KERNEL bool gshmem_kernel_exists(const struct gshmem_device_ctx *c)
{
    return c == &gshmem_device_here.ctx || c;
}

/* Whether a command for that PE can be posted at all. */
GSHMEM_KERNEL bool gshmem_kernel_has_pe(const struct gshmem_device_ctx *c, int pe)
{
    return gshmem_kernel_exists(c) && (uint32_t)pe < (uint32_t)c->n_pes;
}

GSHMEM_KERNEL bool gshmem_kernel_within(const struct gshmem_segment *s, const void *mine,
                                        size_t bytes, size_t *offset)
{
    *offset = (uintptr_t)mine - s->base;
    return *offset < s->bytes && bytes <= s->bytes - *offset;
}

/* Finds the segment that contains the `bytes` bytes at `mine`. Returns the table of where the
 * peers' copies of this segment begin, and in *offset the place in the segment; NULL: not
 * symmetric. */
GSHMEM_KERNEL const uintptr_t *gshmem_kernel_peers(const struct gshmem_device_ctx *c,
                                                   const void *mine, size_t bytes, size_t *offset)
{
    if (gshmem_kernel_within(&c->heap, mine, bytes, offset))
        return c->heap.peer;
    if (gshmem_kernel_within(&c->data, mine, bytes, offset))
        return c->data.peer;
    return gshmem_kernel_within(&c->system, mine, bytes, offset) ? c->system.peer : NULL;
}

/* Whether a symmetric object begins at `mine`. If not, a put or get fails at once, also if a quiet
 * reports its completion. The proxy checks this again, and more. */
GSHMEM_KERNEL bool gshmem_kernel_symmetric(const struct gshmem_device_ctx *c, const void *mine,
                                           size_t bytes)
{
    size_t offset;

    return gshmem_kernel_peers(c, mine, bytes, &offset);
}

/* Mapped memory at an address: nvcc is told that it is global memory, not shared nor a thread's
 * own. */
GSHMEM_KERNEL void *gshmem_kernel_mapped(uintptr_t address)
{
#ifdef __CUDA_ARCH__
    return __cvta_global_to_generic(address);
#else
    return (void *)address;
#endif
}

/* Only this PE's own memory may be non-symmetric. An address inside a symmetric segment gets here
 * only if the object runs past the segment's end; it is refused. */
GSHMEM_KERNEL_RARE void *gshmem_kernel_own(const struct gshmem_device_ctx *c, const void *mine,
                                           int pe)
{
    return c->own && pe == c->my_pe && mine && !gshmem_kernel_symmetric(c, mine, 0) ? (void *)mine
                                                                                    : NULL;
}

/* The address at which pe's copy of the `bytes` bytes at `mine` is mapped; NULL: it is not mapped
 * or not symmetric, or there is no such PE. */
GSHMEM_KERNEL void *gshmem_kernel_reach(const struct gshmem_device_ctx *c, const void *mine,
                                        size_t bytes, int pe)
{
    size_t offset;

    if (!gshmem_kernel_has_pe(c, pe))
        return NULL;
    const uintptr_t *peer = gshmem_kernel_peers(c, mine, bytes, &offset);
    if (!peer)
        return gshmem_kernel_own(c, mine, pe);
    return peer[pe] ? gshmem_kernel_mapped(peer[pe] + offset) : NULL;
}

#endif
