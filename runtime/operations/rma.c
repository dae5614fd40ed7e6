/* Put and get, out of line: strided forms, signals, and the cases that inline code does not
 * cover. */
#include <stdbool.h>
#include <string.h>

#include "gshmem.h"
#include "gshmem/device/strided.h"
#include "runtime/base/log.h"
#include "runtime/job/job.h"
#include "runtime/memory/device_heap.h"
#include "runtime/memory/map.h"
#include "runtime/network/network.h"
#include "runtime/network/open_batches.h"
#include "runtime/races/races.h"
#include "runtime/teams/context.h"

/* Checks the argument that is not symmetric. For 0 bytes it may be anything. */
static gshmem_status_t rma_check_local(const void *local, size_t bytes, const char *which,
                                       const char *call)
{
    if (GSHMEM_LIKELY(local || !bytes))
        return GSHMEM_OK;
    return fail(GSHMEM_ERR_ARGUMENT, "%s of %zu B: %s is NULL", call, bytes, which);
}

/* GSHMEM_CHECK=memory. */
static inline gshmem_status_t rma_check_own(const void *local, size_t bytes, const char *call)
{
    return GSHMEM_UNLIKELY(job->checked != NULL) ? context_check_local(local, bytes, call, true)
                                                 : GSHMEM_OK;
}

/* ---- To PEs that are not mapped ---- */

/* Small data is copied by the transport, larger data is sent from where it is. So a put whose
 * source must be free on return waits until its data was sent, but not until it has arrived. */
static gshmem_status_t rma_send_put(struct context *c, struct transport_request *put, bool nbi,
                                    const char *call)
{
    if (!nbi && put->bytes > TRANSPORT_COPIED)
        return network_put(job->network, c->pending, put, call);
    return network_post(job->network, c->pending, put, call);
}

static gshmem_status_t put_remote(struct context *c, const struct location *t, const void *source,
                                size_t bytes, bool nbi, const char *call)
{
    if (t->atomicity == ATOMICITY_CPU && network_opens_batches(job->network) &&
        open_batch_takes_put(source, t->offset, bytes))
        return open_batch_put(c->pending, t->pe, t->segment, t->offset, source, bytes, call);
    struct transport_request request = {
        .kind = TRANSPORT_PUT,
        .flags = TRANSPORT_LOOSE | (nbi || bytes <= TRANSPORT_COPIED ? TRANSPORT_MORE : 0),
        .pe = t->pe,
        .segment = t->segment,
        .offset = t->offset,
        .local = (void *)source,
        .bytes = bytes,
    };
    return rma_send_put(c, &request, nbi, call);
}

static inline struct transport_request get_request(const struct location *t, void *dest,
                                                   size_t bytes)
{
    return (struct transport_request){
        .kind = TRANSPORT_GET,
        .pe = t->pe,
        .segment = t->segment,
        .offset = t->offset,
        .local = dest,
        .bytes = bytes,
    };
}

static gshmem_status_t post_get(struct pending *pending, const struct location *t, void *dest,
                                size_t bytes, const char *call)
{
    struct transport_request request = get_request(t, dest, bytes);

    request.flags = TRANSPORT_MORE | TRANSPORT_LOOSE;
    return network_post(job->network, pending, &request, call);
}

static gshmem_status_t get_remote(struct context *c, const struct location *t, void *dest,
                                  size_t bytes, bool nbi, const char *call)
{
    struct transport_request request = get_request(t, dest, bytes);

    if (bytes == 0)
        return GSHMEM_OK;
    return nbi ? post_get(c->pending, t, dest, bytes, call)
               : network_errand(job->network, &request, call, NULL);
}

/* ---- To all PEs ---- */

/* What the network does not reach is mapped, or in a device's memory. */
static gshmem_status_t copy_here(const struct context *c, enum stats_kind kind,
                                 const struct location *t, void *to, const void *from,
                                 size_t bytes)
{
    gshmem_status_t status = GSHMEM_OK;

    if (t->way == WAY_DEVICE)
        status = device_heap_copy(job->device_heap, to, from, bytes);
    else if (bytes)
        gshmem_copy(to, from, bytes);
    if (!status)
        context_note_copied(c, kind == STATS_PUT ? TRACE_PUT : TRACE_GET, kind, t, bytes);
    return status;
}

