/* Symmetric heaps in GPU memory: this PE's, and those of the other PEs of the node.
 *
 * With the driver's virtual memory management a heap is a range of addresses, reserved once for all
 * that it may become, and pieces of memory mapped into it one behind the other as it grows. A piece
 * goes to other processes as a descriptor (or as a handle of the NVLink fabric); they map it into a
 * range of their own. A piece needs no handle once it is mapped: memory is gone when nobody maps
 * it. Where that is missing the heap is one allocation of its full size, and goes by CUDA IPC.
 *
 * Who may load and store is said piece by piece: this GPU, if it reaches the memory; else the GPU
 * that the memory lies on, so that copies of this process can still be made there. */
#include "device/cuda/heap.h"

#include <stdlib.h>
#include <string.h>

#include "device/cuda/gpu.h"

gshmem_status_t cuda_describe(struct device *base, uint64_t most, struct device_card *card)
{
    struct cuda *c = cuda_of(base);
    gshmem_status_t status;
    cuda_result result;
    uint64_t step = 0;
    size_t all;

    if ((status = cuda_granularity(c, &step)))
        return status;
    if ((result = c->driver.gpu_memory(&all, c->gpu)))
        return cuda_fail(c, result, "asking for the size of GPU %d", c->gpu);
    if (most == 0) /* what grows may take all there is; what cannot is modest */
        most = c->share == SHARE_IPC ? all / 16 : all;
    *card = (struct device_card){
        .heap_most = heap_round_up(most, step),
        .share = c->share,
        .present = 1,
        .multicast = cuda_can_multicast(c),
        .clique = c->domain.clique,
        .window = c->share == SHARE_IPC ? 0 : heap_round_up(all, step),
    };
    memcpy(card->unit, c->uuid, sizeof card->unit);
    memcpy(card->domain, c->domain.uuid, sizeof card->domain);
    return GSHMEM_OK;
}

/* ---- Opening ---- */

/* Finds out where another PE's heap lies, and who here may load and store there; false: it is out
 * of reach, and has been said why. */
static bool find_owner(const struct cuda *c, const struct device_card *card, struct heap *h)
{
    int can = 0;

    h->gpu = cuda_find_gpu(c, card->unit);
    if (card->share != (uint32_t)c->share) {
        c->config.info(
            "cuda: a PE of this node shares its heap by %s, and this one by %s: its heap "
            "is not mapped",
            card->share <= SHARE_IPC ? cuda_share_name((enum cuda_share)card->share) : "?",
            cuda_share_name(c->share));
        return false;
    }
    if (h->gpu < 0) {
        c->config.info("cuda: the GPU of a PE of this node is not visible to this process "
                       "(CUDA_VISIBLE_DEVICES): its heap is not mapped");
        return false;
    }
    if (h->gpu == c->gpu || (!c->driver.gpu_can_access(&can, c->gpu, h->gpu) && can)) {
        h->reader = c->gpu;
        return true;
    }
    h->reader = h->gpu;
    if (c->share != SHARE_IPC) {
        c->config.info("cuda: GPU %d has no peer access to GPU %d: its memory is reached by copies",
                       c->gpu, h->gpu);
        return true;
    }
    c->config.info("cuda: GPU %d has no peer access to GPU %d, and CUDA IPC needs it: its heap is "
                   "not mapped",
                   c->gpu, h->gpu);
    return false;
}

static gshmem_status_t heap_reserve(struct cuda *c, struct heap *h, uint64_t window)
{
    cuda_result result = c->driver.reserve(&h->base, h->limit + window, 0, 0, 0);

    if (result)
        return cuda_fail(c, result,
                         "reserving addresses for a heap of up to %llu MiB (GSHMEM_HEAP_MAX)",
                         (unsigned long long)h->limit >> 20);
    h->reserved = h->limit + window;
    return GSHMEM_OK;
}

/* Updates are made by the GPU that reaches the memory. */
static void heap_note_unreached(struct cuda *c, struct heap *h)
{
    pthread_mutex_lock(&c->work.lock);
    h->next = c->unreached;
    c->unreached = h;
    pthread_mutex_unlock(&c->work.lock);
}

static void heap_forget_unreached(struct cuda *c, const struct heap *h)
{
    pthread_mutex_lock(&c->work.lock);
    for (struct heap **at = &c->unreached; *at; at = &(*at)->next) {
        if (*at == h) {
            *at = h->next;
            break;
        }
    }
    pthread_mutex_unlock(&c->work.lock);
}

cuda_gpu cuda_heap_reader(const struct cuda *c, cuda_address at)
{
    for (const struct heap *h = c->unreached; h; h = h->next) {
        if (at - h->base < (h->reserved ? h->reserved : h->limit))
            return h->reader;
    }
    return c->gpu;
}

gshmem_status_t cuda_heap_open(struct device *base, const struct device_card *card, uint64_t limit,
                               uint64_t window, struct device_heap_map *map)
{
    struct cuda *c = cuda_of(base);
    struct heap *h = calloc(1, sizeof *h);
    gshmem_status_t status = GSHMEM_OK;

    if (!h)
        return c->config.fail(GSHMEM_ERR_MEMORY, "cuda: out of memory");
    *h = (struct heap){.mine = !card, .gpu = c->gpu, .reader = c->gpu, .limit = limit};
    *map = (struct device_heap_map){.own = NULL};
    if (card && !find_owner(c, card, h)) {
        free(h);
        return GSHMEM_OK;
    }
    if (c->share != SHARE_IPC && (status = heap_reserve(c, h, window))) {
        free(h);
        return status;
    }
    if (h->reader != c->gpu)
        heap_note_unreached(c, h);
    *map = (struct device_heap_map){h, h->base, h->reader == c->gpu};
    return GSHMEM_OK;
}

gshmem_status_t cuda_heap_open_remote(struct device *base, const struct device_card *card,
                                      uint64_t limit, uint64_t window, struct device_heap_map *map)
{
    struct cuda *c = cuda_of(base);
    gshmem_status_t status;
    struct heap *h;

    *map = (struct device_heap_map){.own = NULL};
    if (!c->domain.member || card->clique != c->domain.clique ||
        memcmp(card->domain, c->domain.uuid, sizeof card->domain) != 0)
        return GSHMEM_OK;
    if (!(h = calloc(1, sizeof *h)))
        return c->config.fail(GSHMEM_ERR_MEMORY, "cuda: out of memory");
    *h = (struct heap){.remote = true, .gpu = -1, .reader = c->gpu, .limit = limit};
    if ((status = heap_reserve(c, h, window))) {
        free(h);
        return status;
    }
    c->domain.heaps++;
    *map = (struct device_heap_map){h, h->base, true};
    return GSHMEM_OK;
}

void cuda_heap_close(struct device *base, struct device_heap_map *map)
{
    struct cuda *c = cuda_of(base);
    struct heap *h = map->own;

    if (!h)
        return;
    c->domain.heaps -= h->remote;
    cuda_heap_shrink(base, map, 0);
    heap_forget_unreached(c, h);
    cuda_window_drop(base, map, 0, h->reserved);
    if (h->reserved)
        c->driver.unreserve(h->base, h->reserved);
    free(h->piece);
    free(h->imported);
    free(h);
    *map = (struct device_heap_map){.own = NULL};
}
