/* The calls on streams: what each records (perform.c). */
#include <string.h>

#include "gshmem.h"
#include "gshmem/stream.h"
#include "gshmem/wait.h"
#include "runtime/base/log.h"
#include "runtime/collectives/combine.h"
#include "runtime/network/wait.h"
#include "runtime/streams/parts.h"

/* ---- Put and get ---- */

static gshmem_status_t putmem(const struct request *r)
{
    return gshmem_putmem(r->dest, r->source, r->n, r->pe);
}

gshmem_status_t gshmem_putmem_on_stream(void *dest, const void *source, size_t bytes, int pe,
                                        gshmem_stream_t stream)
{
    return stream_put_on(stream, "gshmem_putmem_on_stream",
                  &(struct request){DEVICE_PUT, putmem, dest, source, bytes, .pe = pe});
}

static gshmem_status_t getmem(const struct request *r)
{
    return gshmem_getmem(r->dest, r->source, r->n, r->pe);
}

gshmem_status_t gshmem_getmem_on_stream(void *dest, const void *source, size_t bytes, int pe,
                                        gshmem_stream_t stream)
{
    return stream_put_on(stream, "gshmem_getmem_on_stream",
                  &(struct request){DEVICE_GET, getmem, dest, source, bytes, .pe = pe});
}

static gshmem_status_t putmem_nbi(const struct request *r)
{
    return gshmem_putmem_nbi(r->dest, r->source, r->n, r->pe);
}

gshmem_status_t gshmem_putmem_nbi_on_stream(void *dest, const void *source, size_t bytes, int pe,
                                            gshmem_stream_t stream)
{
    return stream_put_on(stream, "gshmem_putmem_nbi_on_stream",
                  &(struct request){DEVICE_PUT, putmem_nbi, dest, source, bytes, .pe = pe});
}

static gshmem_status_t getmem_nbi(const struct request *r)
{
    return gshmem_getmem_nbi(r->dest, r->source, r->n, r->pe);
}

