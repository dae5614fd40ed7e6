/* Operations on streams. An operation is recorded, and the host's function performs it when the
 * device reports that the stream has reached it; or it is handed to a device that performs it
 * itself (device.c).
 *
 * Collectives of one team take turns in the order in which they were put on streams, whichever
 * streams these are. All PEs put them there in the same order, and concurrent streams would change
 * it. A stream can only wait for work that is on a stream already, so that this order never
 * contradicts the streams' own. Collectives in graphs take no turn: their graphs have an order. */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "device/device.h"
#include "gshmem.h"
#include "gshmem/stream.h"
#include "gshmem/wait.h"
#include "runtime/base/log.h"
#include "runtime/collectives/combine.h"
#include "runtime/job/job.h"
#include "runtime/job/ranges.h"
#include "runtime/network/wait.h"
#include "runtime/streams/parts.h"
#include "runtime/streams/stream.h"

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
}

static void stream_leave(void)
{
    /* release: with the acquire in streams_drain, so that a job ends after its operations */
    atomic_fetch_sub_explicit(&performing, 1, memory_order_release);
}

/* Whether the job of r continues; if so it does until leave(). */
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
    if (r->queue) /* release: with the acquire in wait_for_turn */
        atomic_fetch_add_explicit(&r->queue->done, 1, memory_order_release);
}

