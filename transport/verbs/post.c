/* Work requests of a path: collected, given to its queue pair in batches, and remembered until they
 * are known to be done.
 *
 * The numbers of their packets are remembered too: if the path breaks, the peer's NIC knows the
 * number of the next packet it would have taken, and so which of them have arrived (mend.c). */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "transport/verbs/verbs.h"

bool post_batch(struct verbs *v, struct path *p)
{
    struct ibv_send_wr *bad = NULL;
    char why[200];
    int error;

    if (p->batch_first == p->batched)
        return true;
    p->wr[p->batched - 1].next = NULL;
    p->wr[p->batched - 1].send_flags |= IBV_SEND_SIGNALED; /* for all before it too */
    error = ibv_post_send(p->qp, &p->wr[p->batch_first], &bad);
    if (!error) {
        p->batch_first = p->batched = 0;
        return true;
    }
    /* those before the bad one have been taken; where the queue was full it will not stay so */
    if (bad >= p->wr + p->batch_first && bad < p->wr + p->batched)
        p->batch_first = (uint32_t)(bad - p->wr);
    if ((error == ENOMEM || error == EAGAIN) && p->sends - p->done > p->batched - p->batch_first) {
        v->held_back = true;
        return false;
    }
    snprintf(why, sizeof why, "posting: %s", strerror(error));
    mend_break(v, p, why);
    return false;
}

struct ibv_send_wr *post_next(struct verbs *v, struct path *p, enum work_kind kind, uint32_t op,
                              uint64_t at, uint64_t bytes, bool kept)
{
    const uint32_t packets = bytes ? (uint32_t)((bytes - 1) >> p->packet_shift) + 1 : 1;
    const uint32_t depth = p->nic->sends_most - (kept ? 0 : p->nic->sends_most / 8);

    /* a read may come back later than what is behind it, of which iWARP would tell before; of two reads
     * the first comes first */
    const uint32_t read = p->nic->iwarp ? p->last_read : p->fence_read;
    const bool behind_reads = kind != WORK_READ && is_after(read, p->done);

    if (p->sends - p->done >= depth || p->nic->works_left == 0 ||
        p->packet + packets - p->packet_done > PACKETS_MOST)
        return NULL;
    /* soft-RoCE stands still for ever when it repeats what has IBV_SEND_FENCE, and its answer comes just
     * then */
    if (behind_reads && p->nic->cannot_fence)
        return NULL;
    if (p->batched == BATCH && !post_batch(v, p))
        return NULL;
    p->nic->works_left--;
    p->packet += packets;
    p->work[p->sends % SEND_DEPTH] = (struct work){at, op, p->packet, (uint8_t)kind, behind_reads};
    p->sends++;

    struct ibv_send_wr *wr = &p->wr[p->batched];
    wr->wr_id = p->mark | p->sends;
    wr->sg_list = &p->sge[p->batched];
    wr->num_sge = 1;
    wr->send_flags = behind_reads ? IBV_SEND_FENCE : 0;
    if (p->batched != p->batch_first)
        wr[-1].next = wr;
    p->batched++;
    return wr;
}

void post_within(struct path *p, struct ibv_send_wr *wr, const void *data, uint32_t bytes)
{
    if (bytes <= p->nic->inline_most) {
        *wr->sg_list = (struct ibv_sge){(uintptr_t)data, bytes, 0};
        wr->send_flags |= IBV_SEND_INLINE;
        return;
    }
    struct message_bytes *kept = &p->kept[(p->sends - 1) % SEND_DEPTH];
    if (kept->at != data)
        memcpy(kept, data, bytes);
    *wr->sg_list = (struct ibv_sge){(uintptr_t)kept, bytes, p->kept_mr->lkey};
}

bool post_message(struct verbs *v, struct path *p, enum work_kind kind, uint32_t op,
                  const struct message *m)
{
    struct ibv_send_wr *wr = post_next(v, p, kind, op, 0, sizeof(struct message_bytes), true);

    if (!wr)
        return false;
    struct message_bytes *text = &p->text[wr - p->wr];
    wr->opcode = IBV_WR_SEND;
    post_within(p, wr, text, message_encode(text, m));
    return true;
}
