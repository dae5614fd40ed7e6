#include <string.h>
#include <stdlib.h>
#include <unistd.h>
#include <pthread.h>
#include "device/device.h"
#include "gshmem.h"
#include "runtime/base/log.h"
#include "runtime/base/settings.h"
#include "runtime/job/job.h"
#include "runtime/memory/device_heap.h"
#include "runtime/memory/device_heap_parts.h"
#include "runtime/memory/map.h"
#include "runtime/node/handover.h"
#include "runtime/node/node.h"

/* ---- Growing ---- */

/* relaxed: a PE that may use the new memory learns of it after this PE has agreed that it is
 * there. */
static void set_mine(struct device_heap *d, uint64_t bytes)
{
    __atomic_store_n(&d->mine, bytes, __ATOMIC_RELAXED);
}

gshmem_status_t device_heap_failure(const struct device_heap *d, const struct news *news,
                                    const char *call)
{
    const struct node *node = d->node;

    if (news[node->index].status)
        return (gshmem_status_t)news[node->index].status;
    for (int i = 0; i < node->n; i++) {
        if (news[i].status)
            return fail_silently((gshmem_status_t)news[i].status,
                                 "%s: refused by PE %d, which says why", call, node->pe[i]);
    }
    return GSHMEM_OK;
}

static void shrink(struct device_heap *d, uint64_t end)
{
    const struct device_ops *ops = d->device->ops;

    d->everywhere = UINT64_MAX;
    for (int i = 0; i < d->node->n; i++) {
        if (!d->map[i].own)
            continue;
        pthread_mutex_lock(&d->pieces);
        uint64_t left = ops->heap_shrink(d->device, &d->map[i], end);
        pthread_mutex_unlock(&d->pieces);
        if (left < d->everywhere)
            d->everywhere = left;
        if (i == d->node->index)
            set_mine(d, left);
    }
    for (int i = 0; i < d->remotes; i++)
        ops->heap_shrink(d->device, &d->remote[i].map, end);
}

/* Grows this PE's heap, before the others know of it. */
static void grow_mine(struct device_heap *d, uint64_t end, struct news *mine)
{
    *mine = (struct news){.piece = {.offset = d->mine, .fd = -1}};
    if (end <= d->mine)
        return;
    pthread_mutex_lock(&d->pieces);
    mine->status =
        d->device->ops->heap_grow(d->device, &d->map[d->node->index], end, &mine->piece);
    pthread_mutex_unlock(&d->pieces);
    if (mine->status)
        mine->piece = (struct device_piece){.offset = d->mine, .fd = -1};
    else
        set_mine(d, d->mine + mine->piece.bytes);
}

/* Maps what the others have grown by. */
static gshmem_status_t device_heap_follow_others(struct device_heap *d, struct news *news,
                                                 const int *fds)
{
    gshmem_status_t status = GSHMEM_OK;

    d->everywhere = d->mine;
    for (int i = 0; i < d->node->n; i++) {
        struct device_piece *piece = &news[i].piece;
        if (i == d->node->index)
            continue;
        piece->fd = fds[i];
        if (piece->offset + piece->bytes < d->everywhere)
            d->everywhere = piece->offset + piece->bytes;
        if (piece->bytes && d->map[i].own && !status)
            status = d->device->ops->heap_follow(d->device, &d->map[i], piece);
        else if (fds[i] >= 0)
            close(fds[i]);
    }
    return status;
}

void device_heap_close_all(const struct device_heap *d, const int *fds)
{
    for (int i = 0; i < d->node->n; i++) {
        if (fds[i] >= 0)
            close(fds[i]);
    }
}

/* Two exchanges: of the new pieces, and of whether all PEs could map all of them. */
static gshmem_status_t device_heap_grow(struct device_heap *d, uint64_t end, struct news *news,
                                        int *fds, const char *call)
{
    const struct node *node = d->node;
    struct news *mine = &news[node->index], own;
    gshmem_status_t status;

    grow_mine(d, end, &own);
    d->grown = own.piece;
    status = handover_exchange(&d->handover, &d->circle, call, &own, sizeof own, own.piece.fd, news,
                               fds);
    if (own.piece.fd >= 0)
        close(own.piece.fd);
    if (status)
        return status;
    *mine = own;
    if ((status = device_heap_failure(d, news, call))) {
        device_heap_close_all(d, fds);
        return status;
    }
    own = (struct news){.status = device_heap_follow_others(d, news, fds)};
    if (!own.status && d->everywhere >= d->system && mine->piece.offset == 0)
        own.status =
            d->device->ops->fill(d->device, (void *)d->map[node->index].base, 0, d->system);
    if ((status =
             handover_exchange(&d->handover, &d->circle, call, &own, sizeof own, -1, news, fds)))
        return status;
    device_heap_close_all(d, fds);
    *mine = own;
    return device_heap_failure(d, news, call);
}

/* All PEs have failed together. Memory that others may still have mapped is released last, as CUDA
 * IPC requires. */
