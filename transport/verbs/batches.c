/* Batches, the initiator's side: many puts or updates of one object, which a thread has made one
 * after the other (runtime/network/open_batches.h), as one operation.
 *
 * 1. The records, which have been copied into a slot, are written to an eager buffer of the target
 *    (eager.h). The link has EAGER_BUFFERS of them, which its operations use in turn. A buffer is
 *    free again when its operation is done.
 * 2. A message behind the write says what they are. The target's proxy carries all of them out at
 *    once, and replies. So a batch has one number, by which the target knows after a path failure
 *    whether it has been carried out: no update is made twice.
 *
 * The write changes no symmetric memory: it needs no order, and may be repeated until the message
 * has been received. A batch of few records is a collection of coalesce.c instead. */
#include "transport/batch.h"
#include "transport/verbs/batches.h"
#include "transport/verbs/eager.h"
#include "transport/verbs/ops.h"
#include "transport/verbs/peer.h"
#include "transport/verbs/post.h"
#include "transport/verbs/send.h"
#include "transport/verbs/verbs.h"

static bool batches_take_buffer(struct link *l, struct op *op)
{
    if (op->eager)
        return true;
    if (l->batches.next - l->batches.done == EAGER_BUFFERS)
        return false;
    op->eager = true;
    op->buffer = l->batches.next++;
    return true;
}

static uint64_t batches_buffer(const struct op *op)
{
    return op->buffer % EAGER_BUFFERS;
}

static bool batches_write(struct verbs *v, struct link *l, struct op *op)
{
    struct path *p = l->active[0];
    const uint64_t key = l->batches.key[p->number % RAILS_MOST], bytes = op->request.bytes;

    if (!key) {
        peer_request_key(v, l, MESSAGE_EAGER, 0);
        return false;
    }
    if (p->nic->works_left < 2) { /* the message needs one, too */
        post_no_room(v);
        return false;
    }
    struct ibv_send_wr *wr = post_next(v, p, WORK_RECORDS, op_number(l, op), 0, bytes);
    if (!wr)
        return false;
    wr->opcode = IBV_WR_RDMA_WRITE;
    wr->wr.rdma.remote_addr = l->batches.address + batches_buffer(op) * EAGER_BYTES;
    wr->wr.rdma.rkey = (uint32_t)key;
    *wr->sg_list =
        (struct ibv_sge){(uintptr_t)op_data(v, op), (uint32_t)bytes, p->nic->slots_mr->lkey};
    op_sent_by(op, p);
    return true;
}

bool batches_issue(struct verbs *v, struct link *l, struct op *op)
{
    const struct transport_request *r = &op->request;
    struct message m = {.kind = MESSAGE_BATCH,
                        .segment = r->segment,
                        .amo = r->amo,
                        .type = r->type,
                        .signal_op = r->each,
                        .signal_segment = (uint8_t)r->element_bytes,
                        .offset = r->offset,
                        .a = r->elements};

    if (!batches_take_buffer(l, op) || !send_is_possible(l) || !batches_write(v, l, op))
        return false;
    m.b = batches_buffer(op);
    return send_update(v, l, op, &m);
}
