/* A path that fails, and what becomes of its work requests.
 *
 * 1. failover_fail: a completion, a NIC's event, a call or the peer says that the path failed.
 *    This side puts the queue pair into the error state, where it takes nothing more, and drops
 *    the batch.
 * 2. failover_drained: this side takes completions until the queue pair has reported all that it
 *    was given, the NIC is gone, or a second has passed.
 * 3. failover_send_state: this side tells the peer what it has received: the packet that the
 *    queue pair expects next, if the NIC can tell, the last message, and the last reply. It takes
 *    nothing by this path from then on.
 * 4. failover_receive: the peer says the same of its side. It begins with step 1 if it had not
 *    noticed; steps 3 and 4 come in either order.
 * 5. failover_recover: this side issues again what has not arrived, in order, by the paths that
 *    are active, or by the transport below where none is. The path is down then.
 * 6. watch_retry: a path that is down is tried after 1, 2, ... 32 s, or at once when its port
 *    comes up. Its new queue pair carries an empty write before it is active.
 *
 * The link takes no new work to a NIC from step 1 to step 5.
 *
 * Invariant: what a work request does happens once. A write that the NIC has not reported as done
 * may have arrived, and the target may have read and changed that memory since: so it is issued
 * again only if the peer's state shows that it has not arrived. Where writes were in flight and
 * the peer's NIC cannot tell, the link fails. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "transport/verbs/atomics.h"
#include "transport/verbs/connect.h"
#include "transport/verbs/control.h"
#include "transport/verbs/failover.h"
#include "transport/verbs/links.h"
#include "transport/verbs/ops.h"
#include "transport/verbs/pending.h"
#include "transport/verbs/post.h"
#include "transport/verbs/staged.h"
#include "transport/verbs/verbs.h"

enum { DRAIN_NS = 1000 * 1000 * 1000 };

uint64_t failover_now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- Steps 1 to 3 ---- */

void failover_fail(struct verbs *v, struct path *p, const char *why)
{
    struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};

    if (p->state < PATH_OFFERED || p->state > PATH_ACTIVE || p->link->state == LINK_FAILED)
        return;
    v->config.info("verbs: PE %d: %s has failed: %s", p->link->pe, p->nic->name, why);
    transport_count(&v->config, TRANSPORT_PATH_FAILED);
    if (!p->failure.stopped && !(p->failure.stopped = calloc(2, sizeof *p->failure.stopped))) {
        link_fail(v, p->link, GSHMEM_ERR_MEMORY, "verbs: out of memory to recover its path");
        return;
    }
    /* While a thread connects the queue pair, no peer knows yet that it can receive. A NIC that is
     * gone refuses this call, and takes nothing either. */
    if (!p->setup.resolving)
        ibv_modify_qp(p->qp, &error, IBV_QP_STATE);
    p->failure.given = p->sends - (p->batch.end - p->batch.first);
    p->failure.at = failover_now_ns();
    p->batch.first = p->batch.end = 0;
    p->link->alone.id = NONE_ALONE;
    p->unsent = 0;
    p->state = PATH_STOPPING;
    p->tried = true;
    p->link->recovery.begun = true;
    v->stopping++;
    v->held_back = true;
    link_settle(v, p->link);
}

/* All messages that came by it have been carried out by now, or wait in pending.c. */
static void failover_send_state(struct verbs *v, struct path *p)
{
    struct ibv_qp_attr a = {0};
    struct ibv_qp_init_attr unused;

    if (p == p->link->target.by)
        pending_forget(p->link);
    p->failure.stopped[0] = (struct control){.kind = CONTROL_STOPPED,
                                             .received = p->link->target.received,
                                             .replied = p->link->messages.replied};
    if (!p->nic->gone && p->nic->tells_packet && !p->nic->iwarp && p->setup.receives &&
        ibv_query_qp(p->qp, &a, IBV_QP_RQ_PSN, &unused) == 0) {
        p->failure.stopped[0].knows_packet = true;
        p->failure.stopped[0].next_packet = a.rq_psn & 0xffffff;
    }
    p->failure.stopped_here = true;
    p->unsent |= UNSENT_STOPPED;
    path_send_rest(v, p);
}

/* ---- Steps 4 and 5: what has arrived ---- */

