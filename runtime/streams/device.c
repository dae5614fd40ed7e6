/* Operations on streams, where the device takes requests. The checks that the CPU would make later
 * are made now, and the operation becomes a copy on the stream or a request to the device. See also
 * device/request.h.
 *
 * A put or a get between addresses that the device can copy is a copy. What a kernel accesses
 * without the proxy must be memory that kernels see: pinned host memory, or the GPU's. */
#include <string.h>

#include "device/device.h"
#include "gshmem/wait.h"
#include "runtime/base/log.h"
#include "runtime/job/job.h"
#include "runtime/memory/device_heap.h"
#include "runtime/memory/map.h"
#include "runtime/network/wait.h"
#include "runtime/streams/parts.h"
#include "runtime/teams/context.h"

static gshmem_status_t require_visible(const char *call, const void *at, size_t bytes)
{
    if (bytes == 0 || job->device->ops->kernels_see(job->device, at, bytes))
        return GSHMEM_OK;
    return fail(
        GSHMEM_ERR_ARGUMENT,
        "%s: kernels see no memory at %p (%zu B): it is neither the GPU's nor registered with it "
        "(gshmem_buffer_register, or cudaHostAlloc)",
        call, at, bytes);
}

/* What requests have in common. */
static struct device_request request_of(const struct request *r, enum device_call what)
{
    struct device_request d = {
        .call = what,
        .pe = r->pe,
        .team = r->team,
        .type = (int32_t)r->type,
        .op = (int32_t)r->op,
        .vector = (uint32_t)r->vector,
        .dest = (uintptr_t)r->dest,
        .source = (uintptr_t)r->source,
        .n = r->n,
        .element = r->element,
        .dst = r->dst,
        .sst = r->sst,
        .sig_addr = (uintptr_t)r->sig_addr,
        .status = (uintptr_t)r->status,
        .value = {r->signal},
    };

    return d;
}

static gshmem_status_t put_request(gshmem_stream_t stream, const struct device_request *r)
{
    return job->device->ops->stream_request(job->device, stream, r);
}

/* ---- Put and get ---- */

static gshmem_status_t resolve(const char *call, const void *mine, size_t bytes, int pe,
                               struct location *t)
{
    struct context *c = context_find(GSHMEM_CTX_DEFAULT, call);

    return c ? context_resolve(c, mine, bytes, pe, call, t) : last_error_status();
}

static gshmem_status_t put_copy(gshmem_stream_t stream, const char *call, const struct request *r)
{
    const bool get = r->what == DEVICE_GET;
    const struct device_request request = request_of(r, r->what);
    gshmem_status_t status;
    struct location t;

    if ((status = resolve(call, get ? r->source : r->dest, r->n, r->pe, &t)))
        return status;
    if (t.way != WAY_DEVICE)
        return put_request(stream, &request);
    return job->device->ops->stream_copy(job->device, stream, get ? r->dest : t.at,
                                         get ? t.at : r->source, r->n);
}

/* The bytes from the first of n elements, a stride apart, to the end of the last; 0: more than
 * there can be. */
static size_t span_of(size_t n, ptrdiff_t stride, size_t element)
{
    size_t last, bytes;

    if (__builtin_mul_overflow(n - 1, (size_t)stride, &last) ||
        __builtin_add_overflow(last, 1, &last) || __builtin_mul_overflow(last, element, &bytes))
        return 0;
    return bytes;
}

static gshmem_status_t device_put_strided(gshmem_stream_t stream, const char *call,
                                          const struct request *r)
{
    const bool get = r->what == DEVICE_IGET;
    const struct device_request request = request_of(r, r->what);
    gshmem_status_t status;
    struct location t;

    if (r->n == 0 || r->element == 0)
        return GSHMEM_OK;
    if (r->dst < 1 || r->sst < 1)
        return fail(GSHMEM_ERR_ARGUMENT,
                    "%s: strides are %td and %td elements; they must be at least 1", call, r->dst,
                    r->sst);
    size_t to = span_of(r->n, r->dst, r->element), from = span_of(r->n, r->sst, r->element);
    if (!to || !from)
        return fail(GSHMEM_ERR_ARGUMENT,
                    "%s: %zu elements of %zu B with strides %td and %td exceed memory", call, r->n,
                    r->element, r->dst, r->sst);
    if ((status = resolve(call, get ? r->source : r->dest, get ? from : to, r->pe, &t)) ||
        (status = require_visible(call, get ? r->dest : r->source, get ? to : from)))
        return status;
    return put_request(stream, &request);
}

