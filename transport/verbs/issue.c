/* From operations to work requests: what a link's queue pairs are given, and when.
 *
 * A put is a write, a get is a read. What a NIC must not do, since CPUs do it to the same memory
 * (atomics, signals that are added), goes to the target as a message. signals.c has what becomes of
 * signals.
 *
 * Order (order.h): a small put does not wait for messages before its fence, but becomes a message
 * itself. */
#include <string.h>

#include "gshmem/rma.h"
#include "transport/verbs/atomics.h"
#include "transport/verbs/batches.h"
#include "transport/verbs/coalesce.h"
#include "transport/verbs/coalesced.h"
#include "transport/verbs/issue.h"
#include "transport/verbs/ops.h"
#include "transport/verbs/order.h"
#include "transport/verbs/peer.h"
#include "transport/verbs/post.h"
#include "transport/verbs/send.h"
#include "transport/verbs/signals.h"
#include "transport/verbs/staged.h"
#include "transport/verbs/stripes.h"
#include "transport/verbs/verbs.h"

/* ---- Messages ---- */

static bool issue_send_atomic(struct verbs *v, struct link *l, struct op *op)
{
    const struct transport_request *r = &op->request;
    struct message m = {.kind = MESSAGE_ATOMIC,
                        .segment = (uint8_t)r->segment,
                        .offset = r->offset,
                        .amo = (uint8_t)r->amo,
                        .type = (uint8_t)r->type,
                        .signal_op = r->old != NULL,
                        .a = r->operand,
                        .b = r->compare};

    return send_update(v, l, op, &m);
}

/* ---- Requests ---- */

/* The signal of a staged put: the target gives it behind the data; one that the target's NIC gives
 * waits for the data's replies. */
static bool issue_signal_behind_chunks(struct verbs *v, struct link *l, struct op *op)
{
    if (!op->request.signal_op || op->failure)
        return true;
    if (!atomics_have(v, &op->request))
        return signals_send_put(v, l, op, false);
    return !op->chunks && atomics_issue(v, l, op);
}

/* Small data, by a message, before a signal that only a NIC gives; true: the data is in its
 * place. */
static bool issue_data_before_signal(struct verbs *v, struct link *l, struct op *op)
{
    if (!op->wants_reply && !signals_send_put(v, l, op, true))
        return false;
    v->held_back = true;
    return !is_after(op->number, l->messages.replied);
}

/* Checked before the data leaves, which the target's CPU does not see: so neither is stored. */
static bool issue_signal_is_invalid(const struct link *l, const struct transport_request *r)
{
    if (!r->signal_op)
        return false;
    const uint64_t all = l->peer.bytes[r->signal_segment];
    return all < 8 || r->signal_offset > all - 8 ||
           (l->peer.base[r->signal_segment] + r->signal_offset) % 8;
}

static bool issue_put(struct verbs *v, struct link *l, struct op *op)
{
    const struct transport_request *r = &op->request;
    const bool iwarp = l->active[0]->nic->iwarp, by_nic = atomics_have(v, r);
    const bool staged = staged_is_remote(v, l, r->segment),
               adds = iwarp || staged || signals_are_messages(v, l, r);

    if (issue_signal_is_invalid(l, r)) {
        op->failure = v->config.fail(GSHMEM_ERR_ARGUMENT,
                                     "verbs: a signal to PE %d lies outside its symmetric memory, "
                                     "or is not aligned",
                                     l->pe);
        return true;
    }
    if (op->staged || staged_is_needed(v, l, op))
        return staged_issue(v, l, op) && issue_signal_behind_chunks(v, l, op);
    if (by_nic && staged && r->bytes)
        return issue_data_before_signal(v, l, op) && atomics_issue(v, l, op);
    if (!by_nic && op->at == 0 && r->bytes <= MESSAGE_DATA &&
        ((adds && !signals_may_wait(v, l, op)) || order_has_unapplied(l) ||
         order_waits_for_writes(l)))
        return signals_send_put(v, l, op, true);
    if (op->at == 0 && order_has_unapplied(l))
        return false;
    if (!stripes_issue(v, l, op) || op->failure)
        return op->failure != GSHMEM_OK;
    if (iwarp) /* only a message behind a write of iWARP shows that the write has arrived */
        return signals_send_put(v, l, op, false);
    return !r->signal_op || signals_issue(v, l, op);
}

/* As order_fence, but signals that wait for others go first. */
static bool issue_fence(struct verbs *v, struct link *l, struct op *op)
{
    if (order_fence(l, op))
        return true;
    if (l->signals.waiting == 0)
        return false;
    signals_send_held(v, l);
    return order_fence(l, op);
}

/* A signal that does not wait itself overtakes none that does: the value that is set last stays.
 * False: not now. */
static bool issue_held_before(struct verbs *v, struct link *l, const struct op *op)
{
    if (l->signals.waiting == 0 ||
        (op->coalesced ? !op->coalesced->signals
                       : op->request.kind != TRANSPORT_PUT || !op->request.signal_op ||
                             signals_may_wait(v, l, op)))
        return true;
    signals_send_held(v, l);
    return l->signals.waiting == 0 && l->state == LINK_ACTIVE;
}

static bool issue_one(struct verbs *v, struct link *l, struct op *op)
{
    if (op->coalesced && coalesce_waits(v, l, op))
        return false;
    if (!issue_fence(v, l, op) || !issue_held_before(v, l, op))
        return false;
    if (op->coalesced)
        return coalesce_issue(v, l, op);
    switch (op->request.kind) {
    case TRANSPORT_PUT:
        return issue_put(v, l, op);
    case TRANSPORT_BATCH:
        return batches_issue(v, l, op);
    case TRANSPORT_GET:
        if (op->staged || staged_is_needed(v, l, op))
            return staged_issue(v, l, op);
        return (op->at || !order_has_unapplied(l)) && stripes_issue(v, l, op);
    default:
        if (!atomics_have(v, &op->request))
            return issue_send_atomic(v, l, op);
        return !order_has_unapplied(l) && atomics_issue(v, l, op);
    }
}

void issue_more(struct verbs *v, struct link *l)
{
    if (signals_are_due(l))
        signals_send_held(v, l);
    while (l->state == LINK_ACTIVE && l->issuing != l->posted) {
        struct op *op = op_of(l, l->issuing);
        if (!op->issued && !issue_one(v, l, op))
            break;
        op->issued = true;
        l->issuing++;
        if (!op->used) /* no completion of a work request will end it */
            v->held_back = true;
        if (signals_are_full(l))
            signals_send_held(v, l);
    }
}
