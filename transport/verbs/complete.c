/* What NICs report: work requests that are done, messages that have come, and errors. */
#include <stdio.h>

#include "transport/verbs/atomics.h"
#include "transport/verbs/below.h"
#include "transport/verbs/complete.h"
#include "transport/verbs/connect.h"
#include "transport/verbs/failover.h"
#include "transport/verbs/finish.h"
#include "transport/verbs/issue.h"
#include "transport/verbs/known.h"
#include "transport/verbs/links.h"
#include "transport/verbs/nics.h"
#include "transport/verbs/pending.h"
#include "transport/verbs/post.h"
#include "transport/verbs/serve.h"
#include "transport/verbs/verbs.h"

/* ---- Errors ---- */

enum fate { PATH_FAILS, LINK_FAILS, PEER_REFUSED };

/* What becomes of a work request that ended with an error:
 *
 * - PATH_FAILS: it goes by another path;
 * - LINK_FAILS: it would fail on any path;
 * - PEER_REFUSED: the peer's NIC refused it. The NIC of a process that dies refuses requests too,
 *   as its memory goes before its connections. So the path fails first, and the link fails only
 *   when the peer has shown that it lives (failover_recover). */
static const struct {
    enum fate fate;
    gshmem_status_t status;
    const char *advice;
} errors[] = {
    [IBV_WC_LOC_LEN_ERR] = {LINK_FAILS, GSHMEM_ERR_TRANSPORT,
                            "longer than this side's queue pair takes"},
    /* soft-RoCE reports this also while its network interface is down */
    [IBV_WC_LOC_QP_OP_ERR] = {PATH_FAILS, 0, "this NIC cannot send it, or not now"},
    [IBV_WC_LOC_EEC_OP_ERR] = {LINK_FAILS, GSHMEM_ERR_TRANSPORT,
                               "a request that this NIC cannot do"},
    [IBV_WC_LOC_PROT_ERR] = {LINK_FAILS, GSHMEM_ERR_TRANSPORT,
                             "memory of this PE that is not registered as it should be"},
    [IBV_WC_WR_FLUSH_ERR] = {PATH_FAILS, 0, "its queue pair had failed before"},
    [IBV_WC_MW_BIND_ERR] = {LINK_FAILS, GSHMEM_ERR_TRANSPORT, "a memory window"},
    [IBV_WC_BAD_RESP_ERR] = {PATH_FAILS, 0, "the peer sent a response without a request"},
    [IBV_WC_LOC_ACCESS_ERR] = {LINK_FAILS, GSHMEM_ERR_TRANSPORT,
                               "memory of this PE that is not registered as it should be"},
    [IBV_WC_REM_INV_REQ_ERR] = {PEER_REFUSED, GSHMEM_ERR_TRANSPORT, "the peer refused it"},
    [IBV_WC_REM_ACCESS_ERR] = {PEER_REFUSED, GSHMEM_ERR_TRANSPORT,
                               "the peer no longer grants access to it"},
    [IBV_WC_REM_OP_ERR] = {PATH_FAILS, 0, "the peer could not carry it out"},
    [IBV_WC_RETRY_EXC_ERR] =
        {PATH_FAILS, 0,
         "no response (GSHMEM_IB_TIMEOUT and GSHMEM_IB_RETRY say how long it waits)"},
    [IBV_WC_RNR_RETRY_EXC_ERR] = {PATH_FAILS, 0, "the peer has no room for messages"},
    [IBV_WC_LOC_RDD_VIOL_ERR] = {LINK_FAILS, GSHMEM_ERR_TRANSPORT, "not for connected queue pairs"},
    [IBV_WC_REM_INV_RD_REQ_ERR] = {LINK_FAILS, GSHMEM_ERR_TRANSPORT,
                                   "not for connected queue pairs"},
    [IBV_WC_REM_ABORT_ERR] = {PATH_FAILS, 0, "the peer aborted it"},
    [IBV_WC_INV_EECN_ERR] = {LINK_FAILS, GSHMEM_ERR_TRANSPORT, "not for connected queue pairs"},
    [IBV_WC_INV_EEC_STATE_ERR] = {LINK_FAILS, GSHMEM_ERR_TRANSPORT,
                                  "not for connected queue pairs"},
    [IBV_WC_FATAL_ERR] = {PATH_FAILS, 0, "the NIC has failed"},
    [IBV_WC_RESP_TIMEOUT_ERR] = {PATH_FAILS, 0, "no response"},
    [IBV_WC_GENERAL_ERR] = {PATH_FAILS, 0, "the NIC gives no reason"},
};