static bool failover_has_arrived(const struct path *p, uint32_t number, uint32_t reads_done)
{
    const struct work *w = &p->work[number % SEND_DEPTH];
    const struct link *l = p->link;
    const struct control *n = &p->failure.stopped[1];

    switch (w->kind) {
    case WORK_MESSAGE:
        return !is_after(op_of(l, w->op)->number, n->received);
    case WORK_READ:
        return is_after(reads_done, number);
    case WORK_OTHER: /* replies and requests for keys: see failover_rewind_messages */
    case WORK_RECORDS: /* they are written again with their message */
        return true;
    default:
        /* the difference of two numbers of 24 bits */
        return (int32_t)((n->next_packet - w->packet_end) << 8) >= 0;
    }
}

/* All reads before the returned work request have completed: the NIC holds back what has a fence
 * until then, and the peer has received one such. */
static uint32_t failover_reads_done(const struct path *p)
{
    uint32_t number = p->sends;

    for (; number != p->done; number--) {
        const struct work *w = &p->work[(number - 1) % SEND_DEPTH];
        if (w->behind_reads && !work_is_of_messages(w->kind) &&
            failover_has_arrived(p, number - 1, p->done))
            break;
    }
    return number;
}

/* Whether the peer's state is possible: it has received no more than was sent, and all that the NIC
 * reported as done. */
static bool failover_state_is_valid(const struct path *p)
{
    const struct link *l = p->link;
    const struct control *n = &p->failure.stopped[1];

    return (l->messenger != p || (!is_after(n->received, l->messages.sent) &&
                                  !is_after(l->messages.replied, n->received))) &&
           !is_after(n->replied, l->target.received) &&
           (!n->knows_packet || ((n->next_packet - p->packet_done) & 0xffffff) <=
                                    ((p->packet - p->packet_done) & 0xffffff));
}

static bool failover_has_writes(const struct path *p)
{
    for (uint32_t i = p->done; i != p->sends; i++) {
        enum work_kind kind = p->work[i % SEND_DEPTH].kind;
        if (kind == WORK_WRITE || kind == WORK_SIGNAL || kind == WORK_UPDATE)
            return true;
    }
    return false;
}

/* Messages go by one path at a time, so that those not received are the last ones. */
static void failover_rewind_messages(struct link *l, const struct control *n)
{
    for (l->target.reply_next = l->target.reply_end;
         l->target.reply_end - l->target.reply_next < REPLIES && l->target.reply_next &&
         is_after(l->target.reply[(l->target.reply_next - 1) % REPLIES].number, n->replied);)
        l->target.reply_next--;
    if (l->key_request.pending && is_after(l->key_request.number, n->received))
        l->key_request.pending = false;
    l->messages.sent = n->received;
    l->messages.last_update = is_after(l->messages.last_update, l->messages.sent)
                                  ? l->messages.sent
                                  : l->messages.last_update;
    l->messages.fence_update = is_after(l->messages.fence_update, l->messages.sent)
                                   ? l->messages.sent
                                   : l->messages.fence_update;
    l->messages.last_set =
        is_after(l->messages.last_set, l->messages.sent) ? l->messages.sent : l->messages.last_set;
}

static void failover_repeat_messages(struct link *l, uint32_t received)
{
    for (uint32_t i = l->done; i != l->posted; i++) {
        const struct op *op = op_of(l, i);
        const struct work w = {.op = i, .kind = WORK_MESSAGE};
        if (op->wants_reply && is_after(op->number, received))
            op_issue_again(l, &w);
    }
    staged_repeat(l, received);
}

/* The work request has not arrived. A signal's write may be that of several puts (signals.c), which
 * are all issued again. False: out of memory. */
static bool failover_issue_again(struct path *p, uint32_t number)
{
    const struct work *w = &p->work[number % SEND_DEPTH];
    struct link *l = p->link;

    if (w->kind != WORK_SIGNAL)
        return op_issue_again(l, w);
    for (uint32_t i = (uint32_t)w->at; i != w->op + 1; i++) {
        const struct op *op = op_of(l, i);
        const struct work own = {.op = i, .kind = WORK_SIGNAL};
        if (op->used >> p->index & 1 && op->end[p->index] == number + 1)
            op_issue_again(l, &own);
    }
    return true;
}

