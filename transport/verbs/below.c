/* A link that has no active path: what has not arrived by verbs goes to the transport below, in
 * order. */
#include "transport/verbs/atomics.h"
#include "transport/verbs/below.h"
#include "transport/verbs/carry.h"
#include "transport/verbs/coalesce.h"
#include "transport/verbs/coalesced.h"
#include "transport/verbs/ops.h"
#include "transport/verbs/order.h"
#include "transport/verbs/staged.h"
#include "transport/verbs/verbs.h"

/* Posts what has not arrived by verbs; false: the transport below is full. The holes go first: the
 * rest, which may bring a signal, must not overtake them. */
static bool below_carry(struct verbs *v, struct link *l, struct op *op)
{
    struct transport_request r = op->request;

    if (atomics_have(v, &r)) {
        const bool failed = atomics_wait(v, op);
        op->below = failed ? BELOW_DONE : BELOW_NOT;
        v->held_back = true;
        return failed;
    }
    const bool moves = r.kind != TRANSPORT_ATOMIC, filled = op->hole != NULL || op->parts;
    for (uint64_t at, bytes; moves && op->hole && op_next_range(op, &at, &bytes);) {
        struct transport_request part = op->request;
        part.flags = 0;
        part.signal_op = 0;
        part.local = (char *)op_data(v, op) + at;
        part.offset += at;
        part.bytes = bytes;
        if (l->state != LINK_BELOW || !carry_part(v, l, op, &part))
            return false;
        op_took_range(op, bytes);
    }
    if (moves) {
        r.local = (char *)op_data(v, op) + op->at;
        r.offset += op->at;
        r.bytes -= op->at;
    }
    if (filled)
        r.flags &= (uint8_t)~TRANSPORT_LOOSE & (uint8_t)~TRANSPORT_UNORDERED;
    if ((!filled || r.bytes || r.signal_op) &&
        (l->state != LINK_BELOW || !carry_part(v, l, op, &r)))
        return false;
    carry_no_more(op);
    return true;
}

/* A signal that waited for its data on several paths, all of which has arrived; false: not now. */
static bool below_carry_signal(struct verbs *v, struct link *l, struct op *op)
{
    struct transport_request r = op->request;

    r.bytes = 0;
    r.flags = 0;
    if (atomics_have(v, &r) ? !atomics_wait(v, op) : !carry_part(v, l, op, &r))
        return false;
    carry_no_more(op);
    op->held = false;
    l->held--;
    return true;
}

static bool below_carry_signals(struct verbs *v, struct link *l)
{
    for (uint32_t i = l->done; i != l->issuing && l->held && l->state == LINK_BELOW; i++) {
        struct op *op = op_of(l, i);
        if (op->held && !op->updates && !below_carry_signal(v, l, op))
            return false;
    }
    return true;
}

void below_issue(struct verbs *v, struct link *l)
{
    if (!below_carry_signals(v, l)) {
        v->held_back = true;
        return;
    }
    while (l->state == LINK_BELOW && l->issuing != l->posted) {
        struct op *op = op_of(l, l->issuing);
        if (!op->issued && (!order_may_go_below(l, op) || !staged_may_go_below(l, op)))
            break;
        if (!op->issued && !(op->coalesced ? coalesce_carry(v, l, op) : below_carry(v, l, op)))
            break;
        op->issued = true;
        l->issuing++;
    }
    v->held_back |= l->issuing != l->posted;
}