static gshmem_status_t put_p(gshmem_stream_t stream, const char *call, const struct request *r)
{
    struct device_request request = request_of(r, DEVICE_P);
    gshmem_status_t status;
    struct location t;

    if (r->n != 1 && r->n != 2 && r->n != 4 && r->n != 8 && r->n != 16)
        return fail(GSHMEM_ERR_ARGUMENT, "%s: no element has %zu B", call, r->n);
    if ((status = resolve(call, r->dest, r->n, r->pe, &t)))
        return status;
    memcpy(request.value, r->value, sizeof request.value);
    return put_request(stream, &request);
}

/* ---- Signals ---- */

static gshmem_status_t check_signal(const char *call, const struct request *r)
{
    struct location t;

    if (r->signal_op != GSHMEM_SIGNAL_SET && r->signal_op != GSHMEM_SIGNAL_ADD)
        return fail(GSHMEM_ERR_ARGUMENT,
                    "%s: signal_op is %d; it is GSHMEM_SIGNAL_SET or GSHMEM_SIGNAL_ADD", call,
                    r->signal_op);
    if ((uintptr_t)r->sig_addr % sizeof *r->sig_addr)
        return fail(GSHMEM_ERR_ARGUMENT, "%s: sig_addr %p is not aligned to 8 bytes", call,
                    (void *)r->sig_addr);
    return resolve(call, r->sig_addr, sizeof *r->sig_addr, r->pe, &t);
}

/* The signal, and the data before it, which may be a copy. */
static gshmem_status_t device_put_signal(gshmem_stream_t stream, const char *call,
                                         const struct request *r)
{
    struct device_request request = request_of(r, r->what);
    gshmem_status_t status;
    struct location data;

    request.op = r->signal_op;
    if ((status = check_signal(call, r)))
        return status;
    if (r->what == DEVICE_SIGNAL)
        return put_request(stream, &request);
    if ((status = resolve(call, r->dest, r->n, r->pe, &data)))
        return status;
    if (data.way != WAY_DEVICE)
        return put_request(stream, &request);
    if ((status = job->device->ops->stream_copy(job->device, stream, data.at, r->source, r->n)))
        return status;
    request.call = DEVICE_SIGNAL;
    return put_request(stream, &request);
}

/* ---- Waits ---- */

static gshmem_status_t put_wait(gshmem_stream_t stream, const char *call, const struct request *r)
{
    struct device_request request = request_of(r, r->what);
    size_t n = r->what == DEVICE_WAIT_ONE ? 1 : r->n, bytes = 0, all;
    gshmem_status_t status;

    request.op = r->signal_op;
    if ((status = wait_check(call, r->type, n ? r->source : NULL, n, r->signal_op, &bytes)))
        return status;
    if (__builtin_mul_overflow(n, bytes, &all))
        return fail(GSHMEM_ERR_ARGUMENT, "%s: %zu variables exceed memory", call, n);
    if (r->what == DEVICE_WAIT_ALL && !r->vector)
        memcpy(request.value, r->value, bytes); /* kernels read as many bytes of it as they need */
    if ((status = require_visible(call, r->source, all)) ||
        (r->status && (status = require_visible(call, r->status, n * sizeof *r->status))) ||
        (r->vector && (status = require_visible(call, r->dest, all))))
        return status;
    return put_request(stream, &request);
}

/* ---- All ---- */

gshmem_status_t stream_put_request(gshmem_stream_t stream, const char *call,
                                   const struct request *r)
{
    const struct device_request request = request_of(r, r->what);

    switch (r->what) {
    case DEVICE_PUT:
    case DEVICE_GET:
        return put_copy(stream, call, r);
    case DEVICE_IPUT:
    case DEVICE_IGET:
        return device_put_strided(stream, call, r);
    case DEVICE_P:
        return put_p(stream, call, r);
    case DEVICE_PUT_SIGNAL:
    case DEVICE_SIGNAL:
        return device_put_signal(stream, call, r);
    case DEVICE_WAIT_ONE:
    case DEVICE_WAIT_ALL:
        return put_wait(stream, call, r);
    default: /* quiet and flush; collectives, whose kernels on all PEs check and compare their
                arguments */
        return put_request(stream, &request);
    }
}