gshmem_status_t gshmem_getmem_nbi_on_stream(void *dest, const void *source, size_t bytes, int pe,
                                            gshmem_stream_t stream)
{
    return stream_put_on(stream, "gshmem_getmem_nbi_on_stream",
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
    return stream_put_on(
        stream, "gshmem_iputmem_on_stream",
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
    return stream_put_on(
        stream, "gshmem_igetmem_on_stream",
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
    return stream_put_on(stream, "gshmem_p_on_stream", &r);
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
    return stream_put_on(stream, "gshmem_putmem_signal_on_stream",
                         &(struct request){DEVICE_PUT_SIGNAL, putmem_signal, dest, source, bytes,
                                           .sig_addr = sig_addr, .signal = signal,
                                           .signal_op = signal_op, .pe = pe});
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
    return stream_put_on(stream, "gshmem_putmem_signal_nbi_on_stream",
                         &(struct request){DEVICE_PUT_SIGNAL, putmem_signal_nbi, dest, source,
                                           bytes, .sig_addr = sig_addr, .signal = signal,
                                           .signal_op = signal_op, .pe = pe});
}

static gshmem_status_t signal_op(const struct request *r)
{
    return gshmem_signal_op(r->sig_addr, r->signal, r->signal_op, r->pe);
}

gshmem_status_t gshmem_signal_op_on_stream(uint64_t *sig_addr, uint64_t signal, int op, int pe,
                                           gshmem_stream_t stream)
{
    return stream_put_on(stream, "gshmem_signal_op_on_stream",
                         &(struct request){DEVICE_SIGNAL, signal_op, .sig_addr = sig_addr,
                                           .signal = signal, .signal_op = op, .pe = pe});
}

static gshmem_status_t wait_one(const struct request *r)
{
    return gshmem_path_wait_one(r->type, r->source, r->signal_op, r->signal);
}

gshmem_status_t gshmem_path_wait_one_on_stream(enum gshmem_type type, const void *ivar, int cmp,
                                               uint64_t value, gshmem_stream_t stream)
{
    return stream_put_on(stream, "gshmem_wait_until_on_stream",
                         &(struct request){DEVICE_WAIT_ONE, wait_one, .type = type, .source = ivar,
                                           .signal_op = cmp, .signal = value});
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
    struct request r = {DEVICE_WAIT_ALL, wait_all,     (void *)(uintptr_t)values, ivars,
                        nelems,          .type = type, .status = status,          .signal_op = cmp,
                        .vector = vector};

    if (!vector)
        memcpy(r.value, values, combine_bytes(type)); /* 16 bytes at most */
    return stream_put_on(stream, "gshmem_wait_until_all_on_stream", &r);
}

/* ---- Order and collectives ---- */

static gshmem_status_t quiet(const struct request *r)
{
    (void)r;
    return gshmem_quiet();
}

gshmem_status_t gshmem_quiet_on_stream(gshmem_stream_t stream)
{
    return stream_put_on(stream, "gshmem_quiet_on_stream",
                         &(struct request){.what = DEVICE_QUIET, .run = quiet});
}

static gshmem_status_t flush(const struct request *r)
{
    (void)r;
    return gshmem_flush();
}

gshmem_status_t gshmem_flush_on_stream(gshmem_stream_t stream)
{
    return stream_put_on(stream, "gshmem_flush_on_stream",
                         &(struct request){.what = DEVICE_FLUSH, .run = flush});
}

static gshmem_status_t team_sync(const struct request *r)
{
    return gshmem_team_sync(r->team);
}

gshmem_status_t gshmem_team_sync_on_stream(gshmem_team_t team, gshmem_stream_t stream)
{
    return stream_put_collective_on(stream, "gshmem_team_sync_on_stream",
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
    return stream_put_collective_on(stream, "gshmem_barrier_on_stream",
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
    return stream_put_collective_on(stream, "gshmem_broadcastmem_on_stream",
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
    return stream_put_collective_on(stream, "gshmem_fcollectmem_on_stream",
                  &(struct request){DEVICE_FCOLLECT, fcollect, dest, source, bytes, .team = team});
}

static gshmem_status_t alltoall(const struct request *r)
{
    return gshmem_alltoallmem(r->team, r->dest, r->source, r->n);
}

gshmem_status_t gshmem_alltoallmem_on_stream(gshmem_team_t team, void *dest, const void *source,
                                             size_t bytes, gshmem_stream_t stream)
{
    return stream_put_collective_on(stream, "gshmem_alltoallmem_on_stream",
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
    return stream_put_collective_on(stream, "gshmem_reduce_on_stream",
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
    return stream_put_collective_on(stream, "gshmem_reducescatter_on_stream",
                                    &(struct request){DEVICE_REDUCESCATTER, reducescatter, dest,
                                                      source, n, .team = team, .type = type,
                                                      .op = op});
}

static gshmem_status_t stream_collect(const struct request *r)
{
    return gshmem_collectmem(r->team, r->dest, r->source, r->n);
}

gshmem_status_t gshmem_collectmem_on_stream(gshmem_team_t team, void *dest, const void *source,
                                            size_t bytes, gshmem_stream_t stream)
{
    return stream_put_collective_on(
        stream, "gshmem_collectmem_on_stream",
        &(struct request){DEVICE_COLLECT, stream_collect, dest, source, bytes, .team = team});
}

static gshmem_status_t alltoalls(const struct request *r)
{
    return gshmem_alltoallsmem(r->team, r->dest, r->source, r->dst, r->sst, r->element, r->n);
}

gshmem_status_t gshmem_alltoallsmem_on_stream(gshmem_team_t team, void *dest, const void *source,
                                              ptrdiff_t dst, ptrdiff_t sst, size_t element,
                                              size_t n, gshmem_stream_t stream)
{
    return stream_put_collective_on(stream, "gshmem_alltoallsmem_on_stream",
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
    return stream_put_collective_on(
        stream, "gshmem_inscan_on_stream",
        &(struct request){DEVICE_INSCAN, inscan, dest, source, n, .team = team, .type = type});
}

static gshmem_status_t exscan(const struct request *r)
{
    return gshmem_exscan(r->team, r->type, r->dest, r->source, r->n);
}

gshmem_status_t gshmem_exscan_on_stream(gshmem_team_t team, enum gshmem_type type, void *dest,
                                        const void *source, size_t n, gshmem_stream_t stream)
{
    return stream_put_collective_on(
        stream, "gshmem_exscan_on_stream",
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
    return fail(
        GSHMEM_ERR_UNSUPPORTED,
        "gshmem_collective_launch: device %d cannot launch kernels whose blocks all run at one "
        "time (cooperative launch)",
        device);
}

gshmem_status_t gshmem_path_too_many_blocks(unsigned long long blocks, int fit)
{
    if (fit == 0)
        return fail(
            GSHMEM_ERR_ARGUMENT,
            "gshmem_collective_launch: not one block of that size, with its registers and shared "
            "memory, fits the device");
    return fail(
        GSHMEM_ERR_ARGUMENT,
        "gshmem_collective_launch: %llu blocks, of which only %d can run at one time, would "
        "wait for each other for ever (gshmem_collective_launch_query_gridsize tells how "
        "many can)",
        blocks, fit);
}
