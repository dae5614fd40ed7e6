/* When requests are done; and those that the transport below carries, while there is no path. */
#include <stdlib.h>
#include <string.h>

#include "transport/verbs/verbs.h"

void *finish_data(const struct verbs *v, const struct op *op)
{
    const struct transport_request *r = &op->request;

    if (op->slot >= 0)
        return v->slots + (size_t)op->slot * SLOT_BYTES;
    if (r->kind == TRANSPORT_PUT && r->bytes <= SMALL_BYTES)
        return (void *)(uintptr_t)op->small;
    return r->local;
}

static void finish_release(struct verbs *v, struct op *op)
{
    if (op->slot >= 0) {
        v->slot_free[v->slots_left++] = op->slot;
        op->link->slots--;
    }
    op->slot = -1;
    if (GSHMEM_LIKELY(!op->registered))
        return;
    for (int i = 0; i < v->opened; i++) {
        if (op->mr[i])
            ibv_dereg_mr(op->mr[i]);
        op->mr[i] = NULL;
    }
    op->registered = false;
}

static bool finish_is_over(const struct link *l, const struct op *op)
{
    if (op->below != BELOW_NOT || op->parts)
        return op->below == BELOW_DONE;
    if (l->state == LINK_FAILED)
        return true;
    if (!op->issued || op->held || op->pieces ||
        (op->wants_reply && is_after(op->number, l->replied)))
        return false;
    for (unsigned used = op->used; used; used &= used - 1) {
        int i = __builtin_ctz(used);
        if (is_after(op->end[i], l->path[i]->done))
            return false;
    }
    return true;
}

/* Of a request that failed, which leaves some. */
static void free_holes(struct op *op)
{
    for (struct hole *next; op->hole; op->hole = next) {
        next = op->hole->next;
        free(op->hole);
    }
}

/* What a get has brought, to where it is seen. A NIC may have written it to memory of a GPU: one flush does for all
 * gets that have been found to be done. */
static gshmem_status_t deliver(struct verbs *v, const struct op *op, bool *flushed)
{
    const struct transport_request *r = &op->request;

    if (op->slot >= 0)
        return gpu_deliver(v, r->local, finish_data(v, op), r->bytes);
    if (!v->config.flushes || *flushed || v->gpu_below || !gpu_has(v, r->local, r->bytes))
        return GSHMEM_OK;
    gshmem_status_t status = gpu_flush(v);
    *flushed = status == GSHMEM_OK;
    return status;
}

void finish_some(struct verbs *v, struct link *l)
{
    bool flushed = false;

    while (l->done != l->posted && finish_is_over(l, op_of(l, l->done))) {
        struct op *op = op_of(l, l->done);
        gshmem_status_t status = l->state == LINK_FAILED && op->below == BELOW_NOT ? l->failure
                                                                                   : op->failure;
        void (*done)(void *tag, gshmem_status_t status) = op->request.done;
        void *tag = op->request.tag;
        const uint32_t joined_end = op->joined_end;

        if (!status && op->request.kind == TRANSPORT_GET)
            status = deliver(v, op, &flushed);
        if (!status && op->updates)
            atomics_deliver(l, op);
        finish_release(v, op);
        if (GSHMEM_UNLIKELY(status != GSHMEM_OK))
            free_holes(op);
        l->alone = NONE_ALONE;
        l->coalesced_first += op->coalesced != NULL;
        if (l->issuing == l->done)
            l->issuing++;
        l->done++;
        v->events++;
        done(tag, status);
        while (l->joined_first != joined_end) {
            const struct joined j = l->joined[l->joined_first++ % JOINED];
            j.done(j.tag, status);
        }
    }
}

/* ---- Below ---- */

/* A part has ended; the op has when the last is posted and none is left. */
static void part_carried(void *tag, gshmem_status_t status)
{
    struct op *op = tag;
    struct link *l = op->link;

    op->failure = op->failure ? op->failure : status;
    if (--op->parts == 0 && op->below == BELOW_CARRIES)
        op->below = BELOW_DONE;
    l->verbs->held_back = true; /* it ends in progress */
    if (--l->below_left == 0)
        link_settle(l->verbs, l);
}

bool finish_part_below(struct verbs *v, struct link *l, struct op *op, struct transport_request *r)
{
    r->sent = NULL;
    r->done = part_carried;
    r->tag = op;
    op->parts++;
    l->below_left++;
    gshmem_status_t status = v->below->ops->post(v->below, r);
    if (status == TRANSPORT_FULL) {
        op->parts--;
        l->below_left--;
        return false;
    }
    if (status)
        part_carried(op, status);
    return true;
}

void finish_all_below(struct op *op)
{
    op->below = op->parts ? BELOW_CARRIES : BELOW_DONE;
}

/* What of it has not arrived by verbs; false: the transport below is full. What fills holes goes before
 * the rest, which may bring a signal, and is not to be overtaken by it. */
static bool finish_carry(struct verbs *v, struct link *l, struct op *op)
{
    struct transport_request r = op->request;

    if (atomics_have(v, &r)) {
        const bool failed = atomics_wait(v, op);
        op->below = failed ? BELOW_DONE : BELOW_NOT;
        v->held_back = true;
        return failed;
    }
    const bool moves = r.kind != TRANSPORT_ATOMIC, filled = op->hole != NULL || op->parts;
    for (uint64_t at, bytes; moves && op->hole && issue_next_piece(op, &at, &bytes);) {
        struct transport_request part = op->request;
        part.flags = 0;
        part.signal_op = 0;
        part.local = (char *)finish_data(v, op) + at;
        part.offset += at;
        part.bytes = bytes;
        if (l->state != LINK_BELOW || !finish_part_below(v, l, op, &part))
            return false;
        issue_took_piece(op, bytes);
    }
    if (moves) {
        r.local = (char *)finish_data(v, op) + op->at;
        r.offset += op->at;
        r.bytes -= op->at;
    }
    if (filled)
        r.flags &= (uint8_t)~TRANSPORT_LOOSE & (uint8_t)~TRANSPORT_UNORDERED;
    if ((!filled || r.bytes || r.signal_op) && (l->state != LINK_BELOW || !finish_part_below(v, l, op, &r)))
        return false;
    finish_all_below(op);
    return true;
}

/* A signal that waited for its data on several paths, all of which has arrived. False: not now. */
static bool carry_signal(struct verbs *v, struct link *l, struct op *op)
{
    struct transport_request r = op->request;

    r.bytes = 0;
    r.flags = 0;
    if (atomics_have(v, &r) ? !atomics_wait(v, op) : !finish_part_below(v, l, op, &r))
        return false;
    finish_all_below(op);
    op->held = false;
    l->held--;
    return true;
}

static bool carry_signals(struct verbs *v, struct link *l)
{
    for (uint32_t i = l->done; i != l->issuing && l->held && l->state == LINK_BELOW; i++) {
        struct op *op = op_of(l, i);
        if (op->held && !op->updates && !carry_signal(v, l, op))
            return false;
    }
    return true;
}

void finish_below(struct verbs *v, struct link *l)
{
    if (!carry_signals(v, l)) {
        v->held_back = true;
        return;
    }
    while (l->state == LINK_BELOW && l->issuing != l->posted) {
        struct op *op = op_of(l, l->issuing);
        if (!op->issued && (!issue_may_go_below(l, op) || !stage_to_below(l, op)))
            break;
        if (!op->issued && !(op->coalesced ? coalesce_carry(v, l, op) : finish_carry(v, l, op)))
            break;
        op->issued = true;
        l->issuing++;
    }
    v->held_back |= l->issuing != l->posted;
}
