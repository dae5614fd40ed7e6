/* When requests are done; and those that the transport below carries, while there is no path. */
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

static void release(struct verbs *v, struct op *op)
{
    if (op->slot >= 0)
        v->slot_free[v->slots_left++] = op->slot;
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

static bool is_over(const struct link *l, const struct op *op)
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

void finish_some(struct verbs *v, struct link *l)
{
    while (l->done != l->posted && is_over(l, &l->op[l->done % OPS])) {
        struct op *op = &l->op[l->done % OPS];
        gshmem_status_t status = l->state == LINK_FAILED && op->below == BELOW_NOT ? l->failure
                                                                                   : op->failure;
        void (*done)(void *tag, gshmem_status_t status) = op->request.done;
        void *tag = op->request.tag;
        const uint32_t joined_end = op->joined_end;

        if (!status && op->request.kind == TRANSPORT_GET && op->slot >= 0)
            status = gpu_deliver(v, op->request.local, finish_data(v, op), op->request.bytes);
        if (!status && op->updates)
            atomics_deliver(l, op);
        release(v, op);
        l->alone = NONE_ALONE;
        l->gathered_first += op->gathered != NULL;
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

static void carried(void *tag, gshmem_status_t status)
{
    struct op *op = tag;
    struct link *l = op->link;

    op->below = BELOW_DONE;
    op->failure = status;
    l->verbs->held_back = true; /* it ends in progress */
    if (--l->below_left == 0)
        link_settle(l->verbs, l);
}

/* What of it has not arrived by verbs; false: the transport below is full. */
static bool carry(struct verbs *v, struct link *l, struct op *op)
{
    struct transport_request r = op->request;

    if (atomics_have(v, &r)) {
        const bool failed = atomics_wait(v, op);
        op->below = failed ? BELOW_DONE : BELOW_NOT;
        v->held_back = true;
        return failed;
    }
    if (r.kind != TRANSPORT_ATOMIC) {
        r.local = (char *)finish_data(v, op) + op->at;
        r.offset += op->at;
        r.bytes -= op->at;
    }
    r.sent = NULL;
    r.done = carried;
    r.tag = op;
    op->below = BELOW_CARRIES;
    l->below_left++;
    gshmem_status_t status = v->below->ops->post(v->below, &r);
    if (status == TRANSPORT_FULL) {
        op->below = BELOW_NOT;
        l->below_left--;
        return false;
    }
    if (status)
        carried(op, status);
    return true;
}

void finish_below(struct verbs *v, struct link *l)
{
    while (l->state == LINK_BELOW && l->issuing != l->posted) {
        struct op *op = &l->op[l->issuing % OPS];
        if (!op->issued && !stage_to_below(l, op))
            break;
        if (!op->issued && !(op->gathered ? gather_carry(v, l, op) : carry(v, l, op)))
            break;
        op->issued = true;
        l->issuing++;
    }
    v->held_back |= l->issuing != l->posted;
}
