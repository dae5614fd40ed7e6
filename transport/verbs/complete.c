/* What the NIC reports: work requests that are done, messages that have come, and errors.
 *
 * A message is from a PE that has proved to be of the job; what it asks for is checked against the
 * symmetric segments all the same. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/atomic_type.h"
#include "transport/segment.h"
#include "transport/verbs/verbs.h"

/* ---- Errors ---- */

/* Retries that ran out say that nobody is there any more; the rest is a fault of this connection.
 */
static void explain(struct verbs *v, struct link *l, const struct ibv_wc *wc)
{
    const bool gone = wc->status == IBV_WC_RETRY_EXC_ERR || wc->status == IBV_WC_RNR_RETRY_EXC_ERR;
    char why[400];

    snprintf(why, sizeof why, "verbs: %s: %s (status %d, vendor's %u)%s", v->nic[0].name,
             ibv_wc_status_str(wc->status), wc->status, wc->vendor_err,
             gone ? ": it answers no more (GSHMEM_IB_TIMEOUT, GSHMEM_IB_RETRY)"
             : wc->status == IBV_WC_REM_ACCESS_ERR ? ": it has taken back what it let this PE reach"
                                                   : "");
    if (l->state == LINK_TRIED && !l->heard_number) /* nothing has been done either way */
        link_give_up(v, l, why);
    else
        link_fail(v, l, gone ? GSHMEM_ERR_PEER_DEAD : GSHMEM_ERR_TRANSPORT, why);
}

/* ---- Replies ---- */

static bool send_reply(struct verbs *v, struct link *l, const struct message *m)
{
    return l->state == LINK_UP && issue_message(v, l, m);
}

static void reply(struct verbs *v, struct link *l, uint32_t number, uint64_t value)
{
    struct message m = {
        .kind = MESSAGE_REPLY, .from = (uint32_t)v->config.pe, .number = number, .a = value};

    l->owes_reply = false;
    if (l->reply_first == l->reply_end && send_reply(v, l, &m))
        return;
    /* never more than the other has messages without reply */
    l->reply[l->reply_end++ % REPLIES] = m;
}

static void send_replies(struct verbs *v, struct link *l)
{
    if (l->owes_reply)
        reply(v, l, l->heard_number, 0);
    while (l->reply_first != l->reply_end && send_reply(v, l, &l->reply[l->reply_first % REPLIES]))
        l->reply_first++;
    v->held_back |= l->reply_first != l->reply_end;
}

static bool take_reply(struct verbs *v, struct link *l, const struct message *m)
{
    if ((int32_t)(m->number - l->replied) <= 0 || (int32_t)(m->number - l->said) > 0)
        return false;
    for (uint32_t i = l->done; i != l->issuing; i++) {
        struct op *op = &l->op[i % OPS];
        if (op->wants_reply && op->number == m->number && op->request.kind == TRANSPORT_ATOMIC &&
            op->request.old)
            memcpy(op->request.old, &m->a, 8);
    }
    if (l->asking && l->asked_number == m->number) {
        l->asking = false;
        l->key[l->asked_segment][l->asked_chunk] = m->a;
        if (!m->a) {
            link_fail(v, l, GSHMEM_ERR_TRANSPORT, "verbs: it could not register its memory");
            return true;
        }
    }
    l->replied = m->number;
    return true;
}

/* ---- Requests ---- */

static bool do_put(struct verbs *v, const struct message *m)
{
    const struct transport_config *c = &v->config;
    char *at = segment_at(c, m->segment, m->offset, m->bytes);
    uint64_t *signal = NULL;

    if (m->signal_op)
        signal = (uint64_t *)(void *)segment_at_aligned(c, m->signal_segment, m->a, 8);
    if (!at || m->signal_op > GSHMEM_SIGNAL_ADD || (m->signal_op && !signal))
        return false;
    if (m->bytes && gpu_store(v, m->segment, at, m->data, m->bytes))
        return false;
    return !signal || !gpu_signal(v, m->signal_segment, signal, m->signal_op, m->b);
}

