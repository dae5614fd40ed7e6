/* Atomics, out of line: the cases that inline code does not cover. */
#include <stdbool.h>

#include "gshmem.h"
#include "runtime/base/atomic_name.h"
#include "runtime/base/atomic_type.h"
#include "runtime/base/log.h"
#include "runtime/job/job.h"
#include "runtime/memory/device_heap.h"
#include "runtime/memory/map.h"
#include "runtime/network/network.h"
#include "runtime/teams/context.h"

/* The target's proxy applies it, with the same CPU atomics as the PEs that have the object mapped;
 * or the target's NIC, which then makes the updates of all PEs. */
static gshmem_status_t apply_remote(struct context *c, const struct location *t, enum gshmem_amo op,
                                    int type, uint64_t operand, uint64_t compare, uint64_t *old)
{
    struct transport_request request = {
        .kind = TRANSPORT_ATOMIC,
        .pe = t->pe,
        .segment = t->segment,
        .offset = t->offset,
        .amo = op,
        .type = type,
        .operand = operand,
        .compare = compare,
    };

    /* PEs of this node also reach the object by mapped operations. Fences order those without
     * waiting for the network, so what the NIC does for a PE of this node must be complete on
     * return. */
    if (old || t->way == WAY_MAPPED)
        return network_errand(job->network, &request, atomic_names[op], old);
    request.flags = TRANSPORT_MORE | TRANSPORT_LOOSE;
    return network_post(job->network, c->pending, &request, atomic_names[op]);
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

gshmem_status_t gshmem_path_atomic(gshmem_ctx_t ctx, enum gshmem_amo op, int type, void *target,
                                   uint64_t operand, uint64_t compare, uint64_t *old, int pe)
{
    size_t bytes = atomic_type_bytes(type);
    struct location there;

    if ((unsigned)op >= GSHMEM_AMO_COUNT || bytes == 0)
        return fail(GSHMEM_ERR_ARGUMENT, "atomic operation %d on type %d does not exist", (int)op,
                    type);
    if ((uintptr_t)target % bytes)
        return fail(GSHMEM_ERR_ARGUMENT, "%s: %p is not aligned to its %zu bytes", atomic_names[op],
                    target, bytes);
    struct context *c = context_find(ctx, atomic_names[op]);
    if (!c)
        return last_error_status();
    gshmem_status_t status = context_resolve(c, target, bytes, pe, atomic_names[op], &there);
    return status ? status : operations_atomic_apply(c, &there, op, type, operand, compare, old);
}
