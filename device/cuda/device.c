/* The cuda device: its life, and the table of its functions (struct device_ops).
 *
 * A module of its own; the core lends it `fail` and `info`. */
#include "device/cuda/gpu.h"
#include "device/cuda/memory.h"
#include "device/cuda/streams.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gshmem/base.h"

/* The module. */
GSHMEM_API extern const struct device_ops gshmem_device;

static bool device_usable(const struct device_config *config, char *why, size_t why_size)
{
    struct cuda_driver d;
    cuda_gpu gpu;
    int gpus;

    if (!cuda_driver_open(&d, why, why_size))
        return false;
    bool found = cuda_find_gpu_for(&d, config, &gpus, &gpu, why, why_size);
    cuda_driver_close(&d);
    return found;
}

/* ---- Life ---- */

static void tell_what_driver_lacks(const struct cuda *c)
{
    for (int i = 0; i < CUDA_NEWER_NAMES; i++) {
        const struct cuda_newer *n = &cuda_newer[i];
        if (!cuda_driver_has(&c->driver, (enum cuda_newer_name)i))
            c->config.info("cuda: this driver has no %s, that for CUDA %d.%d does: %s", n->entries,
                           n->version / 1000, n->version % 1000 / 10, n->then);
    }
}

static gshmem_status_t device_begin(struct cuda *c)
{
    const struct cuda_driver *d = &c->driver;
    struct cuda_uuid uuid;
    cuda_result result;

    if ((result = d->gpu_uuid(&uuid, c->gpu)))
        return cuda_fail(c, result, "asking for the uuid of GPU %d", c->gpu);
    memcpy(c->uuid, uuid.bytes, sizeof c->uuid);
    if ((result = d->primary_retain(&c->context, c->gpu)))
        return cuda_fail(c, result, "opening GPU %d", c->gpu);
    tell_what_driver_lacks(c);
    gshmem_status_t status = cuda_choose_share(c);
    if (!status)
        cuda_find_domain(c);
    if (!status && !(status = cuda_enter(c))) {
        if ((result = d->stream_create(&c->stream, CUDA_STREAM_NON_BLOCKING)))
            status = cuda_fail(c, result, "a stream for copies on GPU %d", c->gpu);
        else if ((status = cuda_kernel_open(c)))
            d->stream_destroy(c->stream);
        else if ((status = cuda_work_open(c))) {
            cuda_kernel_close(c);
            d->stream_destroy(c->stream);
        }
        cuda_leave(c);
    }
    if (status)
        d->primary_release(c->gpu);
    return status;
}

