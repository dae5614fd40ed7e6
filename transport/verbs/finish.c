/* When operations are done, and what is done for them then. */

#include "transport/verbs/atomics.h"
#include "transport/verbs/coalesced.h"
#include "transport/verbs/finish.h"
#include "transport/verbs/gpu.h"
#include "transport/verbs/ops.h"
#include "transport/verbs/verbs.h"

static bool finish_is_done(const struct link *l, const struct op *op)
{
    if (op->below != BELOW_NOT || op->parts)
        return op->below == BELOW_DONE;
    if (l->state == LINK_FAILED)
        return true;
    if (!op->issued || op->held || op->chunks ||
        (op->wants_reply && is_after(op->number, l->messages.replied)))
        return false;
    for (unsigned used = op->used; used; used &= used - 1) {
        int i = __builtin_ctz(used);
        if (is_after(op->end[i], l->path[i]->done))
            return false;
    }
    return true;
}

/* Makes a get's data visible. Where a NIC has written it to GPU memory, one flush is enough for all
 * gets that this call of finish_some ends. */
static gshmem_status_t finish_deliver(struct verbs *v, const struct op *op, bool *flushed)
{
    const struct transport_request *r = &op->request;

    if (op->slot >= 0)
        return gpu_deliver(v, r->local, op_data(v, op), r->bytes);
    if (!v->config.flushes || *flushed || v->gpu_below || !gpu_has(v, r->local, r->bytes))
        return GSHMEM_OK;
    gshmem_status_t status = gpu_flush(v);
    *flushed = status == GSHMEM_OK;
    return status;
}

void finish_some(struct verbs *v, struct link *l)
{
    bool flushed = false;

    while (l->done != l->posted && finish_is_done(l, op_of(l, l->done))) {
        struct op *op = op_of(l, l->done);
        gshmem_status_t status =
            l->state == LINK_FAILED && op->below == BELOW_NOT ? l->failure : op->failure;
        void (*done)(void *tag, gshmem_status_t status) = op->request.done;
        void *tag = op->request.tag;
        const uint32_t joined_end = op->joined_end;

        if (!status && op->request.kind == TRANSPORT_GET)
            status = finish_deliver(v, op, &flushed);
        if (!status && op->updates)
            atomics_deliver(l, op);
        if (GSHMEM_UNLIKELY(op_holds(op)))
            op_release(v, op);
        if (GSHMEM_UNLIKELY(status != GSHMEM_OK))
            op_free_holes(op);
        l->alone.id = NONE_ALONE;
        l->coalesce.first += op->coalesced != NULL;
        l->batches.done += op->eager;
        if (l->issuing == l->done)
            l->issuing++;
        l->done++;
        v->events++;
        done(tag, status);
        while (l->coalesce.joined_first != joined_end) {
            const struct joined j = l->coalesce.joined[l->coalesce.joined_first++ % JOINED];
            j.done(j.tag, status);
        }
    }
}
