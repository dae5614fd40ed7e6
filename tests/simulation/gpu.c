#define _GNU_SOURCE
#include "gpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fiber.h"
#include "gshmem.h"

enum {
    ROOM = 128 << 20, /* addresses of a GPU's memory */
    PIECES = 32,
    UPDATES = 8,
    COPY_NS = 5 * US,
    UPDATE_NS = 20 * US,
};

struct copying {
    void *to;
    const void *from;
    size_t bytes;
    uint64_t done_at;
};

struct updating {
    bool busy;
    struct device_update update;
    uint64_t done_at;
};

/* `seen` is where the library finds the memory; it cannot be accessed there. */
struct gpu {
    struct device base;
    struct device_config config;
    char *seen, *bytes;
    uint64_t limit, piece_end[PIECES];
    int pieces;
    struct copying copy[DEVICE_COPIES_MOST]; /* made when they are over, in order */
    uint64_t begun, over;
    struct updating updating[UPDATES];
    struct gpu *next;
};

static struct gpu *gpus; /* of all PEs, for ever: others' copies may still come */

static struct gpu *gpu_of(struct device *d)
{
    return (struct gpu *)d;
}

static struct gpu *gpu_at(const void *at)
{
    for (struct gpu *g = gpus; g; g = g->next) {
        if ((uintptr_t)at - (uintptr_t)g->seen < ROOM)
            return g;
    }
    return NULL;
}

void *gpu_bytes(const void *at)
{
    const struct gpu *g = gpu_at(at);

    return g ? g->bytes + ((const char *)at - g->seen) : (void *)(uintptr_t)at;
}

/* ---- Copies ---- */

static void advance_copies(struct gpu *g, bool all)
{
    for (; g->over != g->begun; g->over++) {
        const struct copying *c = &g->copy[g->over % DEVICE_COPIES_MOST];
        if (!all && c->done_at > fiber_time())
            return;
        memmove(gpu_bytes(c->to), gpu_bytes(c->from), c->bytes);
    }
}

static gshmem_status_t gpu_copy(struct device *d, void *to, const void *from, size_t bytes)
{
    fiber_call();
    advance_copies(gpu_of(d), true);
    memmove(gpu_bytes(to), gpu_bytes(from), bytes);
    return GSHMEM_OK;
}

static gshmem_status_t gpu_copy_start(struct device *d, void *to, const void *from, size_t bytes,
                                      uint64_t *ticket)
{
    struct gpu *g = gpu_of(d);

    fiber_call();
    if (g->begun - g->over == DEVICE_COPIES_MOST)
        advance_copies(g, true);
    *ticket = g->begun++;
    g->copy[*ticket % DEVICE_COPIES_MOST] =
        (struct copying){to, from, bytes, fiber_time() + COPY_NS + bytes / 10};
    return GSHMEM_OK;
}

static bool gpu_copy_done(struct device *d, uint64_t ticket, gshmem_status_t *status)
{
    struct gpu *g = gpu_of(d);

    fiber_call();
    advance_copies(g, false);
    *status = GSHMEM_OK;
    return ticket < g->over;
}

static gshmem_status_t gpu_fill(struct device *d, void *at, int byte, size_t bytes)
{
    (void)d;
    fiber_call();
    memset(gpu_bytes(at), byte, bytes);
    return GSHMEM_OK;
}

/* ---- Updates ---- */

