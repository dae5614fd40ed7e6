/* Memory of the program's as part of symmetric heaps: pieces that it made by cuMemCreate and mapped
 * somewhere come to be mapped in this PE's heap too, and in other processes as pieces of the heap
 * do. */
#include "device/cuda/heap.h"

#include <stdlib.h>
#include <unistd.h>

static bool room_for_imported(struct heap *h)
{
    struct piece *more = realloc(h->imported, (size_t)(h->lents + 1) * sizeof *more);

    if (more)
        h->imported = more;
    return more != NULL;
}

/* ---- The program's ---- */

/* The mapping that `at` is in; where the driver does not know it as one, the allocation. */
static bool find_mapping(const struct cuda *c, cuda_address at, cuda_address *start, size_t *bytes)
{
    return (!c->driver.pointer_attribute(start, CUDA_POINTER_MAPPING_START, at) &&
            !c->driver.pointer_attribute(bytes, CUDA_POINTER_MAPPING_BYTES, at)) ||
           (!c->driver.pointer_attribute(start, CUDA_POINTER_RANGE_START, at) &&
            !c->driver.pointer_attribute(bytes, CUDA_POINTER_RANGE_BYTES, at));
}

/* Pieces are mapped as a whole, so that what is lent has to be whole pieces. */
static gshmem_status_t window_find_piece(const struct cuda *c, cuda_address at, uint64_t most,
                                         size_t *bytes)
{
    cuda_address start = 0;

    if (!find_mapping(c, at, &start, bytes))
        return c->config.fail(GSHMEM_ERR_ARGUMENT, "cuda: no memory of a GPU is mapped at %#llx",
                              at);
    if (start != at)
        return c->config.fail(
            GSHMEM_ERR_ARGUMENT,
            "cuda: %#llx is %llu B inside the %zu B that are mapped at %#llx: lend the "
            "heap whole pieces, as cuMemCreate made them",
            at, at - start, *bytes, start);
    if (*bytes > most)
        return c->config.fail(
            GSHMEM_ERR_ARGUMENT,
            "cuda: the buffer ends %llu B into the %zu B that are mapped at %#llx: lend "
            "the heap whole pieces, as cuMemCreate made them",
            (unsigned long long)most, *bytes, at);
    return GSHMEM_OK;
}

static gshmem_status_t check_piece(struct cuda *c, cuda_piece piece, cuda_address at)
{
    struct cuda_allocation what = {.type = 0};
    cuda_result result = c->driver.piece_properties(&what, piece);

    if (result)
        return cuda_fail(c, result, "asking what the memory at %#llx was made as", at);
    if (what.location.type != CUDA_LOCATION_GPU || what.location.id != c->gpu)
        return c->config.fail(
            GSHMEM_ERR_ARGUMENT, "cuda: the memory at %#llx lies on %s %d, and this PE's GPU is %d",
            at, what.location.type == CUDA_LOCATION_GPU ? "GPU" : "the host's node",
            what.location.id, c->gpu);
    if (!(what.handle_types & cuda_handle_type(c)))
        return c->config.fail(
            GSHMEM_ERR_ARGUMENT,
            "cuda: the memory at %#llx cannot go to other processes by %s: make it with "
            "%s among the requestedHandleTypes",
            at, cuda_share_name(c->share),
            c->share == SHARE_FABRIC ? "CU_MEM_HANDLE_TYPE_FABRIC"
                                     : "CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR");
    if (c->domain.heaps && !(what.handle_types & CUDA_HANDLE_FABRIC))
        return c->config.fail(
            GSHMEM_ERR_ARGUMENT,
            "cuda: the memory at %#llx cannot go to the PEs of other nodes that NVLink "
            "connects: make it with CU_MEM_HANDLE_TYPE_FABRIC among the "
            "requestedHandleTypes (or GSHMEM_CUDA_DOMAIN=off)",
            at);
    return GSHMEM_OK;
}

