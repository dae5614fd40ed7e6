/* Atomics, out of line: the cases that inline code does not cover. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "gshmem.h"
#include "runtime/base/atomic_name.h"
#include "runtime/base/atomic_type.h"
#include "runtime/base/log.h"
#include "runtime/job/job.h"
#include "runtime/memory/device_heap.h"
#include "runtime/memory/map.h"
#include "runtime/network/network.h"
#include "runtime/network/open_batches.h"
#include "runtime/races/races.h"
#include "runtime/teams/context.h"

/* The target's proxy applies it, with the same CPU atomics as the PEs that have the object mapped;
 * or the target's NIC, which then makes the updates of all PEs. */
static struct transport_request atomic_request(const struct location *t, enum gshmem_amo op,
                                               int type, uint64_t operand, uint64_t compare)
{
    return (struct transport_request){
        .kind = TRANSPORT_ATOMIC,
        .pe = t->pe,
        .segment = t->segment,
        .offset = t->offset,
        .amo = op,
        .type = type,
        .operand = operand,
        .compare = compare,
    };
}

/* An update without an old value may be a record of an open batch. */
static inline bool atomic_joins_batch(struct context *c, int pe, int segment, uint64_t offset,
                                      enum gshmem_amo op, int type, uint64_t operand, size_t bytes)
{
    const union batch_kind kind = batch_kind_of(TRANSPORT_ATOMIC, (unsigned)segment, op,
                                                (unsigned)type, offset, bytes);

    return open_batch_add(c->pending, pe, kind, offset, &operand, bytes);
}

static gshmem_status_t apply_remote(struct context *c, const struct location *t, enum gshmem_amo op,
                                    int type, uint64_t operand, uint64_t compare, uint64_t *old)
{
    const size_t bytes = atomic_type_bytes(type);
    const bool small = !old && t->way == WAY_NETWORK && t->atomicity == ATOMICITY_CPU &&
                       op != GSHMEM_AMO_COMPARE_SWAP && network_opens_batches(job->network) &&
                       open_batch_takes(t->offset, bytes);

    if (small && atomic_joins_batch(c, t->pe, t->segment, t->offset, op, type, operand, bytes))
        return GSHMEM_OK;
    struct transport_request request = atomic_request(t, op, type, operand, compare);

    /* PEs of this node also reach the object by mapped operations. Fences order those without
     * waiting for the network, so what the NIC does for a PE of this node must be complete on
     * return. */
    if (old || t->way == WAY_MAPPED)
        return network_errand(job->network, &request, atomic_names[op], old);
    request.flags = TRANSPORT_MORE | TRANSPORT_LOOSE;
    return small ? open_batch_post(job->network, c->pending, &request, atomic_names[op])
                 : network_post(job->network, c->pending, &request, atomic_names[op]);
}

/* On GPU memory: a copy of an aligned object of 4 or 8 bytes is never torn, and the GPU makes all
 * other updates. The CPU's own atomics would be another agent's beside the GPU's, and an update
 * could be lost. */
static gshmem_status_t device_apply(const struct location *t, enum gshmem_amo op, int type,
                                    uint64_t operand, uint64_t compare, uint64_t *old)
{
    size_t bytes = atomic_type_bytes(type);
    gshmem_status_t status;
    uint64_t was = 0;

    if (op == GSHMEM_AMO_SET && !old)
        return device_heap_copy(job->device_heap, t->at, &operand, bytes);
    if (op != GSHMEM_AMO_FETCH)
        return context_update_device(t, op, type, operand, compare, old);
    if (!(status = device_heap_copy(job->device_heap, &was, t->at, bytes)) && old)
        *old = was;
    return status;
}

static void note_atomic(const struct context *c, const struct location *t, int type, bool fetches)
{
    context_note_copied(c, TRACE_ATOMIC, fetches ? STATS_FETCH : STATS_ATOMIC, t,
                        atomic_type_bytes(type));
}

