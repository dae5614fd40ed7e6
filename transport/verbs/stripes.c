/* Writes and reads of an operation's data. What is large goes by all active paths, in stripes; the
 * bytes that a failed path did not deliver are holes, which go first (op.h). */
#include <string.h>

#include "transport/verbs/memory.h"
#include "transport/verbs/ops.h"
#include "transport/verbs/order.h"
#include "transport/verbs/peer.h"
#include "transport/verbs/post.h"
#include "transport/verbs/stripes.h"
#include "transport/verbs/verbs.h"

/* This PE's memory for the request's bytes from `from` on, as far as one registration covers it;
 * false: not registered, and reported. */
static bool stripes_local(struct verbs *v, struct nic *nic, struct op *op, uint64_t from,
                          uint64_t *bytes, struct ibv_sge *sge)
{
    const struct transport_request *r = &op->request;
    char *at = (op->slot >= 0 ? v->slots + (size_t)op->slot * SLOT_BYTES : (char *)r->local) + from;
    uint64_t covered = *bytes;
    struct ibv_mr *mr = nic->slots_mr;

    if (op->slot < 0) {
        mr = memory_of(v, nic, at, &covered);
        if (!mr && covered)
            v->report->memory_refused(v, op->link, "this PE's memory cannot be registered");
        else if (!mr && (mr = op_register(v, nic, op)))
            covered = *bytes;
    }
    if (!mr)
        return false;
    *bytes = covered;
    *sge = (struct ibv_sge){(uintptr_t)at, (uint32_t)covered, mr->lkey};
    return true;
}

/* The path for the bytes from `at` on, and how many of them go by it. */
static struct path *stripes_next_path(const struct link *l, const struct op *op, uint64_t at,
                                      uint64_t *bytes)
{
    const uint64_t all = op->request.bytes;

    if (l->actives == 1 || all < 2 * STRIPE_BYTES || l->active[0]->nic->iwarp)
        return l->active[0];
    uint64_t stripe = (all / (unsigned)l->actives + 4095) & ~4095ull;
    if (stripe < STRIPE_BYTES)
        stripe = STRIPE_BYTES;
    uint64_t left = stripe - at % stripe;
    *bytes = *bytes < left ? *bytes : left;
    return l->active[at / stripe % (unsigned)l->actives];
}

bool stripes_issue(struct verbs *v, struct link *l, struct op *op)
{
    const struct transport_request *r = &op->request;
    const bool reads = r->kind == TRANSPORT_GET, within = !reads && r->bytes <= SMALL_BYTES;

    for (uint64_t at, bytes; op_next_range(op, &at, &bytes);) {
        struct ibv_sge here = {0};
        uint32_t key;
        struct path *p = stripes_next_path(l, op, at, &bytes);

        if (GSHMEM_UNLIKELY(p->nic->flight_most && bytes > post_flight_piece(p->nic)))
            bytes = post_flight_piece(p->nic);
        if (!order_allows(l, p) ||
            !peer_find_key(v, l, p, r->segment, r->offset + at, &bytes, &key))
            return false;
        if (!within && !stripes_local(v, p->nic, op, at, &bytes, &here))
            return op->failure != GSHMEM_OK;
        struct ibv_send_wr *wr =
            post_next(v, p, reads ? WORK_READ : WORK_WRITE, op_number(l, op), at, bytes);
        if (!wr)
            return false;
        wr->opcode = reads ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE;
        wr->wr.rdma.remote_addr = l->peer.base[r->segment] + r->offset + at;
        wr->wr.rdma.rkey = key;
        if (within)
            post_within(p, wr, op->small + at, (uint32_t)bytes);
        else
            *wr->sg_list = here;
        if (reads)
            p->fence.last_read = p->sends;
        op_sent_by(op, p);
        op_took_range(op, bytes);
    }
    return true;
}