__attribute__((noinline)) static gshmem_status_t
put_anywhere(struct context *c, void *dest, const void *source, size_t bytes, int pe, bool nbi)
{
    struct location t;
    gshmem_status_t status = context_resolve(c, dest, bytes, pe, "put", &t);

    if (status || (status = rma_check_own(source, bytes, "put")))
        return status;
    if (GSHMEM_UNLIKELY(job->races != NULL))
        races_put(nbi ? "put_nbi" : "put", dest, source, bytes, t.pe, nbi);
    if (t.way == WAY_NETWORK)
        return put_remote(c, &t, source, bytes, nbi, "put");
    return copy_here(c, STATS_PUT, &t, t.at, source, bytes);
}

__attribute__((noinline)) static gshmem_status_t
put_of_any_kind(gshmem_ctx_t ctx, void *dest, const void *source, size_t bytes, int pe, bool nbi)
{
    struct context *c;
    uint64_t offset;
    int world;

    if (open_batch_share_put(context_batch(ctx, pe), dest, source, bytes))
        return GSHMEM_OK;
    if (!(c = context_find(ctx, "put")) || rma_check_local(source, bytes, "source", "put"))
        return last_error_status();
    if ((nbi || bytes <= TRANSPORT_COPIED) &&
        context_is_remote_heap(c, dest, bytes, pe, &world, &offset)) {
        if (network_opens_batches(job->network) && open_batch_takes_put(source, offset, bytes))
            return open_batch_put(c->pending, world, SEGMENT_HEAP, offset, source, bytes, "put");
        return network_put_to_heap(c->pending, world, offset, source, bytes);
    }
    return put_anywhere(c, dest, source, bytes, pe, nbi);
}

/* The common case of a small put into the heap of another node is one while a batch is open, and
 * nothing here is a call. */
gshmem_status_t gshmem_path_put(gshmem_ctx_t ctx, void *dest, const void *source, size_t bytes,
                                int pe, int nbi)
{
    if (open_batch_add_put(context_batch(ctx, pe), dest, source, bytes))
        return GSHMEM_OK;
    return put_of_any_kind(ctx, dest, source, bytes, pe, nbi);
}

gshmem_status_t gshmem_path_get(gshmem_ctx_t ctx, void *dest, const void *source, size_t bytes,
                                int pe, int nbi)
{
    struct context *c = context_find(ctx, "get");
    struct location t;
    gshmem_status_t status;

    if (!c || rma_check_local(dest, bytes, "dest", "get") ||
        (status = context_resolve(c, source, bytes, pe, "get", &t)) ||
        (status = rma_check_own(dest, bytes, "get")))
        return last_error_status();
    if (GSHMEM_UNLIKELY(job->races != NULL))
        races_get(nbi ? "get_nbi" : "get", dest, source, bytes, t.pe, nbi);
    if (t.way == WAY_NETWORK)
        return get_remote(c, &t, dest, bytes, nbi, "get");
    return copy_here(c, STATS_GET, &t, dest, t.at, bytes);
}

/* ---- Strided ---- */

/* Blocks of `run` bytes, to_step and from_step bytes apart. The common sizes are loops of single
 * moves; a call for each element would cost several times as much as the move. */
static void copy_blocks(char *to, const char *from, size_t to_step, size_t from_step, size_t run,
                        size_t n)
{
    switch (run) {
    case 4:
        for (size_t i = 0; i < n; i++)
            memcpy(to + i * to_step, from + i * from_step, 4);
        break;
    case 8:
        for (size_t i = 0; i < n; i++)
            memcpy(to + i * to_step, from + i * from_step, 8);
        break;
    default:
        for (size_t i = 0; i < n; i++)
            memcpy(to + i * to_step, from + i * from_step, run);
    }
}

static gshmem_status_t check_strides(const char *call, ptrdiff_t dst, ptrdiff_t sst, size_t block,
                                     size_t element, size_t n, struct gshmem_strided *s)
{
    switch (gshmem_strided_check(dst, sst, block, element, n, s)) {
    case GSHMEM_STRIDED_SMALL:
        return fail(GSHMEM_ERR_ARGUMENT,
                    "%s: strides are %td and %td elements; they must be at least %zu, the block",
                    call, dst, sst, block);
    case GSHMEM_STRIDED_LARGE:
        return fail(
            GSHMEM_ERR_ARGUMENT,
            "%s: %zu blocks of %zu elements of %zu B with strides %td and %td exceed memory", call,
            n, block, element, dst, sst);
    case GSHMEM_STRIDED_GOOD:
        break;
    }
    return GSHMEM_OK;
}