static uint64_t apply(const struct device_update *u)
{
    const bool small = u->type == GSHMEM_TYPE_INT32 || u->type == GSHMEM_TYPE_UINT32 ||
                       u->type == GSHMEM_TYPE_FLOAT;
    const uint64_t mask = small ? UINT32_MAX : UINT64_MAX;
    const uint64_t operand = u->operand, compare = u->compare & mask;
    void *at = gpu_bytes(u->at);
    uint64_t old = 0, now = 0;

    memcpy(&old, at, small ? 4 : 8);
#define X(name, number, text, fetching, bits)                                                      \
    if (u->op == GSHMEM_AMO_##name)                                                                \
        now = bits;
    GSHMEM_AMO_TABLE(X)
#undef X
    now &= mask;
    memcpy(at, &now, small ? 4 : 8);
    return old;
}

static gshmem_status_t gpu_update(struct device *d, const struct device_update *u, uint64_t *old)
{
    fiber_call();
    advance_copies(gpu_of(d), true);
    const uint64_t was = apply(u);
    if (old)
        *old = was;
    return GSHMEM_OK;
}

static gshmem_status_t gpu_update_start(struct device *d, const struct device_update *u,
                                        uint64_t *ticket)
{
    struct gpu *g = gpu_of(d);

    fiber_call();
    *ticket = 0;
    for (uint64_t i = 0; i < UPDATES && !*ticket; i++) {
        if (g->updating[i].busy)
            continue;
        g->updating[i] = (struct updating){true, *u, fiber_time() + UPDATE_NS};
        *ticket = i + 1;
    }
    return GSHMEM_OK;
}

static bool gpu_update_done(struct device *d, uint64_t ticket, uint64_t *old,
                            gshmem_status_t *status)
{
    struct gpu *g = gpu_of(d);
    struct updating *u = &g->updating[ticket - 1];

    fiber_call();
    if (u->done_at > fiber_time())
        return false;
    advance_copies(g, true);
    *old = apply(&u->update);
    u->busy = false;
    *status = GSHMEM_OK;
    return true;
}

static void gpu_update_forget(struct device *d, uint64_t ticket)
{
    gpu_of(d)->updating[ticket - 1].busy = false;
}

/* ---- The device ---- */

static bool gpu_usable(const struct device_config *config, char *why, size_t why_size)
{
    (void)config;
    snprintf(why, why_size, "it is simulated");
    return true;
}

static gshmem_status_t gpu_open(const struct device_config *config, struct device **out)
{
    struct gpu *g = calloc(1, sizeof *g);
    const int fd = memfd_create("simulated GPU", MFD_CLOEXEC);

    if (!g || fd < 0 || ftruncate(fd, ROOM))
        return config->fail(GSHMEM_ERR_MEMORY, "the simulated GPU has no memory");
    g->base.ops = &gpu_ops;
    g->config = *config;
    g->bytes = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    g->seen = mmap(NULL, ROOM, PROT_NONE, MAP_SHARED, fd, 0);
    close(fd);
    if (g->bytes == MAP_FAILED || g->seen == MAP_FAILED)
        return config->fail(GSHMEM_ERR_MEMORY, "the simulated GPU's memory cannot be mapped");
    g->next = gpus;
    gpus = g;
    *out = &g->base;
    return GSHMEM_OK;
}

static void gpu_close(struct device *d)
{
    advance_copies(gpu_of(d), true);
}

static const char *gpu_text(const struct device *d)
{
    (void)d;
    return "a simulated GPU";
}

static gshmem_status_t gpu_bind(struct device *d)
{
    (void)d;
    return GSHMEM_OK;
}

static void gpu_leave(struct device *d)
{
    (void)d;
}

static void *gpu_allocate(struct device *d, enum device_memory kind, size_t bytes)
{
    (void)d, (void)kind;
    void *at = aligned_alloc(64, (bytes + 63) / 64 * 64);

    return at ? memset(at, 0, bytes) : NULL;
}

static void gpu_release(struct device *d, enum device_memory kind, void *at)
{
    (void)d, (void)kind;
    free(at);
}

static bool gpu_owns(struct device *d, const void *at, size_t bytes)
{
    (void)d, (void)bytes;
    return gpu_at(at) != NULL;
}

static bool gpu_sees(struct device *d, const void *at, size_t bytes)
{
    (void)d, (void)at, (void)bytes;
    return true;
}

static gshmem_status_t gpu_pin(struct device *d, void *at, size_t bytes, bool *pinned)
{
    (void)d, (void)at, (void)bytes;
    *pinned = true;
    return GSHMEM_OK;
}

static void gpu_unpin(struct device *d, void *at)
{
    (void)d, (void)at;
}

static gshmem_status_t gpu_flush(struct device *d)
{
    (void)d;
    fiber_call();
    return GSHMEM_OK;
}

static void gpu_report(const struct device_config *config, struct device_report *r)
{
    (void)config;
    *r = (struct device_report){.pci = "0000:01:00.0", .nic_order = DEVICE_NIC_ORDERED};
}

/* ---- The heap ---- */

static gshmem_status_t gpu_describe(struct device *d, uint64_t most, struct device_card *card)
{
    (void)d;
    *card = (struct device_card){.heap_most = most && most < ROOM ? most : ROOM, .present = 1};
    memcpy(card->unit, &fiber_current->pe->number, sizeof fiber_current->pe->number);
    return GSHMEM_OK;
}

static gshmem_status_t gpu_heap_open(struct device *d, const struct device_card *card,
                                     uint64_t limit, uint64_t window, struct device_heap_map *map)
{
    struct gpu *g = gpu_of(d);

    (void)window;
    if (card)
        return g->config.fail(GSHMEM_ERR_UNSUPPORTED, "simulated GPUs do not reach each other");
    g->limit = limit;
    *map = (struct device_heap_map){g, (uintptr_t)g->seen, false};
    return GSHMEM_OK;
}

static gshmem_status_t gpu_heap_open_remote(struct device *d, const struct device_card *card,
                                            uint64_t limit, uint64_t window,
                                            struct device_heap_map *map)
{
    (void)d, (void)card, (void)limit, (void)window;
    *map = (struct device_heap_map){NULL, 0, false};
    return GSHMEM_OK;
}

static uint64_t gpu_end(const struct gpu *g)
{
    return g->pieces ? g->piece_end[g->pieces - 1] : 0;
}

static gshmem_status_t gpu_heap_grow(struct device *d, struct device_heap_map *map, uint64_t bytes,
                                     struct device_piece *piece)
{
    struct gpu *g = map->own;
    const uint64_t at = gpu_end(g), end = (bytes + (2 << 20) - 1) & ~(uint64_t)((2 << 20) - 1);

    (void)d;
    if (g->pieces == PIECES || bytes > g->limit)
        return g->config.fail(GSHMEM_ERR_MEMORY, "the simulated GPU has no more memory");
    g->piece_end[g->pieces++] = end < g->limit ? end : g->limit;
    *piece = (struct device_piece){.offset = at, .bytes = gpu_end(g) - at, .fd = -1};
    return GSHMEM_OK;
}

static gshmem_status_t gpu_heap_follow(struct device *d, struct device_heap_map *map,
                                       const struct device_piece *piece)
{
    (void)d, (void)map, (void)piece;
    return GSHMEM_OK;
}

static uint64_t gpu_heap_shrink(struct device *d, struct device_heap_map *map, uint64_t bytes)
{
    struct gpu *g = map->own;

    (void)d;
    while (g->pieces && (g->pieces > 1 ? g->piece_end[g->pieces - 2] : 0) >= bytes)
        g->pieces--;
    return gpu_end(g);
}

static uint64_t gpu_heap_piece(struct device *d, const struct device_heap_map *map, uint64_t offset)
{
    const struct gpu *g = map->own;

    (void)d;
    for (int i = 0; i < g->pieces; i++) {
        const uint64_t at = i ? g->piece_end[i - 1] : 0;
        if (at == offset)
            return g->piece_end[i] - at;
    }
    return 0;
}

static void gpu_heap_close(struct device *d, struct device_heap_map *map)
{
    (void)d, (void)map;
}

/* ---- What takes kernels of its own, a driver, or a switch ---- */

static gshmem_status_t gpu_refuse(struct device *d)
{
    return gpu_of(d)->config.fail(GSHMEM_ERR_UNSUPPORTED, "the simulated GPU has no kernels");
}

static gshmem_status_t gpu_stream_call(struct device *d, void *stream, void (*function)(void *),
                                       void *argument, void (*over)(void *))
{
    (void)stream, (void)function, (void)argument, (void)over;
    return gpu_refuse(d);
}

static bool gpu_is_captured(struct device *d, void *stream)
{
    (void)d, (void)stream;
    return false;
}

static gshmem_status_t gpu_stream_copy(struct device *d, void *stream, void *to, const void *from,
                                       size_t bytes)
{
    (void)stream;
    return gpu_copy(d, to, from, bytes);
}

static gshmem_status_t gpu_stream_request(struct device *d, void *stream,
                                          const struct device_request *r)
{
    (void)stream, (void)r;
    return gpu_refuse(d);
}

static gshmem_status_t gpu_request_start(struct device *d, const struct device_request *r,
                                         void **request)
{
    (void)r, (void)request;
    return gpu_refuse(d);
}

static bool gpu_request_done(struct device *d, void *request, gshmem_status_t *status)
{
    (void)request;
    *status = gpu_refuse(d);
    return true;
}

static gshmem_status_t gpu_export_range(struct device *d, const void *at, size_t bytes, int *fd,
                                        uint64_t *offset)
{
    (void)at, (void)bytes, (void)fd, (void)offset;
    return gpu_refuse(d);
}

static gshmem_status_t gpu_find_state(struct device *d, void *module, bool library, size_t bytes,
                                      void **state)
{
    (void)module, (void)library, (void)bytes, (void)state;
    return gpu_refuse(d);
}

static gshmem_status_t gpu_streams_wait(struct device *d)
{
    advance_copies(gpu_of(d), true);
    return GSHMEM_OK;
}

static bool gpu_streams_busy(struct device *d, bool kernels)
{
    (void)kernels;
    (void)d;
    return false;
}

static gshmem_status_t gpu_multicast_open(struct device *d, uint64_t limit,
                                          struct device_multicast *m)
{
    (void)limit, (void)m;
    return gpu_refuse(d);
}

static gshmem_status_t gpu_multicast_offer(struct device *d, struct device_multicast *m, int n,
                                           struct device_piece *piece)
{
    (void)m, (void)n, (void)piece;
    return gpu_refuse(d);
}

static gshmem_status_t gpu_multicast_join(struct device *d, struct device_multicast *m,
                                          const struct device_piece *piece)
{
    (void)m, (void)piece;
    return gpu_refuse(d);
}

static gshmem_status_t gpu_multicast_bind(struct device *d, struct device_multicast *m,
                                          const struct device_heap_map *mine)
{
    (void)m, (void)mine;
    return gpu_refuse(d);
}

static void gpu_multicast_shrink(struct device *d, struct device_multicast *m, uint64_t bytes)
{
    (void)d, (void)m, (void)bytes;
}

static void gpu_multicast_close(struct device *d, struct device_multicast *m)
{
    (void)d, (void)m;
}

static gshmem_status_t gpu_window_take(struct device *d, struct device_heap_map *map,
                                       const void *at, uint64_t bytes, uint64_t offset,
                                       struct device_piece *piece)
{
    (void)map, (void)at, (void)bytes, (void)offset, (void)piece;
    return gpu_refuse(d);
}

static gshmem_status_t gpu_window_follow(struct device *d, struct device_heap_map *map,
                                         const struct device_piece *piece)
{
    (void)map, (void)piece;
    return gpu_refuse(d);
}

static void gpu_window_drop(struct device *d, struct device_heap_map *map, uint64_t offset,
                            uint64_t bytes)
{
    (void)d, (void)map, (void)offset, (void)bytes;
}

const struct device_ops gpu_ops = {
    .size = sizeof(struct device_ops),
    .version = DEVICE_VERSION,
    .name = "cuda",
    .own_heap = true,
    .usable = gpu_usable,
    .open = gpu_open,
    .close = gpu_close,
    .text = gpu_text,
    .bind = gpu_bind,
    .enter = gpu_bind,
    .leave = gpu_leave,
    .allocate = gpu_allocate,
    .release = gpu_release,
    .copy = gpu_copy,
    .owns = gpu_owns,
    .fill = gpu_fill,
    .stream_call = gpu_stream_call,
    .stream_is_captured = gpu_is_captured,
    .describe = gpu_describe,
    .heap_open = gpu_heap_open,
    .heap_grow = gpu_heap_grow,
    .heap_follow = gpu_heap_follow,
    .heap_shrink = gpu_heap_shrink,
    .heap_close = gpu_heap_close,
    .pin = gpu_pin,
    .unpin = gpu_unpin,
    .export_range = gpu_export_range,
    .update = gpu_update,
    .update_start = gpu_update_start,
    .update_done = gpu_update_done,
    .update_forget = gpu_update_forget,
    .copy_start = gpu_copy_start,
    .copy_done = gpu_copy_done,
    .stream_copy = gpu_stream_copy,
    .stream_request = gpu_stream_request,
    .kernels_see = gpu_sees,
    .find_state = gpu_find_state,
    .streams_wait = gpu_streams_wait,
    .request_start = gpu_request_start,
    .request_done = gpu_request_done,
    .heap_piece = gpu_heap_piece,
    .multicast_open = gpu_multicast_open,
    .multicast_offer = gpu_multicast_offer,
    .multicast_join = gpu_multicast_join,
    .multicast_bind = gpu_multicast_bind,
    .multicast_shrink = gpu_multicast_shrink,
    .multicast_close = gpu_multicast_close,
    .report = gpu_report,
    .window_take = gpu_window_take,
    .window_follow = gpu_window_follow,
    .window_drop = gpu_window_drop,
    .heap_open_remote = gpu_heap_open_remote,
    .streams_busy = gpu_streams_busy,
    .flush = gpu_flush,
};
