/* fence, quiet and flush in kernels. */
#ifndef GSHMEM_DEVICE_ORDER_H
#define GSHMEM_DEVICE_ORDER_H

#include "gshmem/device/follow.h"
#include "gshmem/device/post.h"

/* For mapped peers: orders this thread's stores for all agents. A fence need not order gets, which
 * would take a full memory fence. */
GSHMEM_KERNEL void gshmem_kernel_fence_stores(void)
{
#ifdef __CUDA_ARCH__
    asm volatile("fence.acq_rel.sys;" ::: "memory");
#else
    __threadfence_system();
#endif
}

/* For all other peers: a command tells the proxy where the fence is, in all channels of the
 * context.
 *
 * 1. This thread reads the tickets of all channels. Everything that was issued before the fence, by
 *    any thread, has a smaller position, and the proxy reaches it first, however late it is written
 *    to the ring.
 * 2. The fence's command takes its position after that. What this thread issues from now on comes
 *    after the command. What the host had issued is posted already,
 *    and where there are several proxies the proxy waits until it is complete.
 *
 * Because tickets are read before the command takes its position, no two fences can each wait for
 * commands after the other. The fence is sent even if all channels look empty: the tickets are read
 * one after the other, and what they show together may not have been true at any one moment
 * (tests/model/fence.pml). */
GSHMEM_KERNEL_RARE gshmem_status_t gshmem_kernel_fence_on(const struct gshmem_device_ctx *c)
{
    const uint32_t own = gshmem_kernel_block() & (c->channels - 1);
    struct gshmem_command command = {};
    gshmem_status_t status = GSHMEM_OK;
    uint64_t end;

    command.kind = GSHMEM_COMMAND_FENCE;
#pragma unroll 1
    for (uint32_t i = 0; i < c->channels; i++) {
        uint64_t ticket = gshmem_device_load(c->channel[i].ring.ticket);
        if (i == own)
            continue;
        if (c->channels <= GSHMEM_FENCE_CHANNELS) {
            command.address = command.local;
            command.local = command.size;
            command.size = ticket;
        } else if (!status && gshmem_device_load(c->channel[i].ring.tail_copy) < ticket) {
            status = gshmem_kernel_wait_taken(c, &c->channel[i], ticket);
        }
    }
    gshmem_kernel_fence_stores(); /* and the tickets are read before a position is taken */
    if (status)
        return status;
    return gshmem_kernel_post(c, &c->channel[own], 1, gshmem_command_encode(&command),
                              gshmem_kernel_no_slot(), &end);
}

GSHMEM_KERNEL gshmem_status_t gshmem_kernel_fence(gshmem_ctx_t ctx)
{
    const struct gshmem_device_ctx *c = gshmem_kernel_ctx(ctx);

    if (!gshmem_kernel_exists(c))
        return gshmem_kernel_refuse(c, {}, 0, false);
    GSHMEM_FOLLOW_STEP(GSHMEM_SCOPE_THREAD, GSHMEM_FOLLOWED_FENCE, 0);
    if (c->proxied)
        return gshmem_kernel_fence_on(c);
    gshmem_kernel_fence_stores();
    return c->n_pes ? GSHMEM_OK : gshmem_kernel_without_job(false);
}

/* Waits until all commands of a channel before `end` are complete; returns a failure of one of them
 * once. It reads the proxy's memory only if one of them may still be in flight. */
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

/* Waits until all operations that the host had issued on the context are complete. */
GSHMEM_KERNEL gshmem_status_t gshmem_kernel_wait_host(const struct gshmem_device_ctx *c)
{
    struct gshmem_host_operations *host = c->host;
    const uint64_t end = gshmem_load_relaxed(&host->issued);
    struct gshmem_kernel_wait w = {};
    gshmem_status_t status = GSHMEM_OK;

    gshmem_kernel_wait_is_for(&w, GSHMEM_SHOWN_PROXY, &host->done);
    /* acquire: pairs with the release of the thread that increases `done`. The data of gets and a
     * failure are then visible */
    while (gshmem_load_acquire(&host->done) < end && !status)
        status = gshmem_kernel_wait_proxy(&w, c->job->failure);
    gshmem_kernel_waited();
    return status;
}

/* The same; returns a failure of one of them once. */
GSHMEM_KERNEL_RARE gshmem_status_t gshmem_kernel_quiet_host(const struct gshmem_device_ctx *c)
{
    struct gshmem_host_operations *host = c->host;
    const gshmem_status_t status = gshmem_kernel_wait_host(c);
    const uint64_t failed = gshmem_load_relaxed(&host->failed);

    if (status || failed == gshmem_load_relaxed(&host->reported))
        return status;
    gshmem_store_relaxed(&host->reported, failed);
    return (gshmem_status_t)(failed & 255);
}