static gshmem_status_t cuda_open(const struct device_config *config, struct device **out)
{
    struct cuda *c = calloc(1, sizeof *c);
    gshmem_status_t status;
    char why[300];

    if (!c)
        return config->fail(GSHMEM_ERR_MEMORY, "cuda: out of memory");
    c->base.ops = &gshmem_device;
    c->kernel.lock = c->kernel.serve_lock = c->work.lock = c->order_lock =
        (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    c->config = *config;
    if (!cuda_driver_open(&c->driver, why, sizeof why)) {
        free(c);
        return config->fail(GSHMEM_ERR_DEVICE, "cuda: %s", why);
    }
    if (!cuda_find_gpu_for(&c->driver, config, &c->gpus, &c->gpu, why, sizeof why))
        status = config->fail(GSHMEM_ERR_DEVICE, "cuda: %s", why);
    else
        status = device_begin(c);
    if (status) {
        cuda_driver_close(&c->driver);
        free(c);
        return status;
    }
    snprintf(c->text, sizeof c->text, "%s", why);
    *out = &c->base;
    return GSHMEM_OK;
}

static void cuda_close(struct device *base)
{
    struct cuda *c = cuda_of(base);
    cuda_context current;

    if (!cuda_enter(c)) {
        /* The kernel's module goes when no launch of it is under way. */
        cuda_work_await(c);
        cuda_requests_close(c);
        cuda_kernel_close(c);
        cuda_collectives_close(c);
        cuda_work_close(c);
        c->driver.stream_destroy(c->stream);
        cuda_leave(c);
    }
    /* bind left it current; whoever uses it later has retained it for himself. */
    if (!c->driver.context_current(&current) && current == c->context)
        c->driver.context_set(NULL);
    c->driver.primary_release(c->gpu);
    cuda_driver_close(&c->driver);
    free(c);
}

static const char *cuda_name(const struct device *base)
{
    return ((const struct cuda *)base)->text;
}

static gshmem_status_t device_enter(struct device *base)
{
    return cuda_enter(cuda_of(base));
}

static void device_leave(struct device *base)
{
    cuda_leave(cuda_of(base));
}

static gshmem_status_t device_bind(struct device *base)
{
    struct cuda *c = cuda_of(base);
    cuda_result result = c->driver.context_set(c->context);

    return result ? cuda_fail(c, result, "making GPU %d current", c->gpu) : GSHMEM_OK;
}

/* What the driver calls in the order of a stream may neither wait nor call the driver: there are
 * requests in place of it. */
static gshmem_status_t device_stream_call(struct device *base, void *stream,
                                          void (*function)(void *), void *argument,
                                          void (*over)(void *))
{
    struct cuda *c = cuda_of(base);

    (void)function;
    (void)argument;
    (void)over;
    return c->config.fail(GSHMEM_ERR_UNSUPPORTED, "cuda: stream %p takes no calls of the CPU's",
                          stream);
}

static bool device_stream_is_captured(struct device *base, void *stream)
{
    struct cuda *c = cuda_of(base);
    int status = 0;

    return !c->driver.stream_is_capturing(stream, &status) && status;
}

/* ---- Memory that work in flight may touch ---- */

/* An update that its initiator gave up on may still be on its way to a piece that is to be given
 * back. */
static void device_await_updates(struct cuda *c, const struct device_heap_map *map, uint64_t bytes)
{
    if (!cuda_heap_reaches(map, bytes) || cuda_enter(c))
        return;
    cuda_work_await_forgotten(c);
    cuda_leave(c);
}

static uint64_t device_heap_shrink(struct device *base, struct device_heap_map *map, uint64_t bytes)
{
    device_await_updates(cuda_of(base), map, bytes);
    return cuda_heap_shrink(base, map, bytes);
}

static void device_heap_close(struct device *base, struct device_heap_map *map)
{
    device_await_updates(cuda_of(base), map, 0);
    cuda_heap_close(base, map);
}

const struct device_ops gshmem_device = {
    .size = sizeof(struct device_ops),
    .version = DEVICE_VERSION,
    .name = "cuda",
    .own_heap = true,
    .usable = device_usable,
    .open = cuda_open,
    .close = cuda_close,
    .text = cuda_name,
    .bind = device_bind,
    .enter = device_enter,
    .leave = device_leave,
    .allocate = cuda_allocate,
    .release = cuda_release,
    .copy = cuda_copy,
    .owns = cuda_owns,
    .fill = cuda_fill,
    .stream_call = device_stream_call,
    .stream_is_captured = device_stream_is_captured,
    .describe = cuda_describe,
    .heap_open = cuda_heap_open,
    .heap_grow = cuda_heap_grow,
    .heap_follow = cuda_heap_follow,
    .heap_shrink = device_heap_shrink,
    .heap_close = device_heap_close,
    .pin = cuda_pin,
    .unpin = cuda_unpin,
    .export_range = cuda_export_range,
    .update = cuda_update,
    .update_start = cuda_update_start,
    .update_done = cuda_update_done,
    .update_forget = cuda_update_forget,
    .copy_start = cuda_copy_start,
    .copy_done = cuda_copy_done,
    .stream_copy = cuda_stream_copy,
    .stream_request = cuda_stream_request,
    .kernels_see = cuda_kernels_see,
    .find_state = cuda_find_state,
    .streams_wait = cuda_streams_wait,
    .request_start = cuda_request_start,
    .request_done = cuda_request_done,
    .heap_piece = cuda_heap_piece,
    .multicast_open = cuda_multicast_open,
    .multicast_offer = cuda_multicast_offer,
    .multicast_join = cuda_multicast_join,
    .multicast_bind = cuda_multicast_bind,
    .multicast_shrink = cuda_multicast_shrink,
    .multicast_close = cuda_multicast_close,
    .report = cuda_report,
    .window_take = cuda_window_take,
    .window_follow = cuda_window_follow,
    .window_drop = cuda_window_drop,
    .heap_open_remote = cuda_heap_open_remote,
    .streams_busy = cuda_streams_busy,
    .flush = cuda_flush,
};