static gshmem_status_t apply_mapped(const struct context *c, const struct location *t,
                                    enum gshmem_amo op, int type, uint64_t operand,
                                    uint64_t compare, uint64_t *old)
{
    note_atomic(c, t, type, old != NULL);
    const uint64_t was = atomic_apply(op, type, t->at, operand, compare);

    if (old)
        *old = was;
    return GSHMEM_OK;
}

static gshmem_status_t apply_by_device(const struct context *c, const struct location *t,
                                       enum gshmem_amo op, int type, uint64_t operand,
                                       uint64_t compare, uint64_t *old)
{
    const gshmem_status_t status = device_apply(t, op, type, operand, compare, old);

    if (!status)
        note_atomic(c, t, type, old != NULL);
    return status;
}

/* The agent of the object's atomicity domain makes the update. Any PE may read the object. */
static inline gshmem_status_t operations_atomic_apply(struct context *c, const struct location *t,
                                                      enum gshmem_amo op, int type,
                                                      uint64_t operand, uint64_t compare,
                                                      uint64_t *old)
{
    const bool remote = t->way == WAY_NETWORK;

    switch ((enum atomicity)t->atomicity) {
    case ATOMICITY_GPU:
        return remote ? apply_remote(c, t, op, type, operand, compare, old)
                      : apply_by_device(c, t, op, type, operand, compare, old);
    case ATOMICITY_NIC:
        return remote || op != GSHMEM_AMO_FETCH
                   ? apply_remote(c, t, op, type, operand, compare, old)
                   : apply_mapped(c, t, op, type, operand, compare, old);
    case ATOMICITY_CPU:
        break;
    }
    return remote ? apply_remote(c, t, op, type, operand, compare, old)
                  : apply_mapped(c, t, op, type, operand, compare, old);
}

/* ---- The calls ---- */

/* Finds the context, and the object on that PE. */
static inline gshmem_status_t atomic_begin(gshmem_ctx_t ctx, enum gshmem_amo op, int type,
                                           void *target, int pe, struct context **c,
                                           struct location *there)
{
    const size_t bytes = atomic_type_bytes(type);

    if ((unsigned)op >= GSHMEM_AMO_COUNT || bytes == 0)
        return fail(GSHMEM_ERR_ARGUMENT, "atomic operation %d on type %d does not exist", (int)op,
                    type);
    if ((uintptr_t)target % bytes)
        return fail(GSHMEM_ERR_ARGUMENT, "%s: %p is not aligned to its %zu bytes", atomic_names[op],
                    target, bytes);
    if (!(*c = context_find(ctx, atomic_names[op])))
        return last_error_status();
    return context_resolve(*c, target, bytes, pe, atomic_names[op], there);
}

/* GSHMEM_CHECK=races. */
static gshmem_status_t atomic_followed(struct context *c, const struct location *there,
                                       enum gshmem_amo op, int type, uint64_t operand,
                                       uint64_t compare, const void *target, uint64_t *old)
{
    const size_t bytes = atomic_type_bytes(type);
    gshmem_status_t status;

    races_atomic(atomic_names[op], op, target, bytes, there->pe, old != NULL);
    status = operations_atomic_apply(c, there, op, type, operand, compare, old);
    if (old && !status)
        races_see(target, bytes, there->pe);
    return status;
}

__attribute__((noinline)) static gshmem_status_t
atomic_of_any_kind(gshmem_ctx_t ctx, enum gshmem_amo op, int type, void *target, uint64_t operand,
                   uint64_t compare, uint64_t *old, int pe)
{
    struct location there;
    struct context *c = NULL;
    gshmem_status_t status = atomic_begin(ctx, op, type, target, pe, &c, &there);

    if (status)
        return status;
    if (GSHMEM_UNLIKELY(job->races != NULL))
        return atomic_followed(c, &there, op, type, operand, compare, target, old);
    return operations_atomic_apply(c, &there, op, type, operand, compare, old);
}

__attribute__((noinline)) static gshmem_status_t update_of_any_kind(gshmem_ctx_t ctx,
                                                                    enum gshmem_amo op, int type,
                                                                    void *target, uint64_t operand,
                                                                    int pe)
{
    if (open_batch_share_update(context_batch(ctx, pe), op, type, target, operand))
        return GSHMEM_OK;
    return atomic_of_any_kind(ctx, op, type, target, operand, 0, NULL, pe);
}

