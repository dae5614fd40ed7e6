/* From operations to work requests: what a link's queue pairs are given, and when.
 *
 * A put is a write, a get is a read. What a NIC must not do, since CPUs do it to the same memory
 * (atomics, signals that are added), goes to the target as a message. A signal that is set is a
 * write behind the put's own, on the same queue pair. Where NICs may reorder writes
 * (path.reorders) it is a message too, which the target is given when all before it is in its
 * place.
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
#include "transport/verbs/staged.h"
#include "transport/verbs/stripes.h"
#include "transport/verbs/verbs.h"

/* ---- Messages ---- */

static bool issue_send_put(struct verbs *v, struct link *l, struct op *op, bool data)
{
    const struct transport_request *r = &op->request;
    const bool signals = !atomics_have(v, r); /* else the target's NIC does */
    struct message m = {.kind = MESSAGE_PUT,
                        .segment = (uint8_t)r->segment,
                        .bytes = (uint16_t)(data ? r->bytes : 0),
                        .offset = data ? r->offset : 0,
                        .data = op_data(v, op),
                        .signal_op = (uint8_t)(signals ? r->signal_op : 0),
                        .signal_segment = (uint8_t)r->signal_segment,
                        .a = r->signal_offset,
                        .b = r->signal_value};

    return send_update(v, l, op, &m);
}

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

/* A signal that is set: it is visible after the data, since it is written behind it. */
static bool issue_write_signal(struct verbs *v, struct link *l, struct op *op)
{
    const struct transport_request *r = &op->request;
    struct path *p = l->active[0];
    uint64_t bytes = 8;
    uint32_t key;

    if (!order_allows(l, p) ||
        !peer_find_key(v, l, p, r->signal_segment, r->signal_offset, &bytes, &key))
        return false;
    struct ibv_send_wr *wr = post_next(v, p, WORK_SIGNAL, op_number(l, op), 0, 8);
    if (!wr)
        return false;
    op->value = r->signal_value;
    post_within(p, wr, &op->value, 8);
    wr->opcode = IBV_WR_RDMA_WRITE;
    wr->wr.rdma.remote_addr = l->peer.base[r->signal_segment] + r->signal_offset;
    wr->wr.rdma.rkey = key;
    op_sent_by(op, p);
    return true;
}

/* Whether the target's CPU gives the signal: others update that word too, NICs do not reach it, or
 * they might write it before its data. */
static bool issue_signal_is_message(const struct verbs *v, const struct link *l,
                                    const struct transport_request *r)
{
    return r->signal_op == GSHMEM_SIGNAL_ADD ||
           (r->signal_op && (l->active[0]->reorders || staged_is_remote(v, l, r->signal_segment)));
}

static bool issue_signal(struct verbs *v, struct link *l, struct op *op)
{
    if (atomics_have(v, &op->request))
        return atomics_issue(v, l, op);
    return issue_signal_is_message(v, l, &op->request) ? issue_send_put(v, l, op, false)
                                                       : issue_write_signal(v, l, op);
}

/* Whether data is in flight that the signal might overtake: by other paths than the signal's, or by
 * that one, if it reorders and the signal is no message. */
static bool issue_overtakes_data(const struct verbs *v, const struct link *l, const struct op *op)
{
    const bool by_nic = atomics_have(v, &op->request);
    const struct path *signals = by_nic ? l->updater : l->active[0];

    for (int i = 0; i < l->paths; i++) {
        const struct path *p = l->path[i];
        if (op->used >> i & 1 && (p != signals || (by_nic && p->reorders)) &&
            is_after(op->end[i], p->done))
            return true;
    }
    return false;
}

/* The signal of a staged put: the target gives it behind the data; one that the target's NIC gives
 * waits for the data's replies. */
static bool issue_signal_behind_chunks(struct verbs *v, struct link *l, struct op *op)
{
    if (!op->request.signal_op || op->failure)
        return true;
    if (!atomics_have(v, &op->request))
        return issue_send_put(v, l, op, false);
    return !op->chunks && atomics_issue(v, l, op);
}

/* Small data, by a message, before a signal that only a NIC gives; true: the data is in its
 * place. */
static bool issue_data_before_signal(struct verbs *v, struct link *l, struct op *op)
{
    if (!op->wants_reply && !issue_send_put(v, l, op, true))
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
               adds = iwarp || staged || issue_signal_is_message(v, l, r);

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
        (adds || order_has_unapplied(l) || order_waits_for_writes(l)))
        return issue_send_put(v, l, op, true);
    if (op->at == 0 && order_has_unapplied(l))
        return false;
    if (!stripes_issue(v, l, op) || op->failure)
        return op->failure != GSHMEM_OK;
    if (iwarp) /* only a message behind a write of iWARP shows that the write has arrived */
        return issue_send_put(v, l, op, false);
    if (!r->signal_op)
        return true;
    if (!issue_overtakes_data(v, l, op))
        return issue_signal(v, l, op);
    op->held = true;
    l->held++;
    return true;
}

static bool issue_one(struct verbs *v, struct link *l, struct op *op)
{
    if (op->coalesced && coalesce_waits(v, l, op))
        return false;
    if (!order_fence(l, op))
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

/* Signals that waited for stripes, and updates that are tried again. */
static void issue_send_held(struct verbs *v, struct link *l)
{
    for (uint32_t i = l->done; i != l->issuing && l->held && l->state == LINK_ACTIVE; i++) {
        struct op *op = op_of(l, i);
        if (!op->held || op->updates || issue_overtakes_data(v, l, op))
            continue;
        op->held = false;
        l->held--;
        if (issue_signal(v, l, op))
            continue;
        op->held = true;
        l->held++;
        return;
    }
}

void issue_more(struct verbs *v, struct link *l)
{
    if (l->held)
        issue_send_held(v, l);
    while (l->state == LINK_ACTIVE && l->issuing != l->posted) {
        struct op *op = op_of(l, l->issuing);
        if (!op->issued && !issue_one(v, l, op))
            break;
        op->issued = true;
        l->issuing++;
        if (!op->used) /* no completion of a work request will end it */
            v->held_back = true;
    }
}
