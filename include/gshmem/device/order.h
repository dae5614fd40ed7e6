/* fence and quiet in kernels. */
#ifndef GSHMEM_DEVICE_ORDER_H
#define GSHMEM_DEVICE_ORDER_H

#include "gshmem/device/post.h"

/* To a mapped peer: this thread's stores in order, for all; gets need not wait for them, which
 * would take a full fence. To any other the calling thread's commands go through one channel and
 * arrive in its order: nothing to add. */
GSHMEM_KERNEL gshmem_status_t gshmem_kernel_fence(gshmem_ctx_t ctx)
{
    if (!gshmem_kernel_exists(gshmem_kernel_ctx(ctx)))
        return GSHMEM_ERR_ARGUMENT;
#ifdef __CUDA_ARCH__
    asm volatile("fence.acq_rel.sys;" ::: "memory");
#else
    __threadfence_system();
#endif
    return GSHMEM_OK;
}

/* Waits until all of a channel before `end` is done; what has failed there is answered once. It
 * looks at the proxy's memory only where something is still under way. */
GSHMEM_KERNEL gshmem_status_t gshmem_kernel_quiet_to(const struct gshmem_device_ctx *c,
                                                     const struct gshmem_device_channel *channel,
                                                     uint64_t end)
{
    /* acquire: pairs with the release in gshmem_raise_to, of another thread's quiet */
    uint64_t done = gshmem_device_load_acquire(channel->done_copy);
    gshmem_status_t status = GSHMEM_OK;

    if ((done & ~GSHMEM_DONE_FAILED) < end)
        status = gshmem_kernel_wait_done(c, channel, end);
    if (!status && gshmem_device_load(channel->done_copy) & GSHMEM_DONE_FAILED)
        status = gshmem_kernel_take_failure(channel);
    return status;
}

/* Waits on positions: of every channel of the context, what had been issued when it was called. */
GSHMEM_KERNEL_RARE gshmem_status_t gshmem_kernel_quiet_on(const struct gshmem_device_ctx *c)
{
    gshmem_status_t status = GSHMEM_OK;

    if (!gshmem_kernel_exists(c))
        return GSHMEM_ERR_ARGUMENT;
    __threadfence_system();
    if (c->n_pes == 0)
        return GSHMEM_ERR_STATE;
    for (uint32_t i = 0; i < c->channels; i++) {
        const struct gshmem_device_channel *channel = &c->channel[i];
        gshmem_status_t one =
            gshmem_kernel_quiet_to(c, channel, gshmem_device_load(channel->ring.ticket));
        status = status ? status : one;
    }
    return status;
}

GSHMEM_KERNEL gshmem_status_t gshmem_kernel_quiet(gshmem_ctx_t ctx)
{
    return gshmem_kernel_quiet_on(gshmem_kernel_ctx(ctx));
}

GSHMEM_KERNEL gshmem_status_t gshmem_kernel_pe_quiet(gshmem_ctx_t ctx, const int *target_pes,
                                                     size_t n)
{
    const struct gshmem_device_ctx *c = gshmem_kernel_ctx(ctx);

    for (size_t i = 0; c && i < n; i++) {
        if (!gshmem_kernel_has_pe(c, target_pes[i]))
            return gshmem_kernel_refuse(c, {}, target_pes[i], false);
    }
    return gshmem_kernel_quiet_on(c);
}

/* ---- By the names of gshmem.h --------------------------------------------------------------- */

GSHMEM_EITHER gshmem_status_t gshmem_ctx_fence(gshmem_ctx_t ctx)
{
    GSHMEM_RETURN(gshmem_kernel_fence(ctx), gshmem_on_host::gshmem_ctx_fence(ctx));
}

GSHMEM_EITHER gshmem_status_t gshmem_ctx_quiet(gshmem_ctx_t ctx)
{
    GSHMEM_RETURN(gshmem_kernel_quiet(ctx), gshmem_on_host::gshmem_ctx_quiet(ctx));
}

GSHMEM_EITHER gshmem_status_t gshmem_ctx_pe_quiet(gshmem_ctx_t ctx, const int *target_pes, size_t n)
{
    GSHMEM_RETURN(gshmem_kernel_pe_quiet(ctx, target_pes, n),
                  gshmem_on_host::gshmem_ctx_pe_quiet(ctx, target_pes, n));
}

GSHMEM_EITHER gshmem_status_t gshmem_fence(void)
{
    return gshmem_ctx_fence(GSHMEM_CTX_DEFAULT);
}

GSHMEM_EITHER gshmem_status_t gshmem_quiet(void)
{
    return gshmem_ctx_quiet(GSHMEM_CTX_DEFAULT);
}

GSHMEM_EITHER gshmem_status_t gshmem_pe_quiet(const int *target_pes, size_t n)
{
    return gshmem_ctx_pe_quiet(GSHMEM_CTX_DEFAULT, target_pes, n);
}

#endif