static void perform(void *argument)
{
    struct request *r = argument;

    r->came = true;
    if (!stream_enter(r)) {
        if (r->captured)
            gshmem_raise(fail(GSHMEM_ERR_STATE, "an operation in a graph: the job that it was captured in is over"));
        return;
    }
    if (r->queue)
        stream_wait_for_turn(r);
    gshmem_raise(r->run(r));
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

static gshmem_status_t put_on(gshmem_stream_t stream, const char *call, const struct request *wanted)
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
static gshmem_status_t put_collective_on(gshmem_stream_t stream, const char *call,
                                         const struct request *wanted)
{
    struct request r = *wanted;

    if ((uint32_t)r.team >= TEAM_MAX)
        return fail(GSHMEM_ERR_ARGUMENT, "%s: %d is no team", call, r.team);
    r.queue = &queues[r.team];
    return put_on(stream, call, &r);
}

gshmem_status_t streams_drain(void)
{
    struct wait w;
    gshmem_status_t status = GSHMEM_OK;

    if (atomic_exchange_explicit(&requested, false, memory_order_relaxed))
        status = job->device->ops->streams_wait(job->device);
    wait_begin(&w, "gshmem_finalize: what is on streams", GSHMEM_TEAM_WORLD);
    while (!status && job->device->ops->streams_busy(job->device))
        status = wait_step(&w);
    /* seq_cst, as in enter */
    atomic_fetch_add(&current, 1);
    /* Operations that are being performed end by themselves: what cut the wait short ends them,
     * too. acquire: with the release in leave */
    while (atomic_load_explicit(&performing, memory_order_acquire))
        sched_yield();
    for (int i = 0; i < TEAM_MAX; i++) {
        queues[i].put = 0;
        atomic_store_explicit(&queues[i].done, 0, memory_order_relaxed);
    }
    return status;
}

/* ---- Put and get ---- */

static gshmem_status_t putmem(const struct request *r)
{
    return gshmem_putmem(r->dest, r->source, r->n, r->pe);
}

gshmem_status_t gshmem_putmem_on_stream(void *dest, const void *source, size_t bytes, int pe,
                                        gshmem_stream_t stream)
{
    return put_on(stream, "gshmem_putmem_on_stream",
                  &(struct request){DEVICE_PUT, putmem, dest, source, bytes, .pe = pe});
}

static gshmem_status_t getmem(const struct request *r)
{
    return gshmem_getmem(r->dest, r->source, r->n, r->pe);
}

gshmem_status_t gshmem_getmem_on_stream(void *dest, const void *source, size_t bytes, int pe,
                                        gshmem_stream_t stream)
{
    return put_on(stream, "gshmem_getmem_on_stream",
                  &(struct request){DEVICE_GET, getmem, dest, source, bytes, .pe = pe});
}

static gshmem_status_t putmem_nbi(const struct request *r)
{
    return gshmem_putmem_nbi(r->dest, r->source, r->n, r->pe);
}

gshmem_status_t gshmem_putmem_nbi_on_stream(void *dest, const void *source, size_t bytes, int pe,
                                            gshmem_stream_t stream)
{
    return put_on(stream, "gshmem_putmem_nbi_on_stream",
                  &(struct request){DEVICE_PUT, putmem_nbi, dest, source, bytes, .pe = pe});
}

static gshmem_status_t getmem_nbi(const struct request *r)
{
    return gshmem_getmem_nbi(r->dest, r->source, r->n, r->pe);
}

gshmem_status_t gshmem_getmem_nbi_on_stream(void *dest, const void *source, size_t bytes, int pe,
                                            gshmem_stream_t stream)
{
    return put_on(stream, "gshmem_getmem_nbi_on_stream",
                  &(struct request){DEVICE_GET, getmem_nbi, dest, source, bytes, .pe = pe});
}

static gshmem_status_t iputmem(const struct request *r)
{
    return gshmem_ctx_iputmem(GSHMEM_CTX_DEFAULT, r->dest, r->source, r->dst, r->sst, r->element,
                              r->n, r->pe);
}

gshmem_status_t gshmem_iputmem_on_stream(void *dest, const void *source, ptrdiff_t dst,
                                         ptrdiff_t sst, size_t element, size_t n, int pe,
                                         gshmem_stream_t stream)
{
    return put_on(stream, "gshmem_iputmem_on_stream",
                  &(struct request){DEVICE_IPUT, iputmem, dest, source, n, element, dst, sst, .pe = pe});
}

static gshmem_status_t igetmem(const struct request *r)
{
    return gshmem_ctx_igetmem(GSHMEM_CTX_DEFAULT, r->dest, r->source, r->dst, r->sst, r->element,
                              r->n, r->pe);
}

gshmem_status_t gshmem_igetmem_on_stream(void *dest, const void *source, ptrdiff_t dst,
                                         ptrdiff_t sst, size_t element, size_t n, int pe,
                                         gshmem_stream_t stream)
{
    return put_on(stream, "gshmem_igetmem_on_stream",
                  &(struct request){DEVICE_IGET, igetmem, dest, source, n, element, dst, sst, .pe = pe});
}

static gshmem_status_t p(const struct request *r)
{
    return gshmem_putmem(r->dest, r->value, r->n, r->pe);
}

gshmem_status_t gshmem_path_p_on_stream(void *dest, const void *value, size_t bytes, int pe,
                                        gshmem_stream_t stream)
{
    struct request r = {DEVICE_P, p, dest, .n = bytes, .pe = pe};

    if (bytes > sizeof r.value)
        return fail(GSHMEM_ERR_ARGUMENT, "gshmem_path_p_on_stream: a value of %zu B; %zu at most",
                    bytes, sizeof r.value);
    memcpy(r.value, value, bytes);
    return put_on(stream, "gshmem_p_on_stream", &r);
}

/* ---- Signals and waits ---- */

static gshmem_status_t putmem_signal(const struct request *r)
{
    return gshmem_putmem_signal(r->dest, r->source, r->n, r->sig_addr, r->signal, r->signal_op,
                                r->pe);
}

gshmem_status_t gshmem_putmem_signal_on_stream(void *dest, const void *source, size_t bytes,
                                               uint64_t *sig_addr, uint64_t signal, int signal_op,
                                               int pe, gshmem_stream_t stream)
{
    return put_on(stream, "gshmem_putmem_signal_on_stream",
                  &(struct request){DEVICE_PUT_SIGNAL, putmem_signal, dest, source, bytes, .sig_addr = sig_addr,
                                    .signal = signal, .signal_op = signal_op, .pe = pe});
}

static gshmem_status_t putmem_signal_nbi(const struct request *r)
{
    return gshmem_putmem_signal_nbi(r->dest, r->source, r->n, r->sig_addr, r->signal, r->signal_op,
                                    r->pe);
}

gshmem_status_t gshmem_putmem_signal_nbi_on_stream(void *dest, const void *source, size_t bytes,
                                                   uint64_t *sig_addr, uint64_t signal,
                                                   int signal_op, int pe, gshmem_stream_t stream)
{
    return put_on(stream, "gshmem_putmem_signal_nbi_on_stream",
                  &(struct request){DEVICE_PUT_SIGNAL, putmem_signal_nbi, dest, source, bytes, .sig_addr = sig_addr,
                                    .signal = signal, .signal_op = signal_op, .pe = pe});
}

static gshmem_status_t signal_op(const struct request *r)
{
    return gshmem_signal_op(r->sig_addr, r->signal, r->signal_op, r->pe);
}

gshmem_status_t gshmem_signal_op_on_stream(uint64_t *sig_addr, uint64_t signal, int op, int pe,
                                           gshmem_stream_t stream)
{
    return put_on(stream, "gshmem_signal_op_on_stream",
                  &(struct request){DEVICE_SIGNAL, signal_op, .sig_addr = sig_addr, .signal = signal,
                                    .signal_op = op, .pe = pe});
}

static gshmem_status_t wait_one(const struct request *r)
{
    return gshmem_path_wait_one(r->type, r->source, r->signal_op, r->signal);
}

gshmem_status_t gshmem_path_wait_one_on_stream(enum gshmem_type type, const void *ivar, int cmp,
                                               uint64_t value, gshmem_stream_t stream)
{
    return put_on(stream, "gshmem_wait_until_on_stream",
                  &(struct request){DEVICE_WAIT_ONE, wait_one, .type = type, .source = ivar, .signal_op = cmp,
                                    .signal = value});
}

gshmem_status_t gshmem_signal_wait_until_on_stream(uint64_t *sig_addr, int cmp, uint64_t value,
                                                   gshmem_stream_t stream)
{
    return gshmem_path_wait_one_on_stream(GSHMEM_TYPE_UINT64, sig_addr, cmp, value, stream);
}

static gshmem_status_t wait_all(const struct request *r)
{
    return gshmem_path_wait_all(r->type, r->source, r->n, r->status, r->signal_op,
                                r->vector ? r->dest : r->value, r->vector);
}

gshmem_status_t gshmem_path_wait_all_on_stream(enum gshmem_type type, const void *ivars,
                                               size_t nelems, const int *status, int cmp,
                                               const void *values, int vector,
                                               gshmem_stream_t stream)
{
    struct request r = {DEVICE_WAIT_ALL, wait_all, (void *)(uintptr_t)values, ivars, nelems, .type = type,
                        .status = status, .signal_op = cmp, .vector = vector};

    if (!vector)
        memcpy(r.value, values, combine_bytes(type)); /* 16 bytes at most */
    return put_on(stream, "gshmem_wait_until_all_on_stream", &r);
}

/* ---- Order and collectives ---- */

static gshmem_status_t quiet(const struct request *r)
{
    (void)r;
    return gshmem_quiet();
}

gshmem_status_t gshmem_quiet_on_stream(gshmem_stream_t stream)
{
    return put_on(stream, "gshmem_quiet_on_stream", &(struct request){.what = DEVICE_QUIET, .run = quiet});
}

static gshmem_status_t team_sync(const struct request *r)
{
    return gshmem_team_sync(r->team);
}

gshmem_status_t gshmem_team_sync_on_stream(gshmem_team_t team, gshmem_stream_t stream)
{
    return put_collective_on(stream, "gshmem_team_sync_on_stream",
                             &(struct request){DEVICE_SYNC, team_sync, .team = team});
}

gshmem_status_t gshmem_sync_all_on_stream(gshmem_stream_t stream)
{
    return gshmem_team_sync_on_stream(GSHMEM_TEAM_WORLD, stream);
}

static gshmem_status_t barrier(const struct request *r)
{
    return gshmem_barrier(r->team);
}

gshmem_status_t gshmem_barrier_on_stream(gshmem_team_t team, gshmem_stream_t stream)
{
    return put_collective_on(stream, "gshmem_barrier_on_stream",
                             &(struct request){DEVICE_BARRIER, barrier, .team = team});
}

gshmem_status_t gshmem_barrier_all_on_stream(gshmem_stream_t stream)
{
    return gshmem_barrier_on_stream(GSHMEM_TEAM_WORLD, stream);
}

static gshmem_status_t stream_broadcast(const struct request *r)
{
    return gshmem_broadcastmem(r->team, r->dest, r->source, r->n, r->pe);
}

gshmem_status_t gshmem_broadcastmem_on_stream(gshmem_team_t team, void *dest, const void *source,
                                              size_t bytes, int root, gshmem_stream_t stream)
{
    return put_collective_on(stream, "gshmem_broadcastmem_on_stream",
                             &(struct request){DEVICE_BROADCAST, stream_broadcast, dest, source,
                                               bytes, .team = team, .pe = root});
}

static gshmem_status_t fcollect(const struct request *r)
{
    return gshmem_fcollectmem(r->team, r->dest, r->source, r->n);
}

gshmem_status_t gshmem_fcollectmem_on_stream(gshmem_team_t team, void *dest, const void *source,
                                             size_t bytes, gshmem_stream_t stream)
{
    return put_collective_on(stream, "gshmem_fcollectmem_on_stream",
                  &(struct request){DEVICE_FCOLLECT, fcollect, dest, source, bytes, .team = team});
}

static gshmem_status_t alltoall(const struct request *r)
{
    return gshmem_alltoallmem(r->team, r->dest, r->source, r->n);
}

gshmem_status_t gshmem_alltoallmem_on_stream(gshmem_team_t team, void *dest, const void *source,
                                             size_t bytes, gshmem_stream_t stream)
{
    return put_collective_on(stream, "gshmem_alltoallmem_on_stream",
                  &(struct request){DEVICE_ALLTOALL, alltoall, dest, source, bytes, .team = team});
}

static gshmem_status_t stream_reduce(const struct request *r)
{
    return gshmem_reduce(r->team, r->type, r->op, r->dest, r->source, r->n);
}

gshmem_status_t gshmem_reduce_on_stream(gshmem_team_t team, enum gshmem_type type,
                                        enum gshmem_op op, void *dest, const void *source, size_t n,
                                        gshmem_stream_t stream)
{
    return put_collective_on(stream, "gshmem_reduce_on_stream",
                             &(struct request){DEVICE_REDUCE, stream_reduce, dest, source, n,
                                               .team = team, .type = type, .op = op});
}

static gshmem_status_t reducescatter(const struct request *r)
{
    return gshmem_reducescatter(r->team, r->type, r->op, r->dest, r->source, r->n);
}

gshmem_status_t gshmem_reducescatter_on_stream(gshmem_team_t team, enum gshmem_type type,
                                               enum gshmem_op op, void *dest, const void *source,
                                               size_t n, gshmem_stream_t stream)
{
    return put_collective_on(stream, "gshmem_reducescatter_on_stream",
                  &(struct request){DEVICE_REDUCESCATTER, reducescatter, dest, source, n, .team = team, .type = type,
                                    .op = op});
}

static gshmem_status_t stream_collect(const struct request *r)
{
    return gshmem_collectmem(r->team, r->dest, r->source, r->n);
}

gshmem_status_t gshmem_collectmem_on_stream(gshmem_team_t team, void *dest, const void *source,
                                            size_t bytes, gshmem_stream_t stream)
{
    return put_collective_on(
        stream, "gshmem_collectmem_on_stream",
        &(struct request){DEVICE_COLLECT, stream_collect, dest, source, bytes, .team = team});
}

static gshmem_status_t alltoalls(const struct request *r)
{
    return gshmem_alltoallsmem(r->team, r->dest, r->source, r->dst, r->sst, r->element, r->n);
}

gshmem_status_t gshmem_alltoallsmem_on_stream(gshmem_team_t team, void *dest, const void *source,
                                              ptrdiff_t dst, ptrdiff_t sst, size_t element, size_t n,
                                              gshmem_stream_t stream)
{
    return put_collective_on(stream, "gshmem_alltoallsmem_on_stream",
                  &(struct request){DEVICE_ALLTOALLS, alltoalls, dest, source, n, element, dst, sst,
                                    .team = team});
}

static gshmem_status_t inscan(const struct request *r)
{
    return gshmem_inscan(r->team, r->type, r->dest, r->source, r->n);
}

gshmem_status_t gshmem_inscan_on_stream(gshmem_team_t team, enum gshmem_type type, void *dest,
                                        const void *source, size_t n, gshmem_stream_t stream)
{
    return put_collective_on(stream, "gshmem_inscan_on_stream",
                  &(struct request){DEVICE_INSCAN, inscan, dest, source, n, .team = team, .type = type});
}

static gshmem_status_t exscan(const struct request *r)
{
    return gshmem_exscan(r->team, r->type, r->dest, r->source, r->n);
}

gshmem_status_t gshmem_exscan_on_stream(gshmem_team_t team, enum gshmem_type type, void *dest,
                                        const void *source, size_t n, gshmem_stream_t stream)
{
    return put_collective_on(stream, "gshmem_exscan_on_stream",
                  &(struct request){DEVICE_EXSCAN, exscan, dest, source, n, .team = team, .type = type});
}

/* ---- Errors of CUDA calls in inline code ---- */

gshmem_status_t gshmem_path_cuda(const char *call, int error, const char *text)
{
    return error ? fail(GSHMEM_ERR_DEVICE, "%s: error %d of the device: %s", call, error, text)
                 : GSHMEM_OK;
}

gshmem_status_t gshmem_path_not_cooperative(int device)
{
    return fail(GSHMEM_ERR_UNSUPPORTED,
                "gshmem_collective_launch: device %d cannot launch kernels whose blocks all run at one "
                "time (cooperative launch)",
                device);
}

gshmem_status_t gshmem_path_too_many_blocks(unsigned long long blocks, int fit)
{
    if (fit == 0)
        return fail(GSHMEM_ERR_ARGUMENT,
                    "gshmem_collective_launch: not one block of that size, with its registers and shared "
                    "memory, fits the device");
    return fail(GSHMEM_ERR_ARGUMENT,
                "gshmem_collective_launch: %llu blocks, of which only %d can run at one time, would "
                "wait for each other for ever (gshmem_collective_launch_query_gridsize tells how "
                "many can)",
                blocks, fit);
}
