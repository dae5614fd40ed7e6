/* Requests: on streams of the program's, and for calls of the CPU's that wait for them.
 *
 * A copy is a copy of the stream's, which the GPU's copy engines make. All else is a launch of the
 * library's kernel with the request as its argument. Both can be captured in graphs, where they
 * take no part in the order that collectives.c keeps: graphs have an order of their own. */
#include "device/cuda/streams.h"

#include <stdlib.h>

gshmem_status_t cuda_stream_copy(struct device *base, void *stream, void *to, const void *from,
                                 size_t bytes)
{
    struct cuda *c = cuda_of(base);
    cuda_result result = CUDA_OK;
    gshmem_status_t status;

    if ((status = cuda_enter(c)))
        return status;
    if (bytes)
        result = c->driver.copy_async((cuda_address)(uintptr_t)to, (cuda_address)(uintptr_t)from,
                                      bytes, stream);
    cuda_leave(c);
    return result ? cuda_fail(c, result, "putting a copy of %zu B to %p on stream %p of GPU %d",
                              bytes, to, stream, c->gpu)
                  : GSHMEM_OK;
}

gshmem_status_t cuda_stream_request(struct device *base, void *stream,
                                    const struct device_request *r)
{
    struct cuda *c = cuda_of(base);
    gshmem_status_t status;

    if ((status = cuda_enter(c)))
        return status;
    status = cuda_launch_in_order(c, r, stream);
    cuda_leave(c);
    return status;
}

/* It is given no calls, and the driver releases memory when no kernel runs. */
bool cuda_streams_busy(struct device *base, bool kernels)
{
    (void)base;
    (void)kernels;
    return false;
}

gshmem_status_t cuda_streams_wait(struct device *base)
{
    struct cuda *c = cuda_of(base);
    gshmem_status_t status;
    cuda_result result;

    if ((status = cuda_enter(c)))
        return status;
    result = c->driver.context_wait();
    cuda_leave(c);
    return result ? cuda_fail(c, result, "waiting for what is on streams of GPU %d", c->gpu)
                  : GSHMEM_OK;
}

/* ---- For calls of the CPU's: each has a stream of its own while it waits ---- */

static gshmem_status_t request_make(struct cuda *c, struct cuda_blocking_request *e)
{
    const struct cuda_driver *d = &c->driver;
    cuda_result result;
    void *answer;

    if ((result = d->stream_create(&e->stream, CUDA_STREAM_NON_BLOCKING)))
        return cuda_fail(c, result, "a stream for a call of the CPU's on GPU %d", c->gpu);
    if ((result = d->event_create(&e->event, CUDA_EVENT_NO_TIMING))) {
        d->stream_destroy(e->stream);
        return cuda_fail(c, result, "an event on GPU %d", c->gpu);
    }
    if ((result = d->host_allocate(&answer, sizeof *e->answer,
                                   CUDA_HOST_PORTABLE | CUDA_HOST_DEVICE_MAP))) {
        d->event_destroy(e->event);
        d->stream_destroy(e->stream);
        return cuda_fail(c, result, "pinned memory for answers of GPU %d", c->gpu);
    }
    e->answer = answer;
    return GSHMEM_OK;
}

static gshmem_status_t request_take(struct cuda *c, struct cuda_blocking_request **out)
{
    struct cuda_blocking_request *e;
    gshmem_status_t status;

    pthread_mutex_lock(&c->order_lock);
    if ((e = c->free_requests))
        c->free_requests = e->next;
    pthread_mutex_unlock(&c->order_lock);
    if (!e) {
        if (!(e = calloc(1, sizeof *e)))
            return c->config.fail(GSHMEM_ERR_MEMORY, "cuda: out of memory");
        if ((status = request_make(c, e))) {
            free(e);
            return status;
        }
    }
    *out = e;
    return GSHMEM_OK;
}

static void request_give_back(struct cuda *c, struct cuda_blocking_request *e)
{
    pthread_mutex_lock(&c->order_lock);
    e->next = c->free_requests;
    c->free_requests = e;
    pthread_mutex_unlock(&c->order_lock);
}

static gshmem_status_t request_begin(struct cuda *c, struct cuda_blocking_request *e,
                                    const struct device_request *r)
{
    struct device_request mine = *r;
    gshmem_status_t status;
    cuda_result result;

    mine.answer = (uintptr_t)e->answer;
    if ((status = cuda_launch_in_order(c, &mine, e->stream)))
        return status;
    result = c->driver.event_record(e->event, e->stream);
    return result ? cuda_fail(c, result, "an event on GPU %d", c->gpu) : GSHMEM_OK;
}

gshmem_status_t cuda_request_start(struct device *base, const struct device_request *r,
                                   void **request)
{
    struct cuda *c = cuda_of(base);
    struct cuda_blocking_request *e = NULL;
    gshmem_status_t status;

    if ((status = cuda_enter(c)))
        return status;
    if (!(status = request_take(c, &e))) {
        if ((status = request_begin(c, e, r)))
            request_give_back(c, e);
        else
            *request = e;
    }
    cuda_leave(c);
    return status;
}

bool cuda_request_done(struct device *base, void *request, gshmem_status_t *status)
{
    struct cuda *c = cuda_of(base);
    struct cuda_blocking_request *e = request;
    cuda_result result;

    if ((*status = cuda_enter(c)))
        return true;
    result = c->driver.event_query(e->event);
    cuda_leave(c);
    if (result == CUDA_NOT_READY)
        return false;
    *status = result ? cuda_fail(c, result, "a request of the CPU's on GPU %d", c->gpu)
                     : (gshmem_status_t)e->answer->outcome;
    request_give_back(c, e);
    return true;
}

/* With the GPU ours. Of a request that has failed to begin, the kernel may have been launched. */
void cuda_requests_close(struct cuda *c)
{
    for (struct cuda_blocking_request *e; (e = c->free_requests);) {
        c->free_requests = e->next;
        c->driver.stream_wait(e->stream);
        c->driver.host_free(e->answer);
        c->driver.event_destroy(e->event);
        c->driver.stream_destroy(e->stream);
        free(e);
    }
}
