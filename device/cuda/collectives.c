/* The collectives of a team run in the order of the calls, whatever their streams: each leaves an
 * event that the next one waits for on its own stream. A captured collective takes no part in that
 * order: a graph has an order of its own. */
#include "device/cuda/streams.h"

#include <stdlib.h>

static bool collectives_captured(struct cuda *c, cuda_stream stream)
{
    int status = 0;

    return c->driver.stream_is_capturing(stream, &status) || status;
}

static struct cuda_order *collectives_order_of(struct cuda *c, int team)
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
static gshmem_status_t collectives_launch(struct cuda *c, const struct device_request *r,
                                       cuda_stream stream)
{
    struct cuda_order *o = collectives_order_of(c, r->team);
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

gshmem_status_t cuda_launch_in_order(struct cuda *c, const struct device_request *r,
                                     cuda_stream stream)
{
    gshmem_status_t status;

    if (!device_call_is_collective(r->call) || r->team < 0 || collectives_captured(c, stream))
        return cuda_kernel_launch(c, r, stream);
    pthread_mutex_lock(&c->order_lock);
    status = collectives_launch(c, r, stream);
    pthread_mutex_unlock(&c->order_lock);
    return status;
}

/* With the GPU ours, and nothing under way. */
void cuda_collectives_close(struct cuda *c)
{
    for (int i = 0; i < c->orders; i++) {
        if (c->order[i].last)
            c->driver.event_destroy(c->order[i].last);
    }
    free(c->order);
}