static void undo(struct device_heap *d, uint64_t end, gshmem_status_t status, struct news *news,
                 int *fds, const char *call)
{
    const struct news none = {.piece.fd = -1};

    for (int i = 0; i < d->node->n; i++) {
        if (i != d->node->index && d->map[i].own)
            d->device->ops->heap_shrink(d->device, &d->map[i], end);
    }
    if (status != GSHMEM_ERR_PEER_DEAD && status != GSHMEM_ERR_ABORTED)
        handover_exchange(&d->handover, &d->circle, call, &none, sizeof none, -1, news, fds);
    shrink(d, end);
}

gshmem_status_t device_heap_reach(struct device_heap *d, uint64_t end, const char *call)
{
    uint64_t before = d->everywhere;
    gshmem_status_t status;

    end += d->system;
    d->grown.bytes = 0;
    if (end <= before)
        return GSHMEM_OK;
    status = device_heap_grow(d, end, d->news, d->news_fds, call);
    if (status)
        undo(d, before, status, d->news, d->news_fds, call);
    return status;
}

uint64_t device_heap_everywhere(const struct device_heap *d)
{
    return d->everywhere - d->system;
}

void device_heap_cut(struct device_heap *d, uint64_t end)
{
    shrink(d, end + d->system);
}

/* ---- Start and stop ---- */

gshmem_status_t device_heap_prepare(struct job *j, uint64_t system)
{
    struct node_member *me = &j->node->control->member[j->node->index];
    uint64_t least = (uint64_t)settings_number(SETTING_HEAP_SIZE);
    uint64_t most = (uint64_t)settings_number(SETTING_HEAP_MAX);
        gshmem_status_t status;

    if (!j->device->ops->own_heap)
        return GSHMEM_OK;
    const size_t n = (size_t)j->node->n;
    struct device_heap *d = calloc(1, sizeof *d + n * sizeof d->map[0]);
    if (!d)
        return fail(GSHMEM_ERR_MEMORY, "start-up: out of memory for %zu PEs", n);
    j->device_heap = d;
    d->device = j->device;
    d->node = j->node;
    pthread_mutex_init(&d->pieces, NULL);
    d->handover.fd[0] = d->handover.fd[1] = -1;
    d->letters = calloc(n, HANDOVER_LETTER_MAX);
    d->letter_fds = calloc(n, sizeof *d->letter_fds);
    d->news = calloc(n, sizeof *d->news);
    d->news_fds = calloc(n, sizeof *d->news_fds);
    if (!d->letters || !d->letter_fds || !d->news || !d->news_fds)
        return fail(GSHMEM_ERR_MEMORY, "start-up: out of memory for %zu PEs", n);
    d->pes = j->n_pes;
    d->system = system;
    if ((status = handover_open(&d->handover, j->node->n)))
        return status;
    if (most)
        most = system + (least > most ? least : most);
    if ((status = j->device->ops->describe(j->device, most, &me->card)))
        return status;
    if (me->card.heap_most < system + least)
        status = j->device->ops->describe(j->device, system + least, &me->card);
    me->handover = d->handover.address;
    return status;
}

static uint64_t window_after(uint64_t limit)
{
    const uint64_t step = DEVICE_HEAP_WINDOW_ALIGNMENT;

    return (limit + step - 1) / step * step;
}

/* Either all PEs have a device heap, or none has; the limit is then the largest that all can
 * have. */
static gshmem_status_t agree_on_limit(const struct job *j, uint64_t *limit, uint64_t *window)
{
    const struct node_member *member = j->node->control->member;

    *limit = *window = UINT64_MAX;
    for (int i = 0; i < j->node->n; i++) {
        if (member[i].card.present != member[j->node->index].card.present)
            return fail(GSHMEM_ERR_MISMATCH,
                        "start-up: PE %d has its heap in GPU memory and PE %d in host memory: "
                        "GSHMEM_DEVICE=cuda, or =host, for all PEs",
                        member[i].card.present ? j->node->pe[i] : j->pe,
                        member[i].card.present ? j->pe : j->node->pe[i]);
        if (member[i].card.heap_most < *limit)
            *limit = member[i].card.heap_most;
        if (member[i].card.window < *window)
            *window = member[i].card.window;
    }
    return GSHMEM_OK;
}

static struct segment segment_of(const struct job *j, imported_fn *imported)
{
    const struct device_heap *d = j->device_heap;

    return (struct segment){
        .base = d->map[d->node->index].base,
        .bytes = d->addresses,
        .reserved = d->system,
        .imported = imported,
        .context = j,
        .there = &d->mine,
        .atomicity = ATOMICITY_GPU,
    };
}

