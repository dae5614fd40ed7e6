/* cudaStream… and cudaEvent…: names for pieces of work. */
#define _GNU_SOURCE
#include "device/host/streams/stream.h"

#include <stdlib.h>
#include <sys/prctl.h>

#include "device/host/streams/graph.h"

struct CUevent_st {
    unsigned flags;
    struct work *recorded; /* under work_lock; NULL: never, which counts as done */
};

/* --- Streams --- */

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority)
{
    (void)priority;
    if (!stream || flags & ~(unsigned)cudaStreamNonBlocking)
        return report_error(cudaErrorInvalidValue);
    if (device_error())
        return report_error(device_error());
    struct CUstream_st *s = stream_new(!(flags & cudaStreamNonBlocking));
    if (!s)
        return report_error(cudaErrorMemoryAllocation);
    *stream = s;
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
    return cudaStreamCreateWithPriority(stream, flags, 0);
}

cudaError_t cudaStreamCreate(cudaStream_t *stream)
{
    return cudaStreamCreateWithPriority(stream, cudaStreamDefault, 0);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    struct CUstream_st *s = stream_find(stream);

    if (!s || !stream || stream == cudaStreamLegacy || stream == cudaStreamPerThread)
        return report_error(cudaErrorInvalidResourceHandle);
    stream_destroy(s);
    return report_error(device_error());
}

/* The latest work of a stream; NULL and success if it never had any. */
static cudaError_t last_of(cudaStream_t stream, struct work **last)
{
    struct CUstream_st *s = stream_find(stream);

    if (!s)
        return report_error(cudaErrorInvalidResourceHandle);
    *last = stream_last(s);
    return report_error(graph_refuses(&s->capture));
}

static cudaError_t stream_wait_for(struct work *w)
{
    if (!w)
        return report_error(device_error());
    if (w->capture)
        return report_error(cudaErrorCapturedEvent);
    if (!work_may_wait())
        return report_error(cudaErrorNotPermitted);
    work_wait(w);
    return report_error(device_error());
}

static cudaError_t query(const struct work *w)
{
    if (w && w->capture)
        return report_error(cudaErrorCapturedEvent);
    /* "Not ready" is no failure: cudaGetLastError() does not tell of it. */
    return w && !work_is_done(w) ? cudaErrorNotReady : report_error(device_error());
}

/* A point after everything the default stream has to wait for. */
static cudaError_t add_point(struct CUstream_st *stream, struct work *also, struct work **point)
{
    struct work *w = work_new(WORK_NOTHING);

    if (device_error()) {
        if (w)
            work_drop(w);
        return report_error(device_error());
    }
    if (!w)
        return report_error(cudaErrorMemoryAllocation);
    cudaError_t error = work_submit(w, stream, also);
    if (!error && point)
        *point = w;
    else
        work_drop(w);
    return report_error(error);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    struct work *w = NULL;
    struct CUstream_st *s = stream_find(stream);

    if (!s)
        return report_error(cudaErrorInvalidResourceHandle);
    cudaError_t error = report_error(graph_refuses(&s->capture));
    if (error)
        return error;
    if ((error = add_point(s, NULL, &w))) {
        /* A failed device takes no point, and what the stream has begun still runs. */
        if (device_error() && work_may_wait())
            stream_wait(s);
        return error;
    }
    error = stream_wait_for(w);
    work_drop(w);
    return error;
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    struct work *w = NULL;
    cudaError_t error = last_of(stream, &w);

    if (!error)
        error = query(w);
    if (w)
        work_drop(w);
    return error;
}

/* --- Host functions --- */

static cudaError_t call(cudaStream_t stream, cudaHostFn_t function, void *argument,
                        void (*release)(void *argument), bool after_failure)
{
    struct CUstream_st *s = stream_find(stream);

    if (device_error())
        return report_error(device_error());
    struct work *w = s && function ? work_new(WORK_CALL) : NULL;
    if (!s)
        return report_error(cudaErrorInvalidResourceHandle);
    if (!function)
        return report_error(cudaErrorInvalidValue);
    if (!w)
        return report_error(cudaErrorMemoryAllocation);
    w->call.function = function;
    w->call.argument = argument;
    w->call.release = release;
    prctl(PR_GET_NAME, w->call.thread_name, 0, 0, 0);
    w->call.after_failure = after_failure;
    w->call.library = release && !after_failure;
    if (w->call.library)
        call_begins(w);
    cudaError_t error = work_submit(w, s, NULL);
    if (error || w->capture) /* then its launches count */
        call_ends(w);
    work_drop(w);
    return report_error(error);
}