/* The common case of an update of an object in the heap of another node: a batch is open. Nothing
 * here is a call, and all arguments stay in registers. */
__attribute__((noinline)) static gshmem_status_t atomic_update(gshmem_ctx_t ctx, enum gshmem_amo op,
                                                               int type, void *target,
                                                               uint64_t operand, int pe)
{
    if (GSHMEM_LIKELY(open_batch_add_update(context_batch(ctx, pe), op, type, target, operand)))
        return GSHMEM_OK;
    return update_of_any_kind(ctx, op, type, target, operand, pe);
}

gshmem_status_t gshmem_path_atomic(gshmem_ctx_t ctx, enum gshmem_amo op, int type, void *target,
                                   uint64_t operand, uint64_t compare, uint64_t *old, int pe)
{
    if (old || op == GSHMEM_AMO_COMPARE_SWAP)
        return atomic_of_any_kind(ctx, op, type, target, operand, compare, old, pe);
    return atomic_update(ctx, op, type, target, operand, pe);
}

/* ---- Old values that come later ---- */

/* Transports store 8 bytes, and an object of 4 has no room for them. */
struct fetched {
    struct landing landing; /* first */
    uint64_t old;
    void *fetch;
};

static void store_half(void *fetch, uint64_t old)
{
    const uint32_t low = (uint32_t)old;

    memcpy(fetch, &low, sizeof low);
}

static void fetched_landed(struct landing *l, gshmem_status_t status)
{
    struct fetched *f = (struct fetched *)l;

    if (!status)
        store_half(f->fetch, f->old);
    free(f);
}

static gshmem_status_t fetch_half(struct context *c, struct transport_request *request, void *fetch)
{
    struct fetched *f = malloc(sizeof *f);
    gshmem_status_t status;

    if (!f)
        return fail(GSHMEM_ERR_MEMORY, "%s: out of memory for a request in flight",
                    atomic_names[request->amo]);
    *f = (struct fetched){.landing = {fetched_landed}, .fetch = fetch};
    request->old = &f->old;
    if ((status = network_post_landing(job->network, c->pending, request, &f->landing,
                                       atomic_names[request->amo])))
        free(f);
    return status;
}

gshmem_status_t gshmem_path_atomic_fetch(gshmem_ctx_t ctx, enum gshmem_amo op, int type,
                                         void *target, uint64_t operand, uint64_t compare,
                                         void *fetch, int pe)
{
    struct location there;
    struct context *c = NULL;
    gshmem_status_t status;
    uint64_t old = 0;

    if (!fetch)
        return fail(GSHMEM_ERR_ARGUMENT, "%s%s_nbi with PE %d at %p: fetch is NULL",
                    op < GSHMEM_AMO_ADD ? "atomic_" : "atomic_fetch_",
                    atomic_name(op) + strlen("atomic_"), pe, target);
    if ((status = atomic_begin(ctx, op, type, target, pe, &c, &there)))
        return status;
    if (GSHMEM_UNLIKELY(job->races != NULL)) {
        races_atomic(atomic_names[op], op, target, atomic_type_bytes(type), there.pe, false);
        races_see_later(target, atomic_type_bytes(type), there.pe);
    }
    const bool half = atomic_type_bytes(type) == 4;
    if (there.way == WAY_NETWORK) {
        struct transport_request request = atomic_request(&there, op, type, operand, compare);
        request.flags = TRANSPORT_MORE | TRANSPORT_LOOSE;
        request.old = fetch;
        return half ? fetch_half(c, &request, fetch)
                    : network_post(job->network, c->pending, &request, atomic_names[op]);
    }
    if ((status = operations_atomic_apply(c, &there, op, type, operand, compare, &old)))
        return status;
    if (half)
        store_half(fetch, old);
    else
        memcpy(fetch, &old, sizeof old);
    return GSHMEM_OK;
}
