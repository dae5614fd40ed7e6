/* The pieces of memory that heaps consist of: made, given to other processes, mapped, given back.
 */
#include "device/cuda/heap.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PIECE_LEAST = 32 << 20 }; /* what a heap grows by, at least */

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

gshmem_status_t cuda_heap_map(struct cuda *c, const struct heap *h, cuda_piece piece,
                              uint64_t offset, uint64_t bytes)
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

static gshmem_status_t export_piece(struct cuda *c, cuda_piece piece, struct device_piece *out)
{
    cuda_result result = cuda_export(c, piece, out), remote;

    if (!result && (remote = cuda_export_remote(c, piece, out))) {
        if (out->fd >= 0)
            close(out->fd);
        return cuda_fail(c, remote,
                         "making memory of GPU %d known to other nodes by fabric handles", c->gpu);
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

    if ((status = cuda_granularity(c, &step)))
        return status;
    if (!room_for_piece(h))
        return c->config.fail(GSHMEM_ERR_MEMORY, "cuda: out of memory");
    more = heap_round_up(bytes - h->mapped, step > PIECE_LEAST ? step : PIECE_LEAST);
    if (more > h->limit - h->mapped)
        more = h->limit - h->mapped;
    if ((status = cuda_enter(c)))
        return status;
    status = c->share == SHARE_IPC ? grow_for_ipc(c, h, out) : grow_by_piece(c, h, more, out);
    cuda_leave(c);
    map->base = h->base;
    return status;
}

static gshmem_status_t import_piece(struct cuda *c, struct heap *h,
                                    const struct device_piece *given)
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

bool cuda_heap_reaches(const struct device_heap_map *map, uint64_t bytes)
{
    const struct heap *h = map->own;

    return h && h->pieces && h->piece[h->pieces - 1].offset >= bytes;
}

uint64_t cuda_heap_shrink(struct device *base, struct device_heap_map *map, uint64_t bytes)
{
    struct cuda *c = cuda_of(base);
    struct heap *h = map->own;

    if (!cuda_heap_reaches(map, bytes) || cuda_enter(c))
        return h ? h->mapped : 0;
    while (h->pieces && h->piece[h->pieces - 1].offset >= bytes) {
        const struct piece *last = &h->piece[--h->pieces];
        heap_give_back(c, h, last);
        h->mapped = last->offset;
    }
    cuda_leave(c);
    return h->mapped;
}
