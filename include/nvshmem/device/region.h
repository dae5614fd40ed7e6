/* NVSHMEM's regions in kernels: a block says that many operations follow. The proxy then sends what
 * it takes in one look together. Operations on mapped PEs are not changed. */
#ifndef NVSHMEM_DEVICE_REGION_H
#define NVSHMEM_DEVICE_REGION_H

#include "nvshmem/base.h"

/* The block's region, in its shared memory, which holds anything when the block begins. `mark` is
 * nvshmem_region_mark() while a region runs, and 0 after it. A kernel that ends within a region may
 * leave its mark to a later one. */
struct nvshmem_region_here {
    uint64_t mark, handle;
    uint32_t hints;
};

GSHMEM_KERNEL struct nvshmem_region_here *nvshmem_region_here(void)
{
#ifdef GSHMEM_HOST_DEVICE
    return &gshmem_host::shared<struct nvshmem_region_here>();
#else
    __shared__ struct nvshmem_region_here here;
    return &here;
#endif
}

GSHMEM_KERNEL uint64_t nvshmem_region_mark(void)
{
    return 0x9e3779b97f4a7c15ull ^ (uint64_t)gshmem_kernel_block() << 32 ^ blockDim.x;
}

GSHMEM_KERNEL bool nvshmem_region_runs(void)
{
    return nvshmem_region_here()->mark == nvshmem_region_mark();
}

/* By one thread. */
GSHMEM_KERNEL void nvshmem_region_tell(bool begins)
{
    const struct gshmem_device_ctx *c = &gshmem_device_here.ctx;
    struct gshmem_command command = {};
    uint64_t end;

    if (!c->proxied)
        return;
    command.kind = GSHMEM_COMMAND_SESSION;
    command.type = begins;
    /* a failure is the job's, which ends all that follows */
    (void)gshmem_kernel_post(c, gshmem_kernel_channel(c), 1, gshmem_command_encode(&command),
                             gshmem_kernel_no_slot(), &end);
}

/* Called by all threads of the block, with the same attributes, which may be NULL. */
GSHMEM_KERNEL int nvshmemx_region_start_block(nvshmemx_region_handle_t *handle,
                                              const nvshmemx_region_attrs_t *attrs)
{
    const uint32_t hints = attrs ? attrs->hints : (uint32_t)NVSHMEMX_REGION_HINT_NONE;
    struct nvshmem_region_here *here = nvshmem_region_here();

    __syncthreads();
    const bool refused =
        !handle || (hints & ~(uint32_t)NVSHMEMX_REGION_HINT_BATCH_RMA) || nvshmem_region_runs();
    if (__syncthreads_or(refused))
        return NVSHMEMX_ERROR_INVALID_VALUE;
    if (gshmem_kernel_thread() == 0) {
        here->handle = nvshmem_region_mark() | 1;
        here->hints = hints;
        here->mark = nvshmem_region_mark();
        if (hints)
            nvshmem_region_tell(true);
    }
    __syncthreads();
    *handle = here->handle;
    return NVSHMEMX_SUCCESS;
}

/* By all threads of the block, which have issued what they issue in the region. */
GSHMEM_KERNEL int nvshmemx_region_stop_block(nvshmemx_region_handle_t handle)
{
    struct nvshmem_region_here *here = nvshmem_region_here();

    __syncthreads();
    if (__syncthreads_or(!nvshmem_region_runs() || here->handle != handle))
        return NVSHMEMX_ERROR_INVALID_VALUE;
    if (gshmem_kernel_thread() == 0) {
        here->mark = 0;
        if (here->hints)
            nvshmem_region_tell(false);
    }
    __syncthreads();
    return NVSHMEMX_SUCCESS;
}

GSHMEM_KERNEL int nvshmem_region_is_active_here(uint32_t hints, int *active)
{
    if (!active || (hints & ~(uint32_t)NVSHMEMX_REGION_HINT_BATCH_RMA))
        return NVSHMEMX_ERROR_INVALID_VALUE;
    *active = nvshmem_region_runs() && (nvshmem_region_here()->hints & hints) == hints;
    return NVSHMEMX_SUCCESS;
}

#endif
