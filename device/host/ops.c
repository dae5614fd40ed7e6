/* The host device, for the library: kernels are CPU threads, so that all memory is alike to them.
 */
#include <stdlib.h>
#include <string.h>

#include "device/device.h"
#include "runtime/base/atomic_type.h"
#include "runtime/base/log.h"

enum { LINE = 64 }; /* what two sides write lies in different lines */

static struct device the_host = {&device_host}; /* never changes */

static bool memory_usable(const struct device_config *config, char *why, size_t why_size)
{
    (void)config;
    if (why_size)
        why[0] = 0;
    return true;
}

static gshmem_status_t memory_node_open(const struct device_config *config, struct device **out)
{
    (void)config;
    *out = &the_host;
    return GSHMEM_OK;
}

static void host_close(struct device *d)
{
    (void)d;
}

static const char *text(const struct device *d)
{
    (void)d;
    return "the CPU";
}

static void memory_leave(struct device *d)
{
    (void)d;
}

static gshmem_status_t memory_bind(struct device *d)
{
    (void)d;
    return GSHMEM_OK;
}

static void *memory_allocate(struct device *d, enum device_memory kind, size_t bytes)
{
    size_t whole = (bytes + LINE - 1) / LINE * LINE;
    void *at = aligned_alloc(LINE, whole);

    (void)d;
    (void)kind;
    return at ? memset(at, 0, whole) : NULL;
}

static void host_memory_release(struct device *d, enum device_memory kind, void *at)
{
    (void)d;
    (void)kind;
    free(at);
}

static gshmem_status_t memory_copy(struct device *d, void *to, const void *from, size_t bytes)
{
    (void)d;
    memcpy(to, from, bytes);
    return GSHMEM_OK;
}

/* In find_state.c and stream_call.c. */
gshmem_status_t host_find_state(struct device *d, void *module, bool library, size_t bytes,
                                void **state);
gshmem_status_t host_stream_call(void *stream, void (*function)(void *), void *argument,
                                 void (*release)(void *));
bool host_stream_is_captured(void *stream);
bool host_streams_busy(bool kernels);

static gshmem_status_t memory_stream_call(struct device *d, void *stream, void (*function)(void *),
                                          void *argument, void (*over)(void *))
{
    (void)d;
    return host_stream_call(stream, function, argument, over);
}

static bool memory_stream_is_captured(struct device *d, void *stream)
{
    (void)d;
    return host_stream_is_captured(stream);
}

static bool streams_busy(struct device *d, bool kernels)
{
    (void)d;
    return host_streams_busy(kernels);
}

static bool owns(struct device *d, const void *at, size_t bytes)
{
    (void)d;
    (void)at;
    (void)bytes;
    return false;
}

static gshmem_status_t memory_fill(struct device *d, void *at, int byte, size_t bytes)
{
    (void)d;
    memset(at, byte, bytes);
    return GSHMEM_OK;
}

static gshmem_status_t memory_pin(struct device *d, void *at, size_t bytes, bool *pinned)
{
    (void)d;
    (void)at;
    (void)bytes;
    *pinned = false;
    return GSHMEM_OK;
}

static void memory_unpin(struct device *d, void *at)
{
    (void)d;
    (void)at;
}

/* ---- It has no memory of its own ---- */

static gshmem_status_t memory_refuse(void)
{
    return fail(GSHMEM_ERR_UNSUPPORTED, "the host device has no memory of its own");
}

static gshmem_status_t export_range(struct device *d, const void *at, size_t bytes, int *fd,
                                    uint64_t *offset)
{
    (void)d;
    (void)at;
    (void)bytes;
    (void)fd;
    (void)offset;
    return memory_refuse();
}

static gshmem_status_t memory_describe(struct device *d, uint64_t most, struct device_card *card)
{
    (void)d;
    (void)most;
    (void)card;
    return memory_refuse();
}