gshmem_status_t device_heap_start(struct job *j, await_fn *await, imported_fn *imported)
{
    const struct node_member *member = j->node->control->member;
    struct device_heap *d = j->device_heap;
    gshmem_status_t status;
    uint64_t limit, window;

    if ((status = agree_on_limit(j, &limit, &window)) || !d)
        return status;
    if (limit <= d->system)
        return fail(GSHMEM_ERR_ARGUMENT,
                    "start-up: a heap of GPU memory of %llu KiB has no room beside the library's "
                    "own %llu KiB: raise GSHMEM_HEAP_MAX",
                    (unsigned long long)limit >> 10, (unsigned long long)d->system >> 10);
    d->limit = d->limit_here = limit;
    d->window = window_after(limit);
    d->addresses = d->window_end = limit + window;
    d->circle = (struct handover_circle){j->node->n, j->node->index, &member[0].handover,
                                         sizeof member[0], GSHMEM_TEAM_HOST, await};
    for (int i = 0; i < j->node->n && !status; i++)
        status = j->device->ops->heap_open(j->device, i == j->node->index ? NULL : &member[i].card,
                                           limit, window, &d->map[i]);
    if (status || (status = device_heap_reach(d, 1, "start-up")) ||
        (status = map_add(j->map, SEGMENT_DEVICE, segment_of(j, imported), true)))
        return status;
    d->segment = &j->map->segment[SEGMENT_DEVICE];
    device_heap_enter_map(d);
    return GSHMEM_OK;
}

void device_heap_leave(struct job *j)
{
    struct device_heap *d = j->device_heap;

    for (int i = 0; d && i < j->node->n; i++) {
        if (i != j->node->index)
            d->device->ops->heap_close(d->device, &d->map[i]);
    }
    for (int i = 0; d && i < d->remotes; i++)
        d->device->ops->heap_close(d->device, &d->remote[i].map);
    if (d)
        d->remotes = 0;
    if (d && d->segment)
        device_heap_enter_map(d);
}

void device_heap_stop(struct job *j)
{
    struct device_heap *d = j->device_heap;

    if (!d)
        return;
    device_heap_leave(j);
    d->device->ops->heap_close(d->device, &d->map[j->node->index]);
    handover_close(&d->handover);
    pthread_mutex_destroy(&d->pieces);
    free(d->letters);
    free(d->letter_fds);
    free(d->news);
    free(d->news_fds);
    free(d->remote);
    free(d->imported);
    free(d);
    j->device_heap = NULL;
}

/* ---- Addresses ---- */

char *device_heap_base(const struct device_heap *d)
{
    return (char *)d->map[d->node->index].base + d->system;
}

uint64_t device_heap_limit(const struct device_heap *d)
{
    return d->limit - d->system;
}

uint64_t device_heap_addresses(const struct device_heap *d)
{
    return d->addresses - d->system;
}

void device_heap_meet(struct device_heap *d, uint64_t least, uint64_t most, uint64_t addresses)
{
    d->limit = d->system + least;
    d->window = window_after(d->system + most);
    d->window_end = d->system + addresses;
    d->segment->own_bytes = d->limit;
}

/* NULL: it is of another node, and not mapped. */
static const struct device_heap_map *map_of(const struct device_heap *d, int pe)
{
    int index = d->node->index_of[pe];

    return index < 0 ? domain_map_of(d, pe) : &d->map[index];
}

void device_heap_enter_map(struct device_heap *d)
{
    d->segment->own_bytes = d->limit;
    for (int pe = 0; pe < d->pes; pe++) {
        const struct device_heap_map *map = map_of(d, pe);
        d->segment->copied[pe] = map && map->own ? map->base : 0;
        d->segment->loaded[pe] = map && map->own && map->loads ? map->base : 0;
    }
}

/* ---- For multicast ---- */

uint64_t device_heap_filled(const struct device_heap *d)
{
    return d->everywhere;
}

uint64_t device_heap_span(const struct device_heap *d)
{
    return d->limit;
}

uint64_t device_heap_piece(struct device_heap *d, uint64_t offset)
{
    pthread_mutex_lock(&d->pieces);
    uint64_t bytes = d->device->ops->heap_piece(d->device, &d->map[d->node->index], offset);
    pthread_mutex_unlock(&d->pieces);
    return bytes;
}

uint64_t device_heap_kept(struct device_heap *d, uint64_t end)
{
    uint64_t kept = 0, bytes;

    while (kept < end + d->system && (bytes = device_heap_piece(d, kept)))
        kept += bytes;
    return kept;
}

const struct device_heap_map *device_heap_mine(const struct device_heap *d)
{
    return &d->map[d->node->index];
}

void device_heap_circle(struct device_heap *d, struct handover **handover,
                        const struct handover_circle **circle)
{
    *handover = &d->handover;
    *circle = &d->circle;
}

void *device_heap_letters(struct device_heap *d, int **fds)
{
    *fds = d->letter_fds;
    return d->letters;
}

gshmem_status_t device_heap_copy(struct device_heap *d, void *to, const void *from, uint64_t bytes)
{
    return d->device->ops->copy(d->device, to, from, bytes);
}

gshmem_status_t device_heap_fill(struct device_heap *d, void *at, int byte, uint64_t bytes)
{
    return d->device->ops->fill(d->device, at, byte, bytes);
}