static void failover_recover(struct verbs *v, struct path *p)
{
    struct link *l = p->link;
    const bool carried_messages = l->messenger == p;

    if (l->recovery.refused[0]) { /* the peer lives, as it has just sent its state */
        link_fail(v, l, GSHMEM_ERR_TRANSPORT, l->recovery.refused);
        return;
    }
    if (!failover_state_is_valid(p) ||
        (failover_has_writes(p) && !p->failure.stopped[1].knows_packet)) {
        char why[300];
        snprintf(why, sizeof why,
                 "verbs: %s: %u work requests were in flight, and it cannot tell "
                 "which of them have arrived",
                 p->nic->name, p->sends - p->done);
        link_fail(v, l, GSHMEM_ERR_TRANSPORT, why);
        return;
    }
    const uint32_t reads_done = failover_reads_done(p);
    op_of(l, l->issuing)->fenced =
        false; /* its fence is marked anew, behind what is issued again */
    for (uint32_t i = p->done; i != p->sends; i++) {
        const struct work *w = &p->work[i % SEND_DEPTH];
        if (!failover_has_arrived(p, i, reads_done)) {
            if (!failover_issue_again(p, i)) {
                link_fail(v, l, GSHMEM_ERR_MEMORY,
                          "verbs: out of memory to send again what did not arrive");
                return;
            }
        } else if (w->kind == WORK_UPDATE && !is_after(reads_done, i))
            atomics_lost_result(v, l, w);
    }
    if (carried_messages) {
        failover_repeat_messages(l, p->failure.stopped[1].received);
        failover_rewind_messages(l, &p->failure.stopped[1]);
    }
    post_landed(p, p->sends);
    path_end(p);
    p->state = PATH_DOWN;
    l->recovery.retry_at = failover_now_ns() + (1000000000ull << l->recovery.retries);
    v->held_back = true;
    link_settle(v, l);
}

static void failover_try_recover(struct verbs *v, struct path *p)
{
    if (p->state == PATH_STOPPING && p->failure.stopped_here && p->failure.stopped_there &&
        !p->unsent)
        failover_recover(v, p);
}

void failover_go_on(struct verbs *v, struct link *l)
{
    for (int i = 0; i < l->paths && l->state != LINK_FAILED; i++)
        failover_try_recover(v, l->path[i]);
}

void failover_receive(struct verbs *v, struct path *p, const struct control *n)
{
    if (p->state >= PATH_OFFERED && p->state <= PATH_ACTIVE)
        failover_fail(v, p, "the peer has stopped it");
    if (p->state != PATH_STOPPING)
        return;
    p->failure.stopped[1] = *n;
    if (n->kind == CONTROL_NONE) /* the path was never active: nothing has been sent by it */
        p->failure.stopped[1] = (struct control){.received = p->link->messages.sent,
                                                 .replied = p->link->target.received};
    p->failure.stopped_there = true;
    failover_try_recover(v, p);
}

/* A queue pair in the error state completes all that it was given, perhaps some polls later. A NIC
 * that is gone reports nothing more; the time limit is for one that loses completions. */
static bool failover_is_drained(const struct path *p)
{
    return p->nic->gone || !is_after(p->failure.given, p->done) ||
           !is_after(p->failure.given, p->failure.last) ||
           failover_now_ns() - p->failure.at > DRAIN_NS;
}

void failover_drained(struct verbs *v, const struct nic *nic)
{
    for (struct link *l = v->links; l; l = l->next) {
        for (int i = 0; i < l->paths && l->state != LINK_FAILED; i++) {
            struct path *p = l->path[i];
            if (p->state != PATH_STOPPING || p->nic != nic)
                continue;
            if (!p->failure.drained && failover_is_drained(p)) {
                p->failure.drained = true;
                v->stopping--;
                failover_send_state(v, p);
            }
            failover_try_recover(v, p);
        }
    }
}

void failover_use_below(struct verbs *v, struct link *l, const char *why)
{
    l->recovery.below_for_good = true;
    for (int i = 0; i < l->paths && l->state != LINK_FAILED; i++)
        failover_fail(v, l->path[i], why);
}