/* To or from the location, which is mapped, or in a device's memory. */
static gshmem_status_t move_blocks(const struct location *t, char *to, const char *from,
                                   const struct gshmem_strided *s, size_t n)
{
    gshmem_status_t status = GSHMEM_OK;

    if (t->way != WAY_DEVICE)
        copy_blocks(to, from, s->to_step, s->from_step, s->run, n);
    for (size_t i = 0; t->way == WAY_DEVICE && i < n && !status; i++)
        status = device_heap_copy(job->device_heap, to + i * s->to_step, from + i * s->from_step,
                                  s->run);
    return status;
}

/* Block by block. Blocks that the transport copies are sent together. */
static gshmem_status_t put_blocks_remote(struct context *c, struct location t, const char *source,
                                       const struct gshmem_strided *s, size_t n, const char *call)
{
    gshmem_status_t status = GSHMEM_OK;

    for (size_t i = 0; i < n && !status; i++) {
        status = put_remote(c, &t, source, s->run, false, call);
        t.offset += s->to_step;
        source += s->from_step;
    }
    return status;
}

/* Requests all blocks, then waits for all of them, also when a request failed half-way. */
static gshmem_status_t get_blocks_remote(struct location t, char *dest,
                                         const struct gshmem_strided *s, size_t n,
                                         const char *call)
{
    struct pending *pending = network_errands_begin(job->network, call);
    gshmem_status_t status = GSHMEM_OK;

    if (!pending)
        return GSHMEM_ERR_MEMORY;
    for (size_t i = 0; i < n && !status; i++) {
        status = post_get(pending, &t, dest, s->run, call);
        t.offset += s->from_step;
        dest += s->to_step;
    }
    return network_errands_end(job->network, pending, status, call);
}

static gshmem_status_t rma_put_strided(const char *call, gshmem_ctx_t ctx, void *dest,
                                       const void *source, ptrdiff_t dst, ptrdiff_t sst,
                                       size_t block, size_t element, size_t n, int pe)
{
    struct context *c = context_find(ctx, call);
    struct gshmem_strided s = {.to_span = 0};
    gshmem_status_t status = GSHMEM_OK;
    struct location t;

    if (!c)
        return last_error_status();
    if (n && block)
        status = check_strides(call, dst, sst, block, element, n, &s);
    if (!status)
        status = rma_check_local(source, s.from_span, "source", call);
    if (!status)
        status = context_resolve(c, dest, s.to_span, pe, call, &t);
    if (!status)
        status = rma_check_own(source, s.from_span, call);
    if (status || !s.run)
        return status;
    for (size_t i = 0; GSHMEM_UNLIKELY(job->races != NULL) && i < n; i++)
        races_put(call, (char *)dest + i * s.to_step, (const char *)source + i * s.from_step,
                  s.run, t.pe, false);
    if (t.way == WAY_NETWORK)
        return put_blocks_remote(c, t, source, &s, n, call);
    if (!(status = move_blocks(&t, t.at, source, &s, n)))
        context_note_copied(c, TRACE_PUT, STATS_PUT, &t, s.run * n);
    return status;
}

static gshmem_status_t get_strided(const char *call, gshmem_ctx_t ctx, void *dest,
                                   const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t block,
                                   size_t element, size_t n, int pe)
{
    struct context *c = context_find(ctx, call);
    struct gshmem_strided s = {.to_span = 0};
    gshmem_status_t status = GSHMEM_OK;
    struct location t;

    if (!c)
        return last_error_status();
    if (n && block)
        status = check_strides(call, dst, sst, block, element, n, &s);
    if (!status)
        status = rma_check_local(dest, s.to_span, "dest", call);
    if (!status)
        status = context_resolve(c, source, s.from_span, pe, call, &t);
    if (!status)
        status = rma_check_own(dest, s.to_span, call);
    if (status || !s.run)
        return status;
    for (size_t i = 0; GSHMEM_UNLIKELY(job->races != NULL) && i < n; i++)
        races_get(call, (char *)dest + i * s.to_step, (const char *)source + i * s.from_step,
                  s.run, t.pe, false);
    if (t.way == WAY_NETWORK)
        return get_blocks_remote(t, dest, &s, n, call);
    if (!(status = move_blocks(&t, dest, t.at, &s, n)))
        context_note_copied(c, TRACE_GET, STATS_GET, &t, s.run * n);
    return status;
}

gshmem_status_t gshmem_ctx_iputmem(gshmem_ctx_t ctx, void *dest, const void *source, ptrdiff_t dst,
                                   ptrdiff_t sst, size_t element, size_t n, int pe)
{
    return rma_put_strided("iput", ctx, dest, source, dst, sst, 1, element, n, pe);
}

