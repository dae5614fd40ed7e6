/* The cuda device: which GPU is this PE's, copies, and small memory for the library and kernels.
 *
 * A module of its own; the core lends it `fail` and `info`. */
#include "device/cuda/cuda.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gshmem/base.h"

/* The module. */
GSHMEM_API extern const struct device_ops gshmem_device;

/* ---- Errors, and whose turn it is ---- */

gshmem_status_t cuda_fail(const struct cuda *c, cuda_result result, const char *format, ...)
{
    gshmem_status_t status = result == CUDA_OUT_OF_MEMORY ? GSHMEM_ERR_MEMORY
                             : result == CUDA_NOT_SUPPORTED ? GSHMEM_ERR_UNSUPPORTED
                                                            : GSHMEM_ERR_DEVICE;
    char what[400];
    va_list args;

    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    return c->config.fail(status, "cuda: %s: %s", what, cuda_error(&c->driver, result).text);
}

/* How deep the thread is in here, and what captures allowed it before. */
static _Thread_local struct {
    int depth, mode;
} within;

gshmem_status_t cuda_enter_context(const struct cuda *c, cuda_context context, cuda_gpu gpu)
{
    cuda_result result = c->driver.context_push(context);

    if (result)
        return cuda_fail(c, result, "taking GPU %d for this thread", gpu);
    if (within.depth++ == 0) {
        within.mode = CUDA_CAPTURE_RELAXED;
        c->driver.capture_mode(&within.mode);
    }
    return GSHMEM_OK;
}

gshmem_status_t cuda_enter(const struct cuda *c)
{
    return cuda_enter_context(c, c->context, c->gpu);
}

void cuda_leave(const struct cuda *c)
{
    cuda_context ours;

    if (--within.depth == 0)
        c->driver.capture_mode(&within.mode);
    c->driver.context_pop(&ours);
}

/* ---- Which GPU ---- */

static bool number(const char *text, int *value)
{
    char *end;
    long n = strtol(text, &end, 10);

    *value = n >= 0 && n <= 1 << 20 ? (int)n : -1;
    return end != text && *end == 0 && *value >= 0;
}

/* Sets *gpu, and how it came to be chosen; or says why there is none to choose. */
static bool device_choose(const struct cuda_driver *d, const struct device_config *config,
                          int *gpus, cuda_gpu *gpu, char *why, size_t why_size)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    cuda_context current = NULL;
    int wanted;

    *gpus = 0;
    if (d->gpu_count(gpus) || *gpus < 1) {
        snprintf(why, why_size, "the NVIDIA driver shows this process no GPU%s%s",
                 visible ? "; CUDA_VISIBLE_DEVICES=" : "", visible ? visible : "");
        return false;
    }
    if (config->wanted[0]) {
        if (!number(config->wanted, &wanted)) {
            snprintf(why, why_size, "GSHMEM_CUDA_DEVICE=%s: expected the number of a GPU, 0..%d",
                     config->wanted, *gpus - 1);
            return false;
        }
        if (wanted >= *gpus) {
            snprintf(why, why_size,
                     "GSHMEM_CUDA_DEVICE=%d: there is no such GPU; this process sees %d (0..%d)",
                     wanted, *gpus, *gpus - 1);
            return false;
        }
        snprintf(why, why_size, "by GSHMEM_CUDA_DEVICE");
    } else if (!d->context_current(&current) && current && !d->context_gpu(&wanted)) {
        snprintf(why, why_size, "the program's current one");
    } else {
        wanted = config->index % *gpus;
        snprintf(why, why_size, "by this PE's place on the host, %d", config->index);
    }
    return d->gpu_get(gpu, wanted) == CUDA_OK;
}

static int attribute(const struct cuda_driver *d, enum cuda_attribute which, cuda_gpu gpu)
{
    int value = 0;

    return d->gpu_attribute(&value, which, gpu) ? 0 : value;
}

/* Says of the GPU what people know it by. */
static void name_gpu(const struct cuda_driver *d, cuda_gpu gpu, char *text, size_t size)
{
    char name[96] = "?";
    int version = 0;
    size_t bytes = 0;

    d->gpu_name(name, sizeof name, gpu);
    d->gpu_memory(&bytes, gpu);
    d->version(&version);
    snprintf(text, size, "GPU %d, %s, sm_%d%d, %zu MiB, driver for CUDA %d.%d", gpu, name,
             attribute(d, CUDA_ATTRIBUTE_MAJOR, gpu), attribute(d, CUDA_ATTRIBUTE_MINOR, gpu),
             bytes >> 20, version / 1000, version % 1000 / 10);
}

/* What this library cannot do without. */
static bool serves(const struct cuda_driver *d, cuda_gpu gpu, char *why, size_t why_size)
{
    if (attribute(d, CUDA_ATTRIBUTE_COMPUTE_MODE, gpu) == CUDA_COMPUTE_MODE_PROHIBITED) {
        snprintf(why, why_size, "GPU %d is in compute mode \"prohibited\" (nvidia-smi -c 0)", gpu);
        return false;
    }
    if (!attribute(d, CUDA_ATTRIBUTE_UNIFIED_ADDRESSING, gpu)) {
        snprintf(why, why_size, "GPU %d has no unified addressing", gpu);
        return false;
    }
    return true;
}

