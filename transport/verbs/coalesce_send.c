/* Sends what coalesced: as one message, as writes, or by the transport below. */
#include <string.h>

#include "transport/verbs/carry.h"
#include "transport/verbs/coalesce.h"
#include "transport/verbs/coalesced.h"
#include "transport/verbs/ops.h"
#include "transport/verbs/order.h"
#include "transport/verbs/peer.h"
#include "transport/verbs/post.h"
#include "transport/verbs/send.h"
#include "transport/verbs/verbs.h"

/* Whether no part of it may go as writes: updates; signals and records of a batch, which such a
 * path might write before what is before them. And only a message behind a write of iWARP shows
 * that the write has arrived. */
static bool coalesce_needs_message(const struct link *l, const struct coalesced *g)
{
    return g->updates || ((g->in_order || g->signals) && l->active[0]->reorders) ||
           l->active[0]->nic->iwarp;
}

/* Puts to a GPU's memory go as writes where NICs reach it: the target's proxy would copy them one
 * by one. */
static bool coalesce_goes_as_message(const struct verbs *v, const struct link *l,
                                     const struct coalesced *g)
{
    return coalesce_needs_message(l, g) || order_has_unapplied(l) || order_waits_for_writes(l) ||
           (g->signals && order_has_signals(l)) ||
           (g->of_device ? l->peer.gpu_below : g->changes >= v->coalesce_from);
}

/* The change that begins at `at`: how many bytes it takes. */
static uint32_t coalesce_take_change(const struct coalesced *g, uint32_t at,
                                     struct message_change *c)
{
    return message_next_change(g->text + at, g->bytes - at, c);
}

static void coalesce_close(struct link *l, const struct coalesced *g)
{
    if (l->coalesce.open == g)
        l->coalesce.open = NULL;
}

static bool coalesce_write(struct verbs *v, struct link *l, struct op *op, uint64_t at,
                           const struct message_change *put)
{
    struct path *p = l->active[0];
    uint64_t bytes = coalesced_data_bytes(put);
    uint32_t key = l->cached.key;

    if (!order_allows(l, p) ||
        (!(p == l->direct && peer_key_is_cached(l, put->segment, put->offset, bytes)) &&
         !peer_find_key(v, l, p, put->segment, put->offset, &bytes, &key)))
        return false;
    struct ibv_send_wr *wr = post_next(v, p, WORK_WRITE, op_number(l, op), at, 0); /* a packet */
    if (!wr)
        return false;
    wr->opcode = IBV_WR_RDMA_WRITE;
    wr->wr.rdma.remote_addr = l->peer.base[put->segment] + put->offset;
    wr->wr.rdma.rkey = key;
    post_within(p, wr, put->data, (uint32_t)bytes);
    op_sent_by(op, p);
    return true;
}

/* Writes the signals behind the data, where others may still come between; returns the bytes of
 * all. */
static uint32_t coalesce_complete(struct coalesced *g)
{
    memcpy(g->text + g->bytes, g->signal.text, g->signal.bytes);
    return g->bytes + g->signal.bytes;
}

/* The same for good: what joins later comes behind them. */
static void coalesce_seal(struct coalesced *g)
{
    g->bytes = coalesce_complete(g);
    if (g->signal.bytes)
        g->last = g->signal.last;
    g->signal.bytes = 0;
    g->signal.last.segment = UINT8_MAX;
}

/* Removes what comes before `at`. The change there gets the head of a far one, for which there is
 * room, as the first change had one. */
static void coalesce_cut(struct coalesced *g, uint32_t at)
{
    const struct message_change none = {.segment = UINT8_MAX};
    struct message_change c = {.offset = 0};
    unsigned char head[MESSAGE_CHANGE_FAR + 1];

    for (uint32_t i = 0; i <= at;)
        i += coalesce_take_change(g, i, &c);
    const uint32_t head_bytes = message_change_head(head, &none, &c);
    const uint32_t rest = (uint32_t)(g->text + g->bytes - c.data);
    memmove(g->text + head_bytes, c.data, rest);
    memcpy(g->text, head, head_bytes);
    g->bytes = head_bytes + rest;
    g->closed = true;
}

bool coalesce_issue(struct verbs *v, struct link *l, struct op *op)
{
    struct coalesced *g = op->coalesced;
    struct message_change c = {.offset = 0};

    coalesce_close(l, g);
    /* After a failure the rest may go by another path, when all before it has arrived. */
    if (op->at && op->at < coalesce_complete(g) && coalesce_needs_message(l, g)) {
        coalesce_seal(g);
        coalesce_cut(g, (uint32_t)op->at);
        op->at = 0;
    }
    const uint32_t end = coalesce_complete(g);
    if (op->at == 0 && coalesce_goes_as_message(v, l, g)) {
        struct message m = {.kind = MESSAGE_CHANGES, .bytes = (uint16_t)end, .data = g->text};
        if (!send_update(v, l, op, &m))
            return false;
        if (g->signals) /* if only some that are added, nothing but a write less is lost */
            l->messages.last_set = op->number;
        return true;
    }
    /* Some has been written, and may be in flight: the rest waits. */
    if (order_has_unapplied(l) || (g->signals && order_has_signals(l)))
        return false;
    for (uint32_t at = 0, taken; at < end; at += taken) {
        taken = message_next_change(g->text + at, end - at, &c);
        if (at < op->at)
            continue;
        if (!coalesce_write(v, l, op, at, &c))
            return false;
        op->at = at + taken;
    }
    return true;
}

/* ---- Below ---- */

/* Posts one change to the transport below, in order; false: that one is full. */
static bool coalesce_carry_change(struct verbs *v, struct link *l, struct op *op,
                                  const struct message_change *c)
{
    struct transport_request r = {.kind = c->bytes ? TRANSPORT_PUT : TRANSPORT_ATOMIC,
                                  .flags = TRANSPORT_MORE,
                                  .pe = l->pe,
                                  .segment = c->segment,
                                  .offset = c->offset,
                                  .local = (void *)(uintptr_t)c->data,
                                  .bytes = c->bytes,
                                  .amo = (enum gshmem_amo)c->amo,
                                  .type = c->type};

    if (c->bytes == 0)
        r.operand = message_get64(c->data);
    return carry_part(v, l, op, &r);
}

bool coalesce_carry(struct verbs *v, struct link *l, struct op *op)
{
    struct coalesced *g = op->coalesced;
    struct message_change c = {.offset = 0};

    coalesce_close(l, g);
    coalesce_seal(g);
    for (uint32_t at = 0, taken; at < g->bytes; at += taken) {
        taken = coalesce_take_change(g, at, &c);
        if (at < op->at)
            continue;
        if (l->state != LINK_BELOW || !coalesce_carry_change(v, l, op, &c)) {
            if (at)
                coalesce_cut(g, at);
            op->at = 0;
            return false;
        }
    }
    carry_no_more(op);
    return true;
}
