/* Requests: on streams of the program's, and for calls of the CPU's that wait for them.
 *
 * A copy is a copy of the stream's, which the GPU's copy engines make. All else is a launch of the
 * library's kernel with the request as its argument. Both can be captured in graphs, where they
 * take no part in the order below: graphs have an order of their own.
 *
 * The collectives of a team run in the order in which they are asked for, whatever the streams:
 * each leaves an event that the next one waits for on its own stream. */
#include "device/cuda/cuda.h"

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

/* ---- The order of a team's collectives ---- */

static bool is_captured(struct cuda *c, cuda_stream stream)
{
    int status = 0;

    return c->driver.stream_is_capturing(stream, &status) || status;
}

static struct cuda_order *order_of(struct cuda *c, int team)
{
    if (team >= c->orders) {
        struct cuda_order *more = realloc(c->order, (size_t)(team + 1) * sizeof *more);
        if (!more)
            return NULL;
        for (int i = c->orders; i <= team; i++)
            more[i] = (struct cuda_order){.last = NULL};
        c->order = more;
        c->orders = team + 1;
    }
    return &c->order[team];
}

/* With the lock. */
static gshmem_status_t launch_in_order(struct cuda *c, const struct device_request *r,
                                       cuda_stream stream)
{
    struct cuda_order *o = order_of(c, r->team);
    gshmem_status_t status;
    cuda_result result;

    if (!o)
        return c->config.fail(GSHMEM_ERR_MEMORY, "cuda: out of memory");
    if (!o->last && (result = c->driver.event_create(&o->last, CUDA_EVENT_NO_TIMING)))
        return cuda_fail(c, result, "an event on GPU %d", c->gpu);
    if (o->recorded && (result = c->driver.stream_wait_event(stream, o->last, 0)))
        return cuda_fail(c, result,
                         "putting a collective on stream %p of GPU %d behind that before it",
                         stream, c->gpu);
    if ((status = cuda_kernel_launch(c, r, stream)))
        return status;
    if ((result = c->driver.event_record(o->last, stream)))
        return cuda_fail(c, result, "an event on stream %p of GPU %d", stream, c->gpu);
    o->recorded = true;
    return GSHMEM_OK;
}

static gshmem_status_t stream_launch(struct cuda *c, const struct device_request *r,
                                     cuda_stream stream)
{
    gshmem_status_t status;

    if (!device_call_is_collective(r->call) || r->team < 0 || is_captured(c, stream))
        return cuda_kernel_launch(c, r, stream);
    pthread_mutex_lock(&c->order_lock);
    status = launch_in_order(c, r, stream);
    pthread_mutex_unlock(&c->order_lock);
    return status;
}

gshmem_status_t cuda_stream_request(struct device *base, void *stream,
                                    const struct device_request *r)
{
    struct cuda *c = cuda_of(base);
    gshmem_status_t status;

    if ((status = cuda_enter(c)))
        return status;
    status = stream_launch(c, r, stream);
    cuda_leave(c);
    return status;
}

/* It is given none. */
bool cuda_streams_busy(struct device *base)
{
    (void)base;
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

static gshmem_status_t make_errand(struct cuda *c, struct cuda_errand *e)
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

static struct cuda_errand *take_errand(struct cuda *c)
{
    struct cuda_errand *e;

    pthread_mutex_lock(&c->order_lock);
    if ((e = c->errands))
        c->errands = e->next;
    pthread_mutex_unlock(&c->order_lock);
    if (e)
        return e;
    if (!(e = calloc(1, sizeof *e))) {
        c->config.fail(GSHMEM_ERR_MEMORY, "cuda: out of memory");
        return NULL;
    }
    if (make_errand(c, e)) {
        free(e);
        return NULL;
    }
    return e;
}

static void give_errand(struct cuda *c, struct cuda_errand *e)
{
    pthread_mutex_lock(&c->order_lock);
    e->next = c->errands;
    c->errands = e;
    pthread_mutex_unlock(&c->order_lock);
}

static gshmem_status_t begin_errand(struct cuda *c, struct cuda_errand *e,
                                    const struct device_request *r)
{
    struct device_request mine = *r;
    gshmem_status_t status;
    cuda_result result;

    mine.answer = (uintptr_t)e->answer;
    if ((status = stream_launch(c, &mine, e->stream)))
        return status;
    result = c->driver.event_record(e->event, e->stream);
    return result ? cuda_fail(c, result, "an event on GPU %d", c->gpu) : GSHMEM_OK;
}

gshmem_status_t cuda_request_start(struct device *base, const struct device_request *r,
                                   void **errand)
{
    struct cuda *c = cuda_of(base);
    gshmem_status_t status;

    if ((status = cuda_enter(c)))
        return status;
    struct cuda_errand *e = take_errand(c);
    if (!e) {
        status = GSHMEM_ERR_DEVICE;
    } else if ((status = begin_errand(c, e, r))) {
        give_errand(c, e);
    } else {
        *errand = e;
    }
    cuda_leave(c);
    return status;
}

bool cuda_request_done(struct device *base, void *errand, gshmem_status_t *status)
{
    struct cuda *c = cuda_of(base);
    struct cuda_errand *e = errand;
    cuda_result result;

    if ((*status = cuda_enter(c)))
        return true;
    result = c->driver.event_query(e->event);
    cuda_leave(c);
    if (result == CUDA_NOT_READY)
        return false;
    *status = result ? cuda_fail(c, result, "a request of the CPU's on GPU %d", c->gpu)
                     : (gshmem_status_t)e->answer->outcome;
    give_errand(c, e);
    return true;
}

/* With the GPU ours, and nothing under way. */
void cuda_streams_close(struct cuda *c)
{
    for (struct cuda_errand *e; (e = c->errands);) {
        c->errands = e->next;
        c->driver.host_free(e->answer);
        c->driver.event_destroy(e->event);
        c->driver.stream_destroy(e->stream);
        free(e);
    }
    for (int i = 0; i < c->orders; i++) {
        if (c->order[i].last)
            c->driver.event_destroy(c->order[i].last);
    }
    free(c->order);
}
