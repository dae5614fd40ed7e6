/* cudaMemcpy, cudaMemset and their kin. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "device/host/calls/devices.h"
#include "device/host/memory/allocations.h"
#include "device/host/streams/stream.h"

enum { STAGED_MOST = 64 << 10 }; /* bytes that CUDA copies aside, so that the call does not wait */

struct rows {
    void *to;
    const void *from; /* NULL: a fill with value */
    int value;
    size_t to_pitch, from_pitch, width, height;
};

/* Copies the rows of `from` aside, one behind the other, so that the program may change them;
 * false: no memory. */
static bool copy_stage(struct work *w)
{
    char *copy = malloc(w->move.bytes * w->move.rows);

    if (!copy)
        return false;
    for (size_t row = 0; row < w->move.rows; row++)
        memcpy(copy + row * w->move.bytes, w->move.from + row * w->move.from_pitch, w->move.bytes);
    w->move.from = w->move.staged = copy;
    w->move.from_pitch = w->move.bytes;
    return true;
}

/* staged: the program may change `from` as soon as the call has returned. The call copies a little
 * aside, and waits for the copy of more. */
static cudaError_t copy_submit(struct rows r, cudaStream_t handle, bool wait, bool staged)
{
    struct CUstream_st *stream = stream_find(handle);
    bool empty = !r.width || !r.height;

    if (device_error())
        return report_error(device_error());
    if (!stream)
        return report_error(cudaErrorInvalidResourceHandle);
    if (!empty && !r.to)
        return report_error(cudaErrorInvalidValue);
    if (!empty && (r.to_pitch < r.width || (r.from && r.from_pitch < r.width)))
        return report_error(r.from ? cudaErrorInvalidPitchValue : cudaErrorInvalidValue);
    struct work *w = work_new(empty ? WORK_NOTHING : r.from ? WORK_COPY : WORK_FILL);
    if (!w)
        return report_error(cudaErrorMemoryAllocation);
    w->move.to = r.to;
    w->move.from = r.from;
    w->move.value = r.value;
    w->move.bytes = r.width;
    w->move.rows = r.height;
    w->move.to_pitch = r.to_pitch;
    w->move.from_pitch = r.from_pitch;
    if (staged && !wait && w->kind == WORK_COPY && !stream_is_captured(stream))
        wait = r.width > STAGED_MOST / r.height || !copy_stage(w);
    if (wait && !work_may_wait()) {
        work_drop(w);
        return report_error(cudaErrorNotPermitted);
    }
    cudaError_t error = work_submit(w, stream, NULL);
    if (wait && !error && !w->capture)
        work_wait(w);
    work_drop(w);
    return report_error(error ? error : device_error());
}

/* Memory that no CUDA call gave or registered: the program may reuse it when the call has returned.
 */
static bool copy_is_pageable(const void *host)
{
    struct allocation a;

    return !allocation_look_up(host, device_current(), &a);
}

static bool copy_is_host(const void *at)
{
    struct allocation a;

    return !allocation_look_up(at, device_current(), &a) || a.type == cudaMemoryTypeHost;
}

/* Whether the call returns only when the copy is done: copies to pageable memory, and from host
 * memory to host memory. */
static bool copy_waits(const struct rows *r, enum cudaMemcpyKind kind)
{
    switch (kind) {
    case cudaMemcpyHostToHost:
        return true;
    case cudaMemcpyDeviceToHost:
        return copy_is_pageable(r->to);
    case cudaMemcpyDefault:
        return copy_is_pageable(r->to) || (copy_is_host(r->to) && copy_is_host(r->from));
    default:
        return false;
    }
}

static cudaError_t copy_rows(struct rows r, enum cudaMemcpyKind kind, cudaStream_t stream,
                                   bool wait)
{
    if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault)
        return report_error(cudaErrorInvalidMemcpyDirection);
    if (!r.from && r.width && r.height)
        return report_error(cudaErrorInvalidValue);
    return copy_submit(r, stream, wait || copy_waits(&r, kind),
                           (kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDefault) &&
                               copy_is_pageable(r.from));
}

/* A fill of memory that the CPU may read is done when the call returns. */
static cudaError_t copy_fill(struct rows r)
{
    struct allocation a;

    return copy_submit(
        r, NULL, !allocation_look_up(r.to, device_current(), &a) || a.type != cudaMemoryTypeDevice,
        false);
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
    return copy_rows((struct rows){to, from, 0, bytes, bytes, bytes, 1}, kind, NULL, true);
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream)
{
    return copy_rows((struct rows){to, from, 0, bytes, bytes, bytes, 1}, kind, stream, false);
}

cudaError_t cudaMemcpyPeer(void *to, int to_device, const void *from, int from_device, size_t bytes)
{
    if (!device_exists(to_device) || !device_exists(from_device))
        return report_error(cudaErrorInvalidDevice);
    return cudaMemcpy(to, from, bytes, cudaMemcpyDefault);
}

cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device,
                                size_t bytes, cudaStream_t stream)
{
    if (!device_exists(to_device) || !device_exists(from_device))
        return report_error(cudaErrorInvalidDevice);
    return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream);
}

cudaError_t cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                         size_t width, size_t height, enum cudaMemcpyKind kind)
{
    return copy_rows((struct rows){to, from, 0, to_pitch, from_pitch, width, height}, kind,
                           NULL, true);
}

cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                              size_t width, size_t height, enum cudaMemcpyKind kind,
                              cudaStream_t stream)
{
    return copy_rows((struct rows){to, from, 0, to_pitch, from_pitch, width, height}, kind,
                           stream, false);
}

cudaError_t cudaMemset(void *to, int value, size_t bytes)
{
    return copy_fill(
        (struct rows){.to = to, .value = value, .to_pitch = bytes, .width = bytes, .height = 1});
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream)
{
    return copy_submit(
        (struct rows){.to = to, .value = value, .to_pitch = bytes, .width = bytes, .height = 1},
        stream, false, false);
}

cudaError_t cudaMemset2D(void *to, size_t pitch, int value, size_t width, size_t height)
{
    return copy_fill((struct rows){to, NULL, value, pitch, 0, width, height});
}