gshmem_status_t gshmem_ctx_igetmem(gshmem_ctx_t ctx, void *dest, const void *source, ptrdiff_t dst,
                                   ptrdiff_t sst, size_t element, size_t n, int pe)
{
    return get_strided("iget", ctx, dest, source, dst, sst, 1, element, n, pe);
}

gshmem_status_t gshmem_ctx_ibputmem(gshmem_ctx_t ctx, void *dest, const void *source, ptrdiff_t dst,
                                    ptrdiff_t sst, size_t block, size_t element, size_t n, int pe)
{
    return rma_put_strided("ibput", ctx, dest, source, dst, sst, block, element, n, pe);
}

gshmem_status_t gshmem_ctx_ibgetmem(gshmem_ctx_t ctx, void *dest, const void *source, ptrdiff_t dst,
                                    ptrdiff_t sst, size_t block, size_t element, size_t n, int pe)
{
    return get_strided("ibget", ctx, dest, source, dst, sst, block, element, n, pe);
}

/* ---- Signals ---- */

static gshmem_status_t resolve_signal(struct context *c, uint64_t *sig_addr, int signal_op, int pe,
                                      const char *call, struct location *t)
{
    if (signal_op != GSHMEM_SIGNAL_SET && signal_op != GSHMEM_SIGNAL_ADD)
        return fail(GSHMEM_ERR_ARGUMENT,
                    "%s: signal_op is %d; it is GSHMEM_SIGNAL_SET or GSHMEM_SIGNAL_ADD", call,
                    signal_op);
    if ((uintptr_t)sig_addr % sizeof *sig_addr)
        return fail(GSHMEM_ERR_ARGUMENT, "%s: sig_addr %p is not aligned to 8 bytes", call,
                    (void *)sig_addr);
    return context_resolve(c, sig_addr, sizeof *sig_addr, pe, call, t);
}

/* release: pairs with the acquire in gshmem_signal_fetch and the waits: a PE that sees the signal
 * sees the data */
static void update_signal_mapped(uint64_t *there, uint64_t signal, int signal_op)
{
    if (signal_op == GSHMEM_SIGNAL_SET)
        __atomic_store_n(there, signal, __ATOMIC_RELEASE);
    else
        __atomic_fetch_add(there, signal, __ATOMIC_RELEASE);
}

/* A copy of 8 bytes sets a signal in GPU memory; the GPU makes additions. */
static gshmem_status_t update_signal_by_device(const struct location *flag, uint64_t signal,
                                               int signal_op)
{
    if (signal_op == GSHMEM_SIGNAL_ADD)
        return context_update_device(flag, GSHMEM_AMO_ADD, GSHMEM_TYPE_UINT64, signal, 0, NULL);
    return device_heap_copy(job->device_heap, flag->at, &signal, sizeof signal);
}

/* A signal of a PE of this node: its data is in place before the NIC gets the request for the
 * signal, and the request is complete on return, as fences expect of such PEs. */
static gshmem_status_t update_signal_by_nic(const struct location *flag, uint64_t signal,
                                            int signal_op, const char *call)
{
    struct transport_request request = {
        .kind = TRANSPORT_ATOMIC,
        .pe = flag->pe,
        .segment = flag->segment,
        .offset = flag->offset,
        .amo = signal_op == GSHMEM_SIGNAL_ADD ? GSHMEM_AMO_ADD : GSHMEM_AMO_SET,
        .type = GSHMEM_TYPE_UINT64,
        .operand = signal,
    };

    /* pairs with the acquire in gshmem_signal_fetch and the waits */
    __atomic_thread_fence(__ATOMIC_RELEASE);
    return network_errand(job->network, &request, call, NULL);
}

/* A signal of a PE that is reached without the network, once its data is in place. The agent of the
 * object's atomicity domain makes the update. */
static gshmem_status_t update_signal(const struct context *c, const struct location *flag,
                                     uint64_t signal, int signal_op, const char *call)
{
    gshmem_status_t status;

    switch ((enum atomicity)flag->atomicity) {
    case ATOMICITY_GPU:
        if (!(status = update_signal_by_device(flag, signal, signal_op)))
            context_note_copied(c, TRACE_SIGNAL, STATS_SIGNAL, flag, sizeof signal);
        return status;
    case ATOMICITY_NIC:
        return update_signal_by_nic(flag, signal, signal_op, call);
    case ATOMICITY_CPU:
        break;
    }
    context_note_copied(c, TRACE_SIGNAL, STATS_SIGNAL, flag, sizeof signal);
    update_signal_mapped(flag->at, signal, signal_op);
    return GSHMEM_OK;
}

