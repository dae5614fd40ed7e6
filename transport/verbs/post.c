/* Work requests of a path: collected, given to its queue pair in batches, and remembered until they
 * are known to be done.
 *
 * The numbers of their packets are remembered too: if the path breaks, the peer's NIC knows the
 * number of the next packet it would have taken, and so which of them have arrived (failover.c). */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "transport/verbs/post.h"

bool post_refused(struct verbs *v, struct path *p, const struct ibv_send_wr *bad, int error)
{
    char why[200];

    /* those before the bad one have been taken; where the queue was full it will not stay so */
    if (bad >= p->wr + p->batch_first && bad < p->wr + p->batched)
        p->batch_first = (uint32_t)(bad - p->wr);
    if ((error == ENOMEM || error == EAGAIN) && p->sends - p->done > p->batched - p->batch_first) {
        v->held_back = true;
        return false;
    }
    snprintf(why, sizeof why, "posting: %s", strerror(error));
    failover_break(v, p, why);
    return false;
}

/* It is one that was collected, and none of them taken. */
void post_lone_refused(struct verbs *v, struct path *p, int error)
{
    p->sge[0] = p->lone_sge;
    p->wr[0] = p->lone;
    p->wr[0].sg_list = p->sge;
    p->batched = 1;
    post_refused(v, p, p->wr, error);
}

bool post_batch(struct verbs *v, struct path *p)
{
    if (p->batch_first == p->batched)
        return true;
    p->wr[p->batched - 1].next = NULL;
    p->wr[p->batched - 1].send_flags |= IBV_SEND_SIGNALED; /* for all before it too */
    return post_collected(v, p);
}

bool post_message(struct verbs *v, struct path *p, enum work_kind kind, uint32_t op,
                  const struct message *m)
{
    struct ibv_send_wr *wr = post_next_kept(v, p, kind, op, sizeof(struct message_bytes));

    if (!wr)
        return false;
    struct message_bytes *text = &p->text[wr - p->wr];
    wr->opcode = IBV_WR_SEND;
    post_within(p, wr, text, message_encode(text, m));
    return true;
}