static gshmem_status_t heap_open(struct device *d, const struct device_card *card, uint64_t limit,
                                 uint64_t window, struct device_heap_map *map)
{
    (void)d;
    (void)card;
    (void)limit;
    (void)window;
    (void)map;
    return memory_refuse();
}

static gshmem_status_t heap_grow(struct device *d, struct device_heap_map *map, uint64_t bytes,
                                 struct device_piece *piece)
{
    (void)d;
    (void)map;
    (void)bytes;
    (void)piece;
    return memory_refuse();
}

static gshmem_status_t heap_follow(struct device *d, struct device_heap_map *map,
                                   const struct device_piece *piece)
{
    (void)d;
    (void)map;
    (void)piece;
    return memory_refuse();
}

static uint64_t heap_shrink(struct device *d, struct device_heap_map *map, uint64_t bytes)
{
    (void)d;
    (void)map;
    (void)bytes;
    return 0;
}

static void heap_close(struct device *d, struct device_heap_map *map)
{
    (void)d;
    (void)map;
}

static gshmem_status_t memory_update(struct device *d, const struct device_update *u, uint64_t *old)
{
    uint64_t was = atomic_apply((enum gshmem_amo)u->op, u->type, u->at, u->operand, u->compare);

    (void)d;
    if (old)
        *old = was;
    return GSHMEM_OK;
}

/* For memory of a device's own, which a transport may not wait for: there is none. */
static gshmem_status_t refuse_update_start(struct device *d, const struct device_update *u,
                                           uint64_t *ticket)
{
    (void)d, (void)u, (void)ticket;
    return fail(GSHMEM_ERR_UNSUPPORTED,
                "the host device has no memory that the CPU cannot update by itself");
}

static bool update_done(struct device *d, uint64_t ticket, uint64_t *old, gshmem_status_t *status)
{
    (void)d, (void)ticket, (void)old;
    *status = GSHMEM_ERR_UNSUPPORTED;
    return true;
}

static void update_forget(struct device *d, uint64_t ticket)
{
    (void)d, (void)ticket;
}

static gshmem_status_t copy_start(struct device *d, void *to, const void *from, size_t bytes,
                                  uint64_t *ticket)
{
    *ticket = 0;
    return memory_copy(d, to, from, bytes);
}

static bool copy_done(struct device *d, uint64_t ticket, gshmem_status_t *status)
{
    (void)d;
    (void)ticket;
    *status = GSHMEM_OK;
    return true;
}

static gshmem_status_t refuse_request(void)
{
    return fail(GSHMEM_ERR_UNSUPPORTED, "the host device takes calls on streams, and no requests");
}

static gshmem_status_t stream_copy(struct device *d, void *stream, void *to, const void *from,
                                   size_t bytes)
{
    (void)d;
    (void)stream;
    (void)to;
    (void)from;
    (void)bytes;
    return refuse_request();
}

static gshmem_status_t stream_request(struct device *d, void *stream,
                                      const struct device_request *r)
{
    (void)d;
    (void)stream;
    (void)r;
    return refuse_request();
}

static bool kernels_see(struct device *d, const void *at, size_t bytes)
{
    (void)d;
    (void)at;
    (void)bytes;
    return true;
}

static gshmem_status_t streams_wait(struct device *d)
{
    (void)d;
    return GSHMEM_OK;
}

static gshmem_status_t request_start(struct device *d, const struct device_request *r,
                                     void **request)
{
    (void)d;
    (void)r;
    (void)request;
    return refuse_request();
}

static bool request_done(struct device *d, void *request, gshmem_status_t *status)
{
    (void)d;
    (void)request;
    *status = refuse_request();
    return true;
}

static uint64_t heap_piece(struct device *d, const struct device_heap_map *map, uint64_t offset)
{
    (void)d;
    (void)map;
    (void)offset;
    return 0;
}

static gshmem_status_t heap_open_remote(struct device *d, const struct device_card *card,
                                        uint64_t limit, uint64_t window,
                                        struct device_heap_map *map)
{
    return heap_open(d, card, limit, window, map);
}

