/* Symmetric heaps in GPU memory: this PE's, and those of the other PEs of the host.
 *
 * With the driver's virtual memory management a heap is a range of addresses, reserved once for all
 * that it may become, and pieces of memory mapped into it one behind the other as it grows. A piece
 * goes to other processes as a descriptor (or as a handle of the NVLink fabric); they map it into a
 * range of their own. A piece needs no handle once it is mapped: memory is gone when nobody maps it.
 * Where that is missing the heap is one allocation of its full size, and goes by CUDA IPC.
 *
 * Who may load and store is said piece by piece: this GPU, if it reaches the memory; else the GPU
 * that the memory lies on, so that copies of this process can still be made there. */
#include "device/cuda/heap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PIECE_LEAST = 32 << 20 }; /* what a heap grows by, at least */

static const int handle_type[] = {
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

/* ---- What is offered ---- */

bool cuda_has(const struct cuda *c, enum cuda_attribute which)
{
    int value = 0;

    return c->driver.gpu_attribute(&value, which, c->gpu) == CUDA_OK && value;
}

static bool can_share(const struct cuda *c, enum cuda_share share)
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
        if (!(wanted == SHARE_AUTO || wanted == share) || !can_share(c, share))
            continue;
        c->share = share;
        c->config.info("cuda: heaps go to the other PEs of the host by %s%s", cuda_share_name(share),
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
    return handle_type[c->share];
}

struct cuda_allocation cuda_allocation_of(const struct cuda *c)
{
    return (struct cuda_allocation){
        .type = CUDA_ALLOCATION_PINNED,
        .handle_types = handle_type[c->share] | (c->domain.member ? CUDA_HANDLE_FABRIC : 0),
        .location = {CUDA_LOCATION_GPU, c->gpu},
        .flags.gpu_direct_rdma = cuda_has(c, CUDA_ATTRIBUTE_RDMA_VMM),
    };
}

static gshmem_status_t granularity(const struct cuda *c, uint64_t *bytes)
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

static uint64_t round_up(uint64_t bytes, uint64_t step)
{
    return (bytes + step - 1) / step * step;
}

gshmem_status_t cuda_describe(struct device *base, uint64_t most, struct device_card *card)
{
    struct cuda *c = cuda_of(base);
    gshmem_status_t status;
    cuda_result result;
    uint64_t step = 0;
    size_t all;

    if ((status = granularity(c, &step)))
        return status;
    if ((result = c->driver.gpu_memory(&all, c->gpu)))
        return cuda_fail(c, result, "asking for the size of GPU %d", c->gpu);
    if (most == 0) /* what grows may take all there is; what cannot is modest */
        most = c->share == SHARE_IPC ? all / 16 : all;
    *card = (struct device_card){
        .heap_most = round_up(most, step),
        .share = c->share,
        .present = 1,
        .multicast = cuda_can_multicast(c),
        .clique = c->domain.clique,
        .window = c->share == SHARE_IPC ? 0 : round_up(all, step),
    };
    memcpy(card->unit, c->uuid, sizeof card->unit);
    memcpy(card->domain, c->domain.uuid, sizeof card->domain);
    return GSHMEM_OK;
}

/* ---- Opening ---- */

/* Finds out where another PE's heap lies, and who here may load and store there; false: it is out of
 * reach, and has been said why. */
static bool find_owner(const struct cuda *c, const struct device_card *card, struct heap *h)
{
    int can = 0;

    h->gpu = cuda_find_gpu(c, card->unit);
    if (card->share != (uint32_t)c->share) {
        c->config.info("cuda: a PE of this host shares its heap by %s, and this one by %s: its heap "
                       "is not mapped",
                       card->share <= SHARE_IPC ? cuda_share_name((enum cuda_share)card->share) : "?",
                       cuda_share_name(c->share));
        return false;
    }
    if (h->gpu < 0) {
        c->config.info("cuda: the GPU of a PE of this host is not visible to this process "
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
static void note_far_heap(struct cuda *c, struct heap *h)
{
    pthread_mutex_lock(&c->work.lock);
    h->next = c->far_heaps;
    c->far_heaps = h;
    pthread_mutex_unlock(&c->work.lock);
}

static void forget_far_heap(struct cuda *c, const struct heap *h)
{
    pthread_mutex_lock(&c->work.lock);
    for (struct heap **at = &c->far_heaps; *at; at = &(*at)->next) {
        if (*at == h) {
            *at = h->next;
            break;
        }
    }
    pthread_mutex_unlock(&c->work.lock);
}

cuda_gpu cuda_heap_reader(const struct cuda *c, cuda_address at)
{
    for (const struct heap *h = c->far_heaps; h; h = h->next) {
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
        note_far_heap(c, h);
    *map = (struct device_heap_map){h, h->base, h->reader == c->gpu};
    return GSHMEM_OK;
}

gshmem_status_t cuda_heap_open_remote(struct device *base, const struct device_card *card, uint64_t limit,
                                    uint64_t window, struct device_heap_map *map)
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

/* ---- Pieces ---- */

static bool room_for_piece(struct heap *h)
{
    struct piece *more = realloc(h->piece, (size_t)(h->pieces + 1) * sizeof *more);

    if (more)
        h->piece = more;
    return more != NULL;
}

static void add_piece(struct heap *h, uint64_t bytes)
{
    h->piece[h->pieces++] = (struct piece){h->mapped, bytes};
    h->mapped += bytes;
}

gshmem_status_t cuda_heap_map(struct cuda *c, const struct heap *h, cuda_piece piece, uint64_t offset,
                              uint64_t bytes)
{
    const struct cuda_access access = {{CUDA_LOCATION_GPU, h->reader}, CUDA_READ_WRITE};
    cuda_address at = h->base + offset;
    cuda_result result;

    if ((result = c->driver.map(at, bytes, 0, piece, 0)))
        return cuda_fail(c, result, "mapping %llu MiB of GPU %d into %s heap",
                         (unsigned long long)bytes >> 20, h->gpu, h->mine ? "this PE's" : "a PE's");
    if ((result = c->driver.set_access(at, bytes, &access, 1))) {
        c->driver.unmap(at, bytes);
        return cuda_fail(c, result, "letting GPU %d use %llu MiB on GPU %d", h->reader,
                         (unsigned long long)bytes >> 20, h->gpu);
    }
    return GSHMEM_OK;
}

/* At the end of the heap. */
static gshmem_status_t map_piece(struct cuda *c, struct heap *h, cuda_piece piece, uint64_t bytes)
{
    gshmem_status_t status = cuda_heap_map(c, h, piece, h->mapped, bytes);

    if (!status)
        add_piece(h, bytes);
    return status;
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

static gshmem_status_t export_piece(struct cuda *c, cuda_piece piece, struct device_piece *out)
{
    cuda_result result = cuda_export(c, piece, out), remote;

    if (!result && (remote = cuda_export_remote(c, piece, out))) {
        if (out->fd >= 0)
            close(out->fd);
        return cuda_fail(c, remote, "making memory of GPU %d known to other hosts by fabric handles", c->gpu);
    }
    return result ? cuda_fail(c, result, "making memory of GPU %d known to other processes by %s",
                              c->gpu, cuda_share_name(c->share))
                  : GSHMEM_OK;
}

static gshmem_status_t grow_by_piece(struct cuda *c, struct heap *h, uint64_t bytes,
                                     struct device_piece *out)
{
    const struct cuda_allocation what = cuda_allocation_of(c);
    gshmem_status_t status;
    cuda_result result;
    cuda_piece piece;

    if ((result = c->driver.create(&piece, bytes, &what, 0)))
        return cuda_fail(c, result,
                         "%llu MiB more for the symmetric heap, which has %llu MiB of GPU %d",
                         (unsigned long long)bytes >> 20, (unsigned long long)h->mapped >> 20,
                         c->gpu);
    *out = (struct device_piece){.offset = h->mapped, .bytes = bytes, .fd = -1};
    if (!(status = export_piece(c, piece, out)) && (status = map_piece(c, h, piece, bytes)) &&
        out->fd >= 0)
        close(out->fd);
    c->driver.release(piece);
    return status;
}

/* All of it at once, on the first call. */
static gshmem_status_t grow_for_ipc(struct cuda *c, struct heap *h, struct device_piece *out)
{
    struct cuda_handle handle;
    cuda_result result;

    if ((result = c->driver.allocate(&h->base, h->limit)))
        return cuda_fail(c, result,
                         "%llu MiB of GPU %d for the symmetric heap, which cannot grow here "
                         "(GSHMEM_HEAP_MAX)",
                         (unsigned long long)h->limit >> 20, c->gpu);
    if ((result = c->driver.ipc_get(&handle, h->base))) {
        c->driver.free(h->base);
        return cuda_fail(c, result, "making memory of GPU %d known to other processes by CUDA IPC",
                         c->gpu);
    }
    *out = (struct device_piece){.offset = 0, .bytes = h->limit, .fd = -1};
    memcpy(out->handle, handle.bytes, sizeof out->handle);
    add_piece(h, h->limit);
    return GSHMEM_OK;
}

gshmem_status_t cuda_heap_grow(struct device *base, struct device_heap_map *map, uint64_t bytes,
                               struct device_piece *out)
{
    struct cuda *c = cuda_of(base);
    struct heap *h = map->own;
    gshmem_status_t status;
    uint64_t step = 0, more;

    if ((status = granularity(c, &step)))
        return status;
    if (!room_for_piece(h))
        return c->config.fail(GSHMEM_ERR_MEMORY, "cuda: out of memory");
    more = round_up(bytes - h->mapped, step > PIECE_LEAST ? step : PIECE_LEAST);
    if (more > h->limit - h->mapped)
        more = h->limit - h->mapped;
    if ((status = cuda_enter(c)))
        return status;
    status = c->share == SHARE_IPC ? grow_for_ipc(c, h, out) : grow_by_piece(c, h, more, out);
    cuda_leave(c);
    map->base = h->base;
    return status;
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

static gshmem_status_t import_piece(struct cuda *c, struct heap *h, const struct device_piece *given)
{
    gshmem_status_t status;
    cuda_result result;
    cuda_piece piece;

    if ((result = h->remote ? cuda_import_remote(c, given, &piece) : cuda_import(c, given, &piece)))
        return cuda_fail(c, result, "taking over %llu MiB of a PE's heap by %s",
                         (unsigned long long)given->bytes >> 20,
                         cuda_share_name(h->remote ? SHARE_FABRIC : c->share));
    status = map_piece(c, h, piece, given->bytes);
    c->driver.release(piece);
    return status;
}

static gshmem_status_t open_by_ipc(struct cuda *c, struct heap *h, const struct device_piece *given)
{
    struct cuda_handle handle;
    cuda_result result;

    memcpy(handle.bytes, given->handle, sizeof handle.bytes);
    if ((result = c->driver.ipc_open(&h->base, handle, CUDA_IPC_LAZY_PEER_ACCESS)))
        return cuda_fail(c, result, "taking over %llu MiB of a PE's heap by CUDA IPC",
                         (unsigned long long)given->bytes >> 20);
    add_piece(h, given->bytes);
    return GSHMEM_OK;
}

gshmem_status_t cuda_heap_follow(struct device *base, struct device_heap_map *map,
                                 const struct device_piece *given)
{
    struct cuda *c = cuda_of(base);
    struct heap *h = map->own;
    gshmem_status_t status;

    if (given->offset != h->mapped || given->bytes == 0 || given->bytes > h->limit - h->mapped)
        status = c->config.fail(GSHMEM_ERR_DEVICE,
                                "cuda: a PE's heap grows by %llu B at %llu, and %llu B of it are "
                                "known here, of at most %llu",
                                (unsigned long long)given->bytes,
                                (unsigned long long)given->offset, (unsigned long long)h->mapped,
                                (unsigned long long)h->limit);
    else if (!room_for_piece(h))
        status = c->config.fail(GSHMEM_ERR_MEMORY, "cuda: out of memory");
    else if (!(status = cuda_enter(c))) {
        status = c->share == SHARE_IPC ? open_by_ipc(c, h, given) : import_piece(c, h, given);
        cuda_leave(c);
    }
    if (given->fd >= 0)
        close(given->fd);
    map->base = h->base;
    return status;
}

uint64_t cuda_heap_piece(struct device *base, const struct device_heap_map *map, uint64_t offset)
{
    const struct heap *h = map->own;

    (void)base;
    for (int i = 0; i < h->pieces; i++) {
        if (h->piece[i].offset == offset)
            return h->piece[i].bytes;
    }
    return 0;
}

/* ---- And back ---- */

static void heap_give_back(struct cuda *c, struct heap *h, const struct piece *p)
{
    cuda_result result;

    if (c->share != SHARE_IPC)
        result = c->driver.unmap(h->base + p->offset, p->bytes);
    else if (h->mine)
        result = c->driver.free(h->base);
    else
        result = c->driver.ipc_close(h->base);
    if (result)
        c->config.info("cuda: giving back %llu MiB of a heap: %s",
                       (unsigned long long)p->bytes >> 20, cuda_error(&c->driver, result).text);
}

uint64_t cuda_heap_shrink(struct device *base, struct device_heap_map *map, uint64_t bytes)
{
    struct cuda *c = cuda_of(base);
    struct heap *h = map->own;

    if (!h->pieces || h->piece[h->pieces - 1].offset < bytes || cuda_enter(c))
        return h->mapped;
    cuda_work_await_forgotten(c);
    while (h->pieces && h->piece[h->pieces - 1].offset >= bytes) {
        const struct piece *last = &h->piece[--h->pieces];
        heap_give_back(c, h, last);
        h->mapped = last->offset;
    }
    cuda_leave(c);
    return h->mapped;
}

void cuda_heap_close(struct device *base, struct device_heap_map *map)
{
    struct cuda *c = cuda_of(base);
    struct heap *h = map->own;

    if (!h)
        return;
    c->domain.heaps -= h->remote;
    cuda_heap_shrink(base, map, 0);
    forget_far_heap(c, h);
    cuda_window_drop(base, map, 0, h->reserved);
    if (h->reserved)
        c->driver.unreserve(h->base, h->reserved);
    free(h->piece);
    free(h->lent);
    free(h);
    *map = (struct device_heap_map){.own = NULL};
}