bool cuda_find_gpu_for(const struct cuda_driver *d, const struct device_config *config, int *gpus,
                     cuda_gpu *gpu, char *why, size_t why_size)
{
    char how[160], text[160];

    if (!device_choose(d, config, gpus, gpu, how, sizeof how)) {
        snprintf(why, why_size, "%s", how);
        return false;
    }
    if (!serves(d, *gpu, why, why_size))
        return false;
    name_gpu(d, *gpu, text, sizeof text);
    snprintf(why, why_size, "%s (%s)", text, how);
    return true;
}

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

cuda_gpu cuda_find_gpu(const struct cuda *c, const unsigned char uuid[16])
{
    struct cuda_uuid theirs;
    cuda_gpu gpu;

    for (int i = 0; i < c->gpus; i++) {
        if (!c->driver.gpu_get(&gpu, i) && !c->driver.gpu_uuid(&theirs, gpu) &&
            memcmp(theirs.bytes, uuid, sizeof theirs.bytes) == 0)
            return gpu;
    }
    return -1;
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
        cuda_kernel_close(c);
        cuda_streams_close(c);
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

/* ---- Copies ---- */

static gshmem_status_t device_finish(struct cuda *c, cuda_result result, const char *what,
                                     const void *to, size_t bytes)
{
    if (!result)
        result = c->driver.stream_wait(c->stream);
    cuda_leave(c);
    return result ? cuda_fail(c, result, "%s %zu B to %p on GPU %d", what, bytes, to, c->gpu)
                  : GSHMEM_OK;
}

static gshmem_status_t device_copy(struct device *base, void *to, const void *from, size_t bytes)
{
    struct cuda *c = cuda_of(base);
    gshmem_status_t status;

    if (bytes == 0)
        return GSHMEM_OK;
    if ((status = cuda_enter(c)))
        return status;
    return device_finish(c,
                         c->driver.copy_async((cuda_address)(uintptr_t)to,
                                              (cuda_address)(uintptr_t)from, bytes, c->stream),
                         "copying", to, bytes);
}

static gshmem_status_t device_fill(struct device *base, void *at, int byte, size_t bytes)
{
    struct cuda *c = cuda_of(base);
    gshmem_status_t status;

    if (bytes == 0)
        return GSHMEM_OK;
    if ((status = cuda_enter(c)))
        return status;
    return device_finish(
        c, c->driver.fill_async((cuda_address)(uintptr_t)at, (unsigned char)byte, bytes, c->stream),
        "filling", at, bytes);
}

/* ---- Small memory ---- */

/* Shared memory is pinned, and mapped for the GPU: with unified addressing at the same address. */
static cuda_result device_take(struct cuda *c, enum device_memory kind, size_t bytes, void **at)
{
    cuda_address address = 0;
    cuda_result result;

    if (kind == DEVICE_MEMORY_SHARED) {
        result = c->driver.host_allocate(at, bytes, CUDA_HOST_PORTABLE | CUDA_HOST_DEVICE_MAP);
    } else {
        result = c->driver.allocate(&address, bytes);
        *at = (void *)(uintptr_t)address;
    }
    return result;
}

static void device_release(struct device *base, enum device_memory kind, void *at)
{
    struct cuda *c = cuda_of(base);

    if (!at || cuda_enter(c))
        return;
    if (kind == DEVICE_MEMORY_SHARED)
        c->driver.host_free(at);
    else
        c->driver.free((cuda_address)(uintptr_t)at);
    cuda_leave(c);
}

static void *device_allocate(struct device *base, enum device_memory kind, size_t bytes)
{
    struct cuda *c = cuda_of(base);
    cuda_result result;
    void *at = NULL;

    if (cuda_enter(c))
        return NULL;
    result = device_take(c, kind, bytes, &at);
    cuda_leave(c);
    if (result) {
        cuda_fail(c, result, "%zu KiB of %s memory on GPU %d", (bytes + 1023) >> 10,
                  kind == DEVICE_MEMORY_SHARED ? "pinned" : "GPU", c->gpu);
        return NULL;
    }
    if (kind == DEVICE_MEMORY_SHARED)
        return memset(at, 0, bytes);
    if (device_fill(base, at, 0, bytes)) {
        device_release(base, kind, at);
        return NULL;
    }
    return at;
}

/* What the driver calls in the order of a stream may neither wait nor call the driver: there are requests
 * in place of it. */
static gshmem_status_t device_stream_call(struct device *base, void *stream,
                                          void (*function)(void *), void *argument,
                                          void (*over)(void *))
{
    struct cuda *c = cuda_of(base);

    (void)function;
    (void)argument;
    (void)over;
    return c->config.fail(GSHMEM_ERR_UNSUPPORTED, "cuda: stream %p takes no calls of the CPU's", stream);
}

static bool device_stream_is_captured(struct device *base, void *stream)
{
    struct cuda *c = cuda_of(base);
    int status = 0;

    return !c->driver.stream_is_capturing(stream, &status) && status;
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
    .allocate = device_allocate,
    .release = device_release,
    .copy = device_copy,
    .owns = cuda_owns,
    .fill = device_fill,
    .stream_call = device_stream_call,
    .stream_is_captured = device_stream_is_captured,
    .describe = cuda_describe,
    .heap_open = cuda_heap_open,
    .heap_grow = cuda_heap_grow,
    .heap_follow = cuda_heap_follow,
    .heap_shrink = cuda_heap_shrink,
    .heap_close = cuda_heap_close,
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