static bool do_atomic(struct verbs *v, const struct message *m, uint64_t *old)
{
    uint64_t bytes = atomic_type_bytes(m->type);
    char *at = bytes ? segment_at_aligned(&v->config, m->segment, m->offset, bytes) : NULL;

    if (!at || m->amo > GSHMEM_AMO_XOR)
        return false;
    return !gpu_apply(v, m->segment, (enum gshmem_amo)m->amo, m->type, at, m->a, m->b, old);
}

static bool do_message(struct verbs *v, struct link *l, const struct message *m)
{
    uint64_t value = 0;

    if (m->kind == MESSAGE_REPLY)
        return take_reply(v, l, m);
    if (m->kind == MESSAGE_HELLO) {
        bool first = !l->greeted;
        l->greeted = true;
        return first;
    }
    if (m->number != l->heard_number + 1)
        return false;
    l->heard_number = m->number;
    if (m->kind == MESSAGE_PUT) {
        l->owes_reply = true;
        return do_put(v, m);
    }
    if (m->kind == MESSAGE_ATOMIC && !do_atomic(v, m, &value))
        return false;
    if (m->kind == MESSAGE_KEY) {
        struct ibv_mr *mr =
            m->segment < v->config.segments ? memory_of_chunk(v, &v->nic[0], m->segment, m->offset) : NULL;
        value = mr ? 1ull << 32 | mr->rkey : 0;
    }
    if (m->kind == MESSAGE_ATOMIC && !m->signal_op)
        l->owes_reply = true;
    else
        reply(v, l, m->number, value);
    return true;
}

/* Which link a message belongs to; NULL: to none that there is. */
static struct link *sender(struct verbs *v, const struct ibv_wc *wc, const struct message *m)
{
    struct link *l = m->from < (uint32_t)v->config.n_pes ? v->to[m->from] : NULL;

    return l && l->qp && l->qp->qp_num == wc->qp_num ? l : NULL;
}

static struct link *received(struct verbs *v, const struct ibv_wc *wc)
{
    const struct message_bytes *text = &v->nic[0].inbox[wc->wr_id & ~RECEIVED];
    struct link *l = NULL;
    struct message m;

    if (wc->status == IBV_WC_SUCCESS && message_decode(text, wc->byte_len, &m))
        l = sender(v, wc, &m);
    if (l && !do_message(v, l, &m))
        link_fail(v, l, GSHMEM_ERR_TRANSPORT,
                  "verbs: it sent a message that makes no sense, or not for symmetric memory");
    if (!nic_receive_again(&v->nic[0], (uint32_t)(wc->wr_id & ~RECEIVED)))
        v->config.fail(GSHMEM_ERR_TRANSPORT, "verbs: %s takes a receive back no more", v->nic[0].name);
    return l;
}

/* ---- All ---- */

static struct link *sent(struct verbs *v, const struct ibv_wc *wc)
{
    struct link *l = v->to[wc->wr_id >> 32];

    if (!l || !l->qp) /* it has ended meanwhile */
        return NULL;
    if (wc->status == IBV_WC_SUCCESS)
        l->sends_done = (uint32_t)wc->wr_id;
    else
        explain(v, l, wc);
    return l;
}

void complete_go_on(struct verbs *v, struct link *l)
{
    link_try(v, l);
    issue_finish(v, l);
    if (l->state == LINK_UP)
        send_replies(v, l);
    issue_more(v, l);
    if (l->state == LINK_UP)
        issue_batched(v, l);
}

int complete_some(struct verbs *v)
{
    struct ibv_wc wc[POLL];
    struct link *touched[POLL];
    int n = ibv_poll_cq(v->nic[0].cq, POLL, wc);

    for (int i = 0; i < n; i++)
        touched[i] = wc[i].wr_id & RECEIVED ? received(v, &wc[i]) : sent(v, &wc[i]);
    for (int i = 0; i < n; i++) {
        if (touched[i] && (i + 1 == n || touched[i + 1] != touched[i]))
            complete_go_on(v, touched[i]);
    }
    if (n < 0)
        v->config.fail(GSHMEM_ERR_TRANSPORT, "verbs: %s: polling for completions failed",
                       v->nic[0].name);
    return n > 0 ? n : 0;
}