__attribute__((noinline)) static void complete_explain(struct verbs *v, struct path *p,
                                                       const struct ibv_wc *wc)
{
    static const char *const operation[] = {
        [WORK_WRITE] = "put",     [WORK_READ] = "get",
        [WORK_SIGNAL] = "signal", [WORK_MESSAGE] = "atomic or message",
        [WORK_OTHER] = "reply",   [WORK_UPDATE] = "atomic",
        [WORK_RECORDS] = "batch"};
    const bool known = (unsigned)wc->status < sizeof errors / sizeof errors[0];
    const enum fate fate = known ? errors[wc->status].fate : PATH_FAILS;
    const struct work *w = &p->work[((uint32_t)wc->wr_id - 1) % SEND_DEPTH];
    char why[400];

    snprintf(why, sizeof why, "verbs: %s: %s: %s (status %d, vendor's %u): %s", p->nic->name,
             operation[w->kind], ibv_wc_status_str(wc->status), wc->status, wc->vendor_err,
             known ? errors[wc->status].advice : "unknown");
    if (fate == LINK_FAILS) {
        link_fail(v, p->link, errors[wc->status].status, why);
        return;
    }
    if (fate == PEER_REFUSED && !p->link->recovery.refused[0])
        snprintf(p->link->recovery.refused, sizeof p->link->recovery.refused, "%s", why);
    failover_fail(v, p, why);
}

/* ---- Messages ---- */

/* The link that a message belongs to; NULL: none. A message that comes by a path after this side
 * has sent its state (failover.c, step 3) is dropped, as the peer sends it again. */
static struct link *complete_sender(struct verbs *v, const struct nic *nic, uint32_t queue,
                                    uint32_t from)
{
    struct link *l = from < (uint32_t)v->config.n_pes ? v->to[from] : NULL;

    for (int i = 0; l && i < l->paths; i++) {
        const struct path *p = l->path[i];
        if (p->nic == nic && p->qp && p->qp->qp_num == queue &&
            !(p->state == PATH_STOPPING && p->failure.stopped_here)) {
            l->target.by = l->path[i];
            return l;
        }
    }
    return NULL;
}

/* The link that has this queue pair, where the message itself does not tell truly. */
static struct link *complete_sender_by_queue(struct verbs *v, const struct nic *nic, uint32_t queue)
{
    struct link *l = v->links;

    while (l && complete_sender(v, nic, queue, (uint32_t)l->pe) != l)
        l = l->next;
    return l;
}

/* Not inline, as complete_explain: it would slow down the ends of requests, which are more
 * frequent. */
__attribute__((noinline)) static struct link *complete_received(struct verbs *v, struct nic *nic,
                                                                const struct ibv_wc *wc)
{
    const uint64_t index = wc->wr_id & ~RECEIVED;
    struct link *l = NULL;
    struct message m;
    bool makes_sense = true;

    if (wc->status == IBV_WC_SUCCESS) {
        if (message_decode(nic_inbox(nic, index), wc->byte_len, &m))
            l = complete_sender(v, nic, wc->qp_num, m.from);
        makes_sense = l && pending_receive(v, l, &m);
        if (!l)
            l = complete_sender_by_queue(v, nic, wc->qp_num);
    }
    if (l && !makes_sense)
        link_fail(v, l, GSHMEM_ERR_TRANSPORT,
                  "verbs: it sent a message that makes no sense, or not for symmetric memory");
    if (!nic_receive_again(nic, (uint32_t)index))
        v->config.fail(GSHMEM_ERR_TRANSPORT, "verbs: %s does not take a receive back", nic->name);
    return l;
}

