/* How pieces of memory get to other processes: descriptors, fabric handles, CUDA IPC. */
#include "device/cuda/memory.h"

#include <string.h>

static const int handle_types[] = {
    [SHARE_DESCRIPTOR] = CUDA_HANDLE_DESCRIPTOR,
    [SHARE_FABRIC] = CUDA_HANDLE_FABRIC,
};

const char *cuda_share_name(enum cuda_share share)
{
    static const char *const names[] = {
        [SHARE_AUTO] = "nothing",
        [SHARE_DESCRIPTOR] = "descriptors",
        [SHARE_FABRIC] = "fabric handles",
        [SHARE_IPC] = "CUDA IPC",
    };

    return names[share];
}

static bool share_is_offered(const struct cuda *c, enum cuda_share share)
{
    switch (share) {
    case SHARE_DESCRIPTOR:
        return cuda_has(c, CUDA_ATTRIBUTE_VMM) && cuda_has(c, CUDA_ATTRIBUTE_DESCRIPTORS);
    case SHARE_FABRIC:
        return cuda_has(c, CUDA_ATTRIBUTE_VMM) && cuda_has(c, CUDA_ATTRIBUTE_FABRIC);
    default:
        return true;
    }
}

gshmem_status_t cuda_choose_share(struct cuda *c)
{
    enum cuda_share wanted = (enum cuda_share)c->config.share;

    for (enum cuda_share share = SHARE_DESCRIPTOR; share <= SHARE_IPC; share++) {
        if (!(wanted == SHARE_AUTO || wanted == share) || !share_is_offered(c, share))
            continue;
        c->share = share;
        c->config.info("cuda: heaps go to the other PEs of the node by %s%s",
                       cuda_share_name(share),
                       share == SHARE_IPC && wanted == SHARE_AUTO
                           ? ": this GPU and driver have no virtual memory management"
                           : "");
        return GSHMEM_OK;
    }
    return c->config.fail(GSHMEM_ERR_UNSUPPORTED,
                          "cuda: GSHMEM_CUDA_SHARE asks for %s, which GPU %d and its driver do not "
                          "offer; auto takes what there is",
                          cuda_share_name(wanted), c->gpu);
}

int cuda_handle_type(const struct cuda *c)
{
    return handle_types[c->share];
}

struct cuda_allocation cuda_allocation_of(const struct cuda *c)
{
    return (struct cuda_allocation){
        .type = CUDA_ALLOCATION_PINNED,
        .handle_types = handle_types[c->share] | (c->domain.member ? CUDA_HANDLE_FABRIC : 0),
        .location = {CUDA_LOCATION_GPU, c->gpu},
        .flags.gpu_direct_rdma = cuda_has(c, CUDA_ATTRIBUTE_RDMA_VMM),
    };
}

gshmem_status_t cuda_granularity(const struct cuda *c, uint64_t *bytes)
{
    struct cuda_allocation what;
    cuda_result result;
    size_t step = 2 << 20;

    if (c->share != SHARE_IPC) {
        what = cuda_allocation_of(c);
        if ((result = c->driver.granularity(&step, &what, CUDA_GRANULARITY_RECOMMENDED)))
            return cuda_fail(c, result, "asking for the granularity of memory on GPU %d", c->gpu);
    }
    *bytes = step;
    return GSHMEM_OK;
}

cuda_result cuda_export(struct cuda *c, cuda_piece piece, struct device_piece *out)
{
    cuda_result result;

    out->fd = -1;
    if (c->share == SHARE_DESCRIPTOR)
        result = c->driver.export_piece(&out->fd, piece, CUDA_HANDLE_DESCRIPTOR, 0);
    else
        result = c->driver.export_piece(out->handle, piece, CUDA_HANDLE_FABRIC, 0);
    if (result)
        out->fd = -1;
    return result;
}

cuda_result cuda_export_remote(struct cuda *c, cuda_piece piece, struct device_piece *out)
{
    return c->domain.member && c->share != SHARE_FABRIC
               ? c->driver.export_piece(out->handle, piece, CUDA_HANDLE_FABRIC, 0)
               : CUDA_OK;
}

cuda_result cuda_import(struct cuda *c, const struct device_piece *given, cuda_piece *piece)
{
    unsigned char handle[sizeof given->handle];

    memcpy(handle, given->handle, sizeof handle);
    if (c->share == SHARE_DESCRIPTOR)
        return c->driver.import_piece(piece, (void *)(intptr_t)given->fd, CUDA_HANDLE_DESCRIPTOR);
    return c->driver.import_piece(piece, handle, CUDA_HANDLE_FABRIC);
}

cuda_result cuda_import_remote(struct cuda *c, const struct device_piece *given, cuda_piece *piece)
{
    unsigned char handle[sizeof given->handle];

    memcpy(handle, given->handle, sizeof handle);
    return c->driver.import_piece(piece, handle, CUDA_HANDLE_FABRIC);
}
