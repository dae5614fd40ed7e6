/* The program's own memory that is imported into the heap in a device's memory: mapped behind the
 * heap's limit, in all processes of the node, piece by piece. */
#include <stdlib.h>
#include <unistd.h>

#include "device/device.h"
#include "runtime/base/log.h"
#include "runtime/memory/device_heap.h"
#include "runtime/memory/device_heap_parts.h"
#include "runtime/node/node.h"

/* Room for what all PEs of the node send. */
struct offers {
    struct news *news;
    int *fds;
};

uint64_t device_heap_window(const struct device_heap *d, uint64_t *bytes)
{
    *bytes = d->window_end > d->window ? d->window_end - d->window : 0;
    return d->window - d->system;
}

static gshmem_status_t take_mine(struct device_heap *d, const char *at, uint64_t bytes,
                                 uint64_t offset, struct device_piece *piece)
{
    struct device_heap_map *map = &d->map[d->node->index];

    *piece = (struct device_piece){.offset = offset, .fd = -1};
    return bytes ? d->device->ops->window_take(d->device, map, at, bytes, offset, piece)
                 : GSHMEM_OK;
}

/* PEs of other nodes may need the pieces, too. */
static gshmem_status_t window_keep(struct device_heap *d, const struct device_piece *piece)
{
    struct device_piece *more = realloc(d->imported, (size_t)(d->lents + 1) * sizeof *more);

    if (!more)
        return fail(GSHMEM_ERR_MEMORY, "out of memory for a piece of the program's memory");
    d->imported = more;
    more[d->lents++] = *piece;
    return GSHMEM_OK;
}

static gshmem_status_t window_follow_others(struct device_heap *d, const struct offers *t)
{
    gshmem_status_t status = GSHMEM_OK;

    for (int i = 0; i < d->node->n; i++) {
        struct device_piece *piece = &t->news[i].piece;
        if (i == d->node->index)
            continue;
        piece->fd = t->fds[i];
        if (piece->bytes && d->map[i].own && !status)
            status = d->device->ops->window_follow(d->device, &d->map[i], piece);
        else if (t->fds[i] >= 0)
            close(t->fds[i]);
    }
    return status;
}

/* The next piece of each PE, in two exchanges, as when heaps grow. PEs may have pieces of different
 * sizes. */
static gshmem_status_t lend_next(struct device_heap *d, const struct offers *t, const char *at,
                                 uint64_t bytes, uint64_t offset, uint64_t *taken, const char *call)
{
    struct news *mine = &t->news[d->node->index], own = {.status = GSHMEM_OK};
    gshmem_status_t status;

    if (!(own.status = take_mine(d, at, bytes, offset, &own.piece)) && own.piece.bytes &&
        (own.status = window_keep(d, &own.piece)) && own.piece.fd >= 0)
        close(own.piece.fd);
    if (own.status)
        own.piece = (struct device_piece){.offset = offset, .fd = -1};
    *taken = own.piece.bytes;
    own.more = *taken < bytes;
    status = handover_exchange(&d->handover, &d->circle, call, &own, sizeof own, own.piece.fd,
                               t->news, t->fds);
    if (own.piece.fd >= 0)
        close(own.piece.fd);
    if (status)
        return status;
    *mine = own;
    if ((status = device_heap_failure(d, t->news, call))) {
        device_heap_close_all(d, t->fds);
        return status;
    }
    own = (struct news){.status = window_follow_others(d, t), .more = own.more};
    if ((status = handover_exchange(&d->handover, &d->circle, call, &own, sizeof own, -1, t->news,
                                    t->fds)))
        return status;
    device_heap_close_all(d, t->fds);
    *mine = own;
    return device_heap_failure(d, t->news, call);
}

static bool any_has_more(const struct device_heap *d, const struct offers *t)
{
    for (int i = 0; i < d->node->n; i++) {
        if (t->news[i].more)
            return true;
    }
    return false;
}

gshmem_status_t device_heap_lend(struct device_heap *d, const void *at, uint64_t bytes,
                                 uint64_t offset, const char *call)
{
    const struct offers t = {d->news, d->news_fds};
    uint64_t done = 0, taken;
    gshmem_status_t status;

    d->lents = 0;
    do {
        status = lend_next(d, &t, (const char *)at + done, bytes - done, d->system + offset + done,
                           &taken, call);
        done += taken;
    } while (!status && any_has_more(d, &t));
    if (status)
        device_heap_return(d, offset, bytes);
    return status;
}

void device_heap_return(struct device_heap *d, uint64_t offset, uint64_t bytes)
{
    for (int i = 0; i < d->node->n; i++) {
        if (d->map[i].own)
            d->device->ops->window_drop(d->device, &d->map[i], d->system + offset, bytes);
    }
    for (int i = 0; i < d->remotes; i++)
        d->device->ops->window_drop(d->device, &d->remote[i].map, d->system + offset, bytes);
}