/* ---- All ---- */

/* The end of a lone request (submit.c), of one packet; true: nothing else is to be done for the
 * link. */
static inline bool complete_alone(struct link *l)
{
    struct op *op = op_of(l, l->done);
    struct path *p = l->alone.path;

    post_landed(p, p->done + 1);
    p->packet_done++;
    l->alone.id = NONE_ALONE;
    if (op->updates)
        atomics_deliver(l, op);
    l->done++;
    op->request.done(op->request.tag, GSHMEM_OK);
    return l->posted == l->done && !l->target.owes_reply &&
           l->target.reply_next == l->target.reply_end && !l->staging;
}

/* Of any other work request. */
__attribute__((noinline)) static struct link *complete_sent(struct verbs *v, struct link *l,
                                                            const struct ibv_wc *wc)
{
    const unsigned index = wc->wr_id >> 56 & 15;

    if (!l || l->state == LINK_FAILED || (int)index >= l->paths)
        return NULL;
    struct path *p = l->path[index];
    if (!p->qp || (wc->wr_id ^ p->mark) >> 32)
        return NULL; /* of a queue pair that has ended */
    if (wc->status != IBV_WC_SUCCESS) {
        p->failure.last = (uint32_t)wc->wr_id;
        complete_explain(v, p, wc);
        return l;
    }
    post_landed(p, (uint32_t)wc->wr_id);
    p->packet_done = p->work[(p->done - 1) % SEND_DEPTH].packet_end;
    if (p->state == PATH_PROBED)
        path_activate(v, p);
    return l;
}

/* The link for which there may be more to do now; NULL: none. */
static inline struct link *complete_one(struct verbs *v, struct nic *nic, const struct ibv_wc *wc)
{
    if (wc->wr_id & RECEIVED)
        return complete_received(v, nic, wc);
    struct link *l = v->to[wc->wr_id >> 32 & 0xffffff];
    if (l && wc->wr_id == l->alone.id && wc->status == IBV_WC_SUCCESS)
        return complete_alone(l) ? NULL : l;
    return complete_sent(v, l, wc);
}

void complete_go_on(struct verbs *v, struct link *l)
{
    if (l->held && l->updates)
        atomics_poll(v, l);
    if (l->staging)
        pending_go_on(v, l);
    finish_some(v, l);
    if (l->state != LINK_FAILED &&
        (l->target.owes_reply || l->target.reply_next != l->target.reply_end))
        serve_send_replies(v, l);
    if (l->issuing != l->posted || l->held)
        issue_more(v, l);
    if (l->state == LINK_BELOW) {
        below_issue(v, l);
        finish_some(v, l);
    }
    post_batches(v, l);
}

static void complete_take(struct verbs *v, struct nic *nic, const struct ibv_wc *wc, int n)
{
    struct link *touched = NULL;

    for (int i = 0; i < n; i++) {
        struct link *l = complete_one(v, nic, &wc[i]);
        if (touched && touched != l)
            complete_go_on(v, touched);
        touched = l;
    }
    if (touched)
        complete_go_on(v, touched);
}

int complete_some(struct verbs *v)
{
    struct ibv_wc wc[POLL];
    int all = 0;

    for (struct nic *nic = v->nic, *end = nic + v->nics; nic != end; nic++) {
        const int n = ibv_poll_cq(nic->cq, POLL, wc);
        if (n > 0) {
            complete_take(v, nic, wc, n);
            all += n;
        } else if (n < 0) {
            v->config.fail(GSHMEM_ERR_TRANSPORT, "verbs: %s: polling for completions failed",
                           nic->name);
        }
        if (v->stopping && n < POLL)
            failover_drained(v, nic);
    }
    return all;
}