/* Waits for all commands that were issued in the channels of the context before the call, and for
 * the host's requests. */
GSHMEM_KERNEL_RARE gshmem_status_t gshmem_kernel_quiet_on(const struct gshmem_device_ctx *c)
{
    gshmem_status_t status = GSHMEM_OK;

    if (!gshmem_kernel_exists(c))
        return gshmem_kernel_refuse(c, {}, 0, false);
    __threadfence_system();
    if (c->n_pes == 0)
        return gshmem_kernel_without_job(false);
    for (uint32_t i = 0; i < c->channels; i++) {
        const struct gshmem_device_channel *channel = &c->channel[i];
        gshmem_status_t one =
            gshmem_kernel_quiet_to(c, channel, gshmem_device_load(channel->ring.ticket));
        status = status ? status : one;
    }
    if (c->host) {
        gshmem_status_t one = gshmem_kernel_quiet_host(c);
        status = status ? status : one;
    }
    GSHMEM_FOLLOW_STEP(GSHMEM_SCOPE_THREAD, GSHMEM_FOLLOWED_QUIET, 0);
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

    if (c && n && !target_pes)
        return gshmem_kernel_refuse_null(c, {}, n);
    for (size_t i = 0; c && i < n; i++) {
        if (!gshmem_kernel_has_pe(c, target_pes[i]))
            return gshmem_kernel_refuse(c, {}, target_pes[i], false);
    }
    return gshmem_kernel_quiet_on(c);
}

/* ---- Flush ----------------------------------------------------------------------------------- */

/* Waits until the sources of all puts in a channel may be reused. The proxy is asked if they are
 * not known to be complete. */
GSHMEM_KERNEL_RARE gshmem_status_t
gshmem_kernel_flush_channel(const struct gshmem_device_ctx *c,
                            const struct gshmem_device_channel *channel)
{
    const uint64_t end = gshmem_device_load(channel->ring.ticket);
    struct gshmem_command command = {};

    if ((gshmem_device_load(channel->done_copy) & ~GSHMEM_DONE_FAILED) >= end)
        return GSHMEM_OK;
    command.kind = GSHMEM_COMMAND_SOURCES;
    return gshmem_kernel_ask_slots(c, channel, 1, gshmem_command_encode(&command),
                                   gshmem_kernel_no_slot(), NULL);
}

/* The host's requests are waited for until they are complete: kernels do not see when they have
 * been sent. */
GSHMEM_KERNEL_RARE gshmem_status_t gshmem_kernel_flush_ctx(const struct gshmem_device_ctx *c)
{
    gshmem_status_t status = GSHMEM_OK;

    if (!gshmem_kernel_exists(c))
        return gshmem_kernel_refuse(c, {}, 0, false);
    __threadfence_system(); /* sources have been read before what comes after is stored */
    if (c->n_pes == 0)
        return gshmem_kernel_without_job(false);
    for (uint32_t i = 0; i < c->channels && !status; i++)
        status = gshmem_kernel_flush_channel(c, &c->channel[i]);
    GSHMEM_FOLLOW_STEP(GSHMEM_SCOPE_THREAD, GSHMEM_FOLLOWED_FLUSH, 0);
    return status || !c->host ? status : gshmem_kernel_wait_host(c);
}

/* All threads of the scope have issued what they issue before it. */
template <int scope> GSHMEM_KERNEL gshmem_status_t gshmem_kernel_flush_sources(gshmem_ctx_t ctx)
{
    gshmem_status_t status = GSHMEM_OK;

    gshmem_kernel_sync<scope>();
    if (gshmem_kernel_rank<scope>() == 0)
        status = gshmem_kernel_flush_ctx(gshmem_kernel_ctx(ctx));
    return gshmem_kernel_agree<scope>(status);
}

/* ---- The names of gshmem.h ------------------------------------------------------------------- */

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

GSHMEM_EITHER gshmem_status_t gshmem_ctx_flush(gshmem_ctx_t ctx)
{
    GSHMEM_RETURN(gshmem_kernel_flush_sources<GSHMEM_SCOPE_THREAD>(ctx),
                  gshmem_on_host::gshmem_ctx_flush(ctx));
}

GSHMEM_EITHER gshmem_status_t gshmem_flush(void)
{
    return gshmem_ctx_flush(GSHMEM_CTX_DEFAULT);
}

GSHMEM_KERNEL gshmem_status_t gshmem_flush_warp(void)
{
    return gshmem_kernel_flush_sources<GSHMEM_SCOPE_WARP>(GSHMEM_CTX_DEFAULT);
}

GSHMEM_KERNEL gshmem_status_t gshmem_flush_block(void)
{
    return gshmem_kernel_flush_sources<GSHMEM_SCOPE_BLOCK>(GSHMEM_CTX_DEFAULT);
}

#endif