static gshmem_status_t device_cuda_window_take(struct cuda *c, struct heap *h, cuda_address at,
                                               size_t bytes, struct device_piece *out)
{
    gshmem_status_t status;
    cuda_result result;
    cuda_piece piece;

    if ((result = c->driver.retain(&piece, (void *)(uintptr_t)at)))
        return cuda_fail(
            c, result,
            "the memory at %#llx was not made by cuMemCreate (cudaMalloc's cannot be lent to "
            "the heap)",
            at);
    if (!(status = check_piece(c, piece, at))) {
        if ((result = cuda_export(c, piece, out)))
            status = cuda_fail(c, result, "making %zu MiB at %#llx known to other processes by %s",
                               bytes >> 20, at, cuda_share_name(c->share));
        else if (c->domain.heaps && (result = cuda_export_remote(c, piece, out)))
            status = cuda_fail(c, result,
                               "making %zu MiB at %#llx known to other nodes by fabric handles",
                               bytes >> 20, at);
        else
            status = cuda_heap_map(c, h, piece, out->offset, bytes);
        if (status && out->fd >= 0)
            close(out->fd);
    }
    c->driver.release(piece);
    return status;
}

gshmem_status_t cuda_window_take(struct device *base, struct device_heap_map *map, const void *at,
                                 uint64_t most, uint64_t offset, struct device_piece *out)
{
    const cuda_address first = (cuda_address)(uintptr_t)at;
    struct cuda *c = cuda_of(base);
    struct heap *h = map->own;
    gshmem_status_t status;
    size_t bytes = 0;

    if (!room_for_imported(h))
        return c->config.fail(GSHMEM_ERR_MEMORY, "cuda: out of memory");
    if ((status = cuda_enter(c)))
        return status;
    *out = (struct device_piece){.offset = offset, .fd = -1};
    if (!(status = window_find_piece(c, first, most, &bytes)) &&
        !(status = device_cuda_window_take(c, h, first, bytes, out))) {
        out->bytes = bytes;
        h->imported[h->lents++] = (struct piece){offset, bytes};
    }
    cuda_leave(c);
    return status;
}

/* ---- Other PEs' ---- */

static gshmem_status_t import(struct cuda *c, struct heap *h, const struct device_piece *given)
{
    gshmem_status_t status;
    cuda_result result;
    cuda_piece piece;

    if ((result = h->remote ? cuda_import_remote(c, given, &piece) : cuda_import(c, given, &piece)))
        return cuda_fail(c, result, "taking over %llu MiB that a PE lends to its heap by %s",
                         (unsigned long long)given->bytes >> 20,
                         cuda_share_name(h->remote ? SHARE_FABRIC : c->share));
    status = cuda_heap_map(c, h, piece, given->offset, given->bytes);
    c->driver.release(piece);
    return status;
}

gshmem_status_t cuda_window_follow(struct device *base, struct device_heap_map *map,
                                   const struct device_piece *given)
{
    struct cuda *c = cuda_of(base);
    struct heap *h = map->own;
    gshmem_status_t status;

    if (given->offset < h->limit || given->bytes == 0 || given->offset > h->reserved ||
        given->bytes > h->reserved - given->offset)
        status = c->config.fail(
            GSHMEM_ERR_DEVICE,
            "cuda: a PE lends its heap %llu B at %llu, and there is room between %llu "
            "and %llu",
            (unsigned long long)given->bytes, (unsigned long long)given->offset,
            (unsigned long long)h->limit, (unsigned long long)h->reserved);
    else if (!room_for_imported(h))
        status = c->config.fail(GSHMEM_ERR_MEMORY, "cuda: out of memory");
    else if (!(status = cuda_enter(c))) {
        if (!(status = import(c, h, given)))
            h->imported[h->lents++] = (struct piece){given->offset, given->bytes};
        cuda_leave(c);
    }
    if (given->fd >= 0)
        close(given->fd);
    return status;
}

/* ---- And back ---- */

void cuda_window_drop(struct device *base, struct device_heap_map *map, uint64_t offset,
                      uint64_t bytes)
{
    struct cuda *c = cuda_of(base);
    struct heap *h = map->own;
    cuda_result result;

    if (!h->lents || cuda_enter(c))
        return;
    for (int i = h->lents - 1; i >= 0; i--) {
        const struct piece p = h->imported[i];
        if (p.offset < offset || p.offset - offset >= bytes)
            continue;
        if ((result = c->driver.unmap(h->base + p.offset, p.bytes)))
            c->config.info("cuda: giving back %llu MiB that a heap was lent: %s",
                           (unsigned long long)p.bytes >> 20, cuda_error(&c->driver, result).text);
        h->imported[i] = h->imported[--h->lents];
    }
    cuda_leave(c);
}