cudaError_t gshmem_host_call(cudaStream_t stream, cudaHostFn_t function, void *argument,
                             void (*release)(void *argument))
{
    return call(stream, function, argument, release, false);
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *argument)
{
    return gshmem_host_call(stream, function, argument, NULL);
}

struct callback {
    cudaStreamCallback_t function;
    cudaStream_t stream;
    void *argument;
};

static void run_callback(void *argument)
{
    struct callback *c = argument;

    c->function(c->stream, device_error(), c->argument);
}

cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback,
                                  void *argument, unsigned flags)
{
    struct callback *c = callback && !flags ? malloc(sizeof *c) : NULL;

    if (!callback || flags)
        return report_error(cudaErrorInvalidValue);
    if (!c)
        return report_error(cudaErrorMemoryAllocation);
    *c = (struct callback){callback, stream, argument};
    cudaError_t error = call(stream, run_callback, c, free, true); /* it is told of failures */
    if (error)
        free(c);
    return error;
}

/* --- Events --- */

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
    struct CUevent_st *e = event ? calloc(1, sizeof *e) : NULL;

    if (!event)
        return report_error(cudaErrorInvalidValue);
    if (!e)
        return report_error(cudaErrorMemoryAllocation);
    e->flags = flags;
    *event = e;
    return report_error(device_error());
}

cudaError_t cudaEventCreate(cudaEvent_t *event)
{
    return cudaEventCreateWithFlags(event, cudaEventDefault);
}

/* What the event recorded last, with a reference, as another thread may record it again; NULL:
 * never. */
static struct work *event_last(struct CUevent_st *event)
{
    pthread_mutex_lock(&work_lock);
    struct work *w = event->recorded;
    if (w)
        w->references++;
    pthread_mutex_unlock(&work_lock);
    return w;
}

/* The event has recorded w (may be NULL), whose reference it takes. */
static void event_record(struct CUevent_st *event, struct work *w)
{
    pthread_mutex_lock(&work_lock);
    work_drop_locked(event->recorded);
    event->recorded = w;
    pthread_mutex_unlock(&work_lock);
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    if (!event)
        return report_error(cudaErrorInvalidResourceHandle);
    event_record(event, NULL);
    free(event);
    return report_error(device_error());
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    struct CUstream_st *s = stream_find(stream);
    struct work *w = NULL;

    if (!event || !s)
        return report_error(cudaErrorInvalidResourceHandle);
    cudaError_t error = add_point(s, NULL, &w);
    if (error)
        return error;
    event_record(event, w);
    return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
    struct CUstream_st *s = stream_find(stream);

    if (flags)
        return report_error(cudaErrorInvalidValue);
    if (!event || !s)
        return report_error(cudaErrorInvalidResourceHandle);
    struct work *w = event_last(event);
    cudaError_t error = w ? add_point(s, w, NULL) : cudaSuccess;
    work_drop(w);
    return error;
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    if (!event)
        return report_error(cudaErrorInvalidResourceHandle);
    struct work *w = event_last(event);
    cudaError_t error = query(w);
    work_drop(w);
    return error;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    if (!event)
        return report_error(cudaErrorInvalidResourceHandle);
    struct work *w = event_last(event);
    cudaError_t error = stream_wait_for(w);
    work_drop(w);
    return error;
}

static cudaError_t elapsed(float *milliseconds, const struct work *start, const struct work *end)
{
    if (!start || !end)
        return report_error(cudaErrorInvalidResourceHandle);
    if (start->capture || end->capture)
        return report_error(cudaErrorCapturedEvent);
    if (!work_is_done(start) || !work_is_done(end))
        return cudaErrorNotReady;
    int64_t ns = (int64_t)(end->finished_ns - start->finished_ns);
    *milliseconds = (float)((double)ns * 1e-6);
    return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start, cudaEvent_t end)
{
    if (!milliseconds)
        return report_error(cudaErrorInvalidValue);
    if (!start || !end || (start->flags | end->flags) & cudaEventDisableTiming)
        return report_error(cudaErrorInvalidResourceHandle);
    struct work *first = event_last(start), *last = event_last(end);
    cudaError_t error = elapsed(milliseconds, first, last);
    work_drop(first);
    work_drop(last);
    return error;
}
