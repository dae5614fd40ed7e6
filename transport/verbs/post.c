/* Work requests of a path: given to its queue pair in batches, and recorded until they are done.
 *
 * The record has the numbers of their packets. If the path fails, the peer's NIC knows the packet
 * that it expects next, and so which work requests have arrived (failover.c). */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "transport/verbs/post.h"
#include "transport/verbs/verbs.h"

/* ---- Bytes in flight ----
 *
 * A path that finds no room waits in a list of its NIC, and no path goes before the first of them:
 * otherwise a large put would wait for as long as others make small ones. A path that has not tried
 * again since the last round has something else to wait for, and loses its place. */

void post_wait_no_more(struct path *p)
{
    struct path **at = &p->nic->flight_first, *before = NULL;

    if (!p->flight.waits)
        return;
    while (*at != p) {
        before = *at;
        at = &before->flight.next;
    }
    *at = p->flight.next;
    if (p->nic->flight_last == p)
        p->nic->flight_last = before;
    p->flight.waits = false;
}

static void post_wait(struct verbs *v, struct path *p)
{
    struct nic *nic = p->nic;

    p->flight.round = v->rounds;
    v->held_back = true;
    if (p->flight.waits)
        return;
    p->flight.waits = true;
    p->flight.next = NULL;
    *(nic->flight_last ? &nic->flight_last->flight.next : &nic->flight_first) = p;
    nic->flight_last = p;
}

/* What is larger than the limit goes alone. */
bool post_may_fly_more(struct verbs *v, struct path *p, uint64_t bytes)
{
    struct nic *nic = p->nic;

    if (!bytes)
        return true;
    while (nic->flight_first && nic->flight_first != p &&
           v->rounds - nic->flight_first->flight.round > 1)
        post_wait_no_more(nic->flight_first);
    if ((nic->flight_first && nic->flight_first != p) ||
        (nic->flight && nic->flight + bytes > nic->flight_most)) {
        post_wait(v, p);
        return false;
    }
    post_wait_no_more(p);
    return true;
}

uint64_t post_flight_piece(const struct nic *nic)
{
    enum { PACKET = 4096 };
    const uint64_t most = nic->flight_most;

    return most / 4 > PACKET ? most / 4 : most < PACKET ? most : PACKET;
}

struct ibv_send_wr *post_no_room(struct verbs *v)
{
    v->held_back = true;
    return NULL;
}

bool post_refused(struct verbs *v, struct path *p, const struct ibv_send_wr *bad, int error)
{
    char why[200];

    /* the NIC has taken those before the bad one; a queue that was full gets room again */
    if (bad >= p->batch.wr + p->batch.first && bad < p->batch.wr + p->batch.end)
        p->batch.first = (uint32_t)(bad - p->batch.wr);
    if ((error == ENOMEM || error == EAGAIN) &&
        p->sends - p->done > p->batch.end - p->batch.first) {
        v->held_back = true;
        return false;
    }
    snprintf(why, sizeof why, "posting: %s", strerror(error));
    v->report->path_failed(v, p, why);
    return false;
}

/* The lone work request becomes a batch of one. */
void post_lone_refused(struct verbs *v, struct path *p, int error)
{
    p->batch.sge[0] = p->lone.sge;
    p->batch.wr[0] = p->lone.wr;
    p->batch.wr[0].sg_list = p->batch.sge;
    p->batch.end = 1;
    post_refused(v, p, p->batch.wr, error);
}

bool post_batch(struct verbs *v, struct path *p)
{
    if (p->batch.first == p->batch.end)
        return true;
    p->batch.wr[p->batch.end - 1].next = NULL;
    p->batch.wr[p->batch.end - 1].send_flags |= IBV_SEND_SIGNALED; /* for all before it too */
    return post_collected(v, p);
}

bool post_message(struct verbs *v, struct path *p, enum work_kind kind, uint32_t op,
                  const struct message *m)
{
    struct ibv_send_wr *wr = post_next_kept(v, p, kind, op, sizeof(struct message_bytes));

    if (!wr)
        return false;
    struct message_bytes *text = &p->batch.text[wr - p->batch.wr];
    wr->opcode = IBV_WR_SEND;
    post_within(p, wr, text, message_encode(text, m));
    return true;
}
