/* Operations on streams. An operation is recorded, and the host's function performs it when the
 * device reports that the stream has reached it; or it is handed to a device that performs it
 * itself (device.c).
 *
 * Collectives of one team take turns in the order in which they were put on streams, whichever
 * streams these are. All PEs put them there in the same order, and concurrent streams would change
 * it. A stream can only wait for work that is on a stream already, so that this order never
 * contradicts the streams' own. Collectives in graphs take no turn: their graphs have an order. */
#include <pthread.h>
#include <stdlib.h>

#include "device/device.h"
#include "gshmem.h"
#include "gshmem/stream.h"
#include "runtime/base/clock.h"
#include "runtime/base/log.h"
#include "runtime/job/job.h"
#include "runtime/job/ranges.h"
#include "runtime/network/wait.h"
#include "runtime/node/where_page.h"
#include "runtime/streams/parts.h"
#include "runtime/streams/stream.h"

/* These outlive the job: a stream may reach an operation later, as said below. */
static struct queue queues[TEAM_MAX];
static pthread_mutex_t put_lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool requested; /* there may be requests on streams */

/* The number of the job whose operations are performed; it is incremented when they have been
 * waited for. Operations whose turn comes later, since a death may cut the wait for streams short,
 * find that their job is over. */
static _Atomic uint64_t current = 1;
static atomic_size_t performing;

static void stream_wait_for_turn(const struct request *r)
{
    struct wait w;

    wait_begin(&w, "a collective on a stream, for others on other streams", r->team);
    /* acquire: with the release in perform. If the wait fails, the collective will fail, too. */
    while (atomic_load_explicit(&r->queue->done, memory_order_acquire) < r->turn && !wait_step(&w))
        ;
    wait_end(&w);
}

static void stream_leave(void)
{
    /* release: with the acquire in streams_drain, so that a job ends after its operations */
    atomic_fetch_sub_explicit(&performing, 1, memory_order_release);
}

/* Whether the job of r continues; if so it does until stream_leave(). */
static bool stream_enter(const struct request *r)
{
    /* seq_cst, both, as in streams_drain: one of the two sees the other */
    atomic_fetch_add(&performing, 1);
    if (atomic_load(&current) == r->job)
        return true;
    stream_leave();
    return false;
}

static void next_turn(const struct request *r)
{
    if (r->queue) /* release: with the acquire in stream_wait_for_turn */
        atomic_fetch_add_explicit(&r->queue->done, 1, memory_order_release);
}

static void perform(void *argument)
{
    struct request *r = argument;

    r->came = true;
    if (!stream_enter(r)) {
        if (r->captured)
            gshmem_raise(fail(GSHMEM_ERR_STATE,
                              "an operation in a graph: the job that it was captured in is over"));
        return;
    }
    where_page_of_stream(true);
    if (r->queue)
        stream_wait_for_turn(r);
    gshmem_raise(r->run(r));
    where_page_of_stream(false);
    next_turn(r);
    stream_leave();
}

/* The device makes this call no more, or has never made it, because a kernel before it on the
 * stream failed. */
static void over(void *argument)
{
    struct request *r = argument;

    if (!r->came && stream_enter(r)) {
        next_turn(r);
        stream_leave();
    }
    free(r);
}

/* With put_lock. */
static gshmem_status_t put_in_turn(gshmem_stream_t stream, struct request *r)
{
    if (r->queue)
        r->turn = r->queue->put++;
    gshmem_status_t status = job->device->ops->stream_call(job->device, stream, perform, r, over);
    if (status && r->queue)
        r->queue->put--;
    return status;
}

static gshmem_status_t put_captured(gshmem_stream_t stream, struct request *r)
{
    r->captured = true;
    r->queue = NULL;
    return job->device->ops->stream_call(job->device, stream, perform, r, over);
}

gshmem_status_t stream_put_on(gshmem_stream_t stream, const char *call,
                              const struct request *wanted)
{
    gshmem_status_t status = job_require(call);
    RANGE(call);

    if (status)
        return status;
    if (job->device->ops->own_heap) {
        atomic_store_explicit(&requested, true, memory_order_relaxed);
        return stream_put_request(stream, call, wanted);
    }
    struct request *r = malloc(sizeof *r);
    if (!r)
        return fail(GSHMEM_ERR_MEMORY, "%s: no memory for the request (%zu B)", call, sizeof *r);
    *r = *wanted;
    r->job = atomic_load_explicit(&current, memory_order_relaxed);
    pthread_mutex_lock(&put_lock);
    status = job->device->ops->stream_is_captured(job->device, stream) ? put_captured(stream, r)
                                                    : put_in_turn(stream, r);
    pthread_mutex_unlock(&put_lock);
    if (status)
        free(r);
    return status;
}

/* A collective of wanted->team. */
gshmem_status_t stream_put_collective_on(gshmem_stream_t stream, const char *call,
                                         const struct request *wanted)
{
    struct request r = *wanted;

    if ((uint32_t)r.team >= TEAM_MAX)
        return fail(GSHMEM_ERR_ARGUMENT, "%s: %d is no team", call, r.team);
    r.queue = &queues[r.team];
    return stream_put_on(stream, call, &r);
}

gshmem_status_t streams_drain(bool kernels)
{
    struct wait w;
    gshmem_status_t status = GSHMEM_OK;

    if (atomic_exchange_explicit(&requested, false, memory_order_relaxed))
        status = job->device->ops->streams_wait(job->device);
    wait_begin(&w, "gshmem_finalize: what is on streams", GSHMEM_TEAM_WORLD);
    while (!status && job->device->ops->streams_busy(job->device, kernels))
        status = wait_step(&w);
    wait_end(&w);
    /* seq_cst, as in enter */
    atomic_fetch_add(&current, 1);
    /* Operations that are being performed end by themselves: what cut the wait short ends them,
     * too. acquire: with the release in stream_leave */
    while (atomic_load_explicit(&performing, memory_order_acquire))
        clock_yield();
    for (int i = 0; i < TEAM_MAX; i++) {
        if (!queues[i].put)
            continue;
        queues[i].put = 0;
        atomic_store_explicit(&queues[i].done, 0, memory_order_relaxed);
    }
    return status;
}