/* One request for both: the transport keeps the signal behind the data. */
static gshmem_status_t put_signal_remote(struct context *c, const struct location *data,
                                       const struct location *signal, const void *source,
                                       size_t bytes, uint64_t value, int signal_op, bool nbi,
                                       const char *call)
{
    struct transport_request request = {
        .kind = TRANSPORT_PUT,
        .flags = TRANSPORT_LOOSE | (nbi ? TRANSPORT_MORE : 0),
        .pe = data->pe,
        .segment = data->segment,
        .offset = data->offset,
        .local = (void *)source,
        .bytes = bytes,
        .signal_op = signal_op,
        .signal_segment = signal->segment,
        .signal_offset = signal->offset,
        .signal_value = value,
    };

    return rma_send_put(c, &request, nbi, call);
}

static gshmem_status_t rma_put_signal(gshmem_ctx_t ctx, void *dest, const void *source,
                                      size_t bytes, uint64_t *sig_addr, uint64_t signal,
                                      int signal_op, int pe, bool nbi, const char *call)
{
    struct context *c = context_find(ctx, call);
    struct location data, flag;
    gshmem_status_t status;

    if (!c)
        return last_error_status();
    if ((status = resolve_signal(c, sig_addr, signal_op, pe, call, &flag)) ||
        (status = rma_check_local(source, bytes, "source", call)) ||
        (status = rma_check_own(source, bytes, call)))
        return status;
    data = flag; /* there is no data */
    if (bytes && (status = context_resolve(c, dest, bytes, pe, call, &data)))
        return status;
    if (GSHMEM_UNLIKELY(job->races != NULL)) {
        if (bytes)
            races_put_signalled(call, dest, source, bytes, data.pe, nbi);
        races_atomic(call, GSHMEM_AMO_ADD, sig_addr, sizeof *sig_addr, flag.pe, false);
    }
    /* A PE of another node may have GPU memory that is mapped here, and host memory that is not.
     * Then the data is in place before the signal is sent. In all other cases the signal is sent
     * the same way as the data. */
    if (data.way == WAY_DEVICE && flag.way == WAY_NETWORK) {
        if (bytes && (status = copy_here(c, STATS_PUT, &data, data.at, source, bytes)))
            return status;
        return put_signal_remote(c, &flag, &flag, NULL, 0, signal, signal_op, nbi, call);
    }
    if (data.way == WAY_NETWORK || flag.way == WAY_NETWORK)
        return put_signal_remote(c, &data, &flag, source, bytes, signal, signal_op, nbi, call);
    if (bytes && (status = copy_here(c, STATS_PUT, &data, data.at, source, bytes)))
        return status;
    return update_signal(c, &flag, signal, signal_op, call);
}

gshmem_status_t gshmem_ctx_putmem_signal(gshmem_ctx_t ctx, void *dest, const void *source,
                                         size_t bytes, uint64_t *sig_addr, uint64_t signal,
                                         int signal_op, int pe)
{
    return rma_put_signal(ctx, dest, source, bytes, sig_addr, signal, signal_op, pe, false,
                          "put_signal");
}

gshmem_status_t gshmem_ctx_putmem_signal_nbi(gshmem_ctx_t ctx, void *dest, const void *source,
                                             size_t bytes, uint64_t *sig_addr, uint64_t signal,
                                             int signal_op, int pe)
{
    return rma_put_signal(ctx, dest, source, bytes, sig_addr, signal, signal_op, pe, true,
                          "put_signal_nbi");
}

/* A signal by itself is a put with signal without data. */
gshmem_status_t gshmem_ctx_signal_add(gshmem_ctx_t ctx, uint64_t *sig_addr, uint64_t signal, int pe)
{
    return rma_put_signal(ctx, sig_addr, NULL, 0, sig_addr, signal, GSHMEM_SIGNAL_ADD, pe, true,
                          "signal_add");
}

gshmem_status_t gshmem_ctx_signal_set(gshmem_ctx_t ctx, uint64_t *sig_addr, uint64_t signal, int pe)
{
    return rma_put_signal(ctx, sig_addr, NULL, 0, sig_addr, signal, GSHMEM_SIGNAL_SET, pe, true,
                          "signal_set");
}

gshmem_status_t gshmem_signal_op(uint64_t *sig_addr, uint64_t signal, int signal_op, int pe)
{
    return rma_put_signal(GSHMEM_CTX_DEFAULT, sig_addr, NULL, 0, sig_addr, signal, signal_op, pe,
                          true, "signal_op");
}
