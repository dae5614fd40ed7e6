/* How this PE's address of an object becomes the address of the same object on another PE.
 *
 * A context holds what a caller needs to reach the PEs of one team: for each kind of symmetric
 * memory, where this PE's copy begins and where each PE's copy is mapped in this process. Inline
 * code reads it, and so an operation on a mapped peer is a load or a store and not a call. An
 * address that is not mapped, not symmetric or out of range goes out of line, where it is served or
 * refused with a reason. */
#ifndef GSHMEM_CONTEXT_H
#define GSHMEM_CONTEXT_H

#include "gshmem/base.h"

#ifdef __cplusplus
extern "C" {
#endif

struct gshmem_segment {
    uintptr_t base;        /* of this PE's copy */
    size_t bytes;
    const uintptr_t *peer; /* [pe of the team]: where its copy is mapped in this process, 0 if it is
                              not */
};

/* Compiled programs read this struct inline. Therefore a later version may only add fields at its
 * end. The library changes a context only while no operation runs (in init and finalize), but for
 * `device`, which is set when the first kernels are loaded. */
struct gshmem_ctx {
    struct gshmem_segment heap;
    struct gshmem_segment data; /* global and static variables of the program */
    int32_t n_pes;              /* 0: not usable; every operation goes out of line */
    int32_t my_pe;
    gshmem_team_t team;
    uint32_t options;
    const struct gshmem_device_ctx *device; /* the same for kernels; NULL where there are none */
};

/* The default context; and a context that is never usable, which stands for GSHMEM_CTX_INVALID. */
GSHMEM_API extern struct gshmem_ctx *const gshmem_ctx_default;
GSHMEM_API extern struct gshmem_ctx *const gshmem_ctx_none;

static inline struct gshmem_ctx *gshmem_ctx_resolve(gshmem_ctx_t ctx)
{
    if (ctx == GSHMEM_CTX_DEFAULT)
        return gshmem_ctx_default;
    return ctx == GSHMEM_CTX_INVALID ? gshmem_ctx_none : ctx;
}

/* Where a peer's segment begins, plus an offset; NULL if it is not mapped. */
static inline void *gshmem_peer_address(uintptr_t peer, size_t offset)
{
    if (GSHMEM_UNLIKELY(!peer))
        return NULL;
    if (peer + offset == 0)
        __builtin_unreachable(); /* otherwise every caller would test the sum for NULL again */
    return (void *)(peer + offset);
}

/* The address at which pe's copy of the `bytes` bytes at `mine` is mapped in this process. NULL
 * if the caller has to take the path out of line. */
static inline void *gshmem_ctx_reach(gshmem_ctx_t handle, const void *mine, size_t bytes, int pe)
{
    const struct gshmem_ctx *ctx = gshmem_ctx_resolve(handle);

    if (GSHMEM_UNLIKELY((uint32_t)pe >= (uint32_t)ctx->n_pes))
        return NULL;
    size_t offset = (uintptr_t)mine - ctx->heap.base;
    if (GSHMEM_LIKELY(offset < ctx->heap.bytes && bytes <= ctx->heap.bytes - offset))
        return gshmem_peer_address(ctx->heap.peer[pe], offset);
    offset = (uintptr_t)mine - ctx->data.base;
    if (GSHMEM_LIKELY(offset < ctx->data.bytes && bytes <= ctx->data.bytes - offset))
        return gshmem_peer_address(ctx->data.peer[pe], offset);
    return NULL;
}

#ifdef __cplusplus
}
#endif
#endif