static gshmem_status_t window_take(struct device *d, struct device_heap_map *map, const void *at,
                                   uint64_t bytes, uint64_t offset, struct device_piece *piece)
{
    (void)d;
    (void)map;
    (void)at;
    (void)bytes;
    (void)offset;
    (void)piece;
    return memory_refuse();
}

static gshmem_status_t window_follow(struct device *d, struct device_heap_map *map,
                                     const struct device_piece *piece)
{
    (void)d;
    (void)map;
    (void)piece;
    return memory_refuse();
}

static void window_drop(struct device *d, struct device_heap_map *map, uint64_t offset,
                        uint64_t bytes)
{
    (void)d;
    (void)map;
    (void)offset;
    (void)bytes;
}

static gshmem_status_t multicast_open(struct device *d, uint64_t limit, struct device_multicast *m)
{
    (void)d;
    (void)limit;
    (void)m;
    return memory_refuse();
}

static gshmem_status_t multicast_offer(struct device *d, struct device_multicast *m, int n,
                                       struct device_piece *piece)
{
    (void)d;
    (void)m;
    (void)n;
    (void)piece;
    return memory_refuse();
}

static gshmem_status_t multicast_join(struct device *d, struct device_multicast *m,
                                      const struct device_piece *piece)
{
    (void)d;
    (void)m;
    (void)piece;
    return memory_refuse();
}

static gshmem_status_t multicast_bind(struct device *d, struct device_multicast *m,
                                      const struct device_heap_map *mine)
{
    (void)d;
    (void)m;
    (void)mine;
    return memory_refuse();
}

static void multicast_shrink(struct device *d, struct device_multicast *m, uint64_t bytes)
{
    (void)d;
    (void)m;
    (void)bytes;
}

static void multicast_close(struct device *d, struct device_multicast *m)
{
    (void)d;
    (void)m;
}

static void memory_report(const struct device_config *config, struct device_report *r)
{
    (void)config;
    *r = (struct device_report){.n = 0};
}

/* NICs and the CPUs that kernels run on see one memory. */
static gshmem_status_t memory_flush(struct device *d)
{
    (void)d;
    return GSHMEM_OK;
}

const struct device_ops device_host = {
    .size = sizeof(struct device_ops),
    .version = DEVICE_VERSION,
    .name = "host",
    .own_heap = false,
    .usable = memory_usable,
    .open = memory_node_open,
    .close = host_close,
    .text = text,
    .bind = memory_bind,
    .enter = memory_bind,
    .leave = memory_leave,
    .allocate = memory_allocate,
    .release = host_memory_release,
    .copy = memory_copy,
    .owns = owns,
    .fill = memory_fill,
    .stream_call = memory_stream_call,
    .stream_is_captured = memory_stream_is_captured,
    .describe = memory_describe,
    .heap_open = heap_open,
    .heap_grow = heap_grow,
    .heap_follow = heap_follow,
    .heap_shrink = heap_shrink,
    .heap_close = heap_close,
    .pin = memory_pin,
    .unpin = memory_unpin,
    .export_range = export_range,
    .update = memory_update,
    .update_start = refuse_update_start,
    .update_done = update_done,
    .update_forget = update_forget,
    .copy_start = copy_start,
    .copy_done = copy_done,
    .stream_copy = stream_copy,
    .stream_request = stream_request,
    .kernels_see = kernels_see,
    .find_state = host_find_state,
    .streams_wait = streams_wait,
    .request_start = request_start,
    .request_done = request_done,
    .heap_piece = heap_piece,
    .multicast_open = multicast_open,
    .multicast_offer = multicast_offer,
    .multicast_join = multicast_join,
    .multicast_bind = multicast_bind,
    .multicast_shrink = multicast_shrink,
    .multicast_close = multicast_close,
    .report = memory_report,
    .window_take = window_take,
    .window_follow = window_follow,
    .window_drop = window_drop,
    .heap_open_remote = heap_open_remote,
    .streams_busy = streams_busy,
    .flush = memory_flush,
};
