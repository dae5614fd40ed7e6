/* Messages of a peer, in the order of their numbers. Most are carried out as they come (serve.c);
 * these wait:
 *
 * - a chunk of staged data, which a NIC and the device move by and by. A chunk moves by the path
 *   that its message came by;
 * - an update of GPU memory, which may take as long as kernels fill the GPU;
 * - what comes behind one of these. Only a chunk that is behind no fence overlaps what is before
 *   it.
 *
 * When the path fails, the first chunk that is not carried out and all behind it count as not
 * received, and the initiator sends them again. An update needs no path and stays, as it may be
 * half done. */
#include <string.h>

#include "runtime/base/clock.h"
#include "runtime/base/settings.h"
#include "transport/segment.h"
#include "transport/verbs/atomics.h"
#include "transport/verbs/control.h"
#include "transport/verbs/gpu.h"
#include "transport/verbs/memory.h"
#include "transport/verbs/pending.h"
#include "transport/verbs/post.h"
#include "transport/verbs/serve.h"
#include "transport/verbs/staged.h"
#include "transport/verbs/verbs.h"

enum { ALIVE_NS = 1000 * 1000 * 1000 };

static struct pending *pending_at(struct link_staging *s, uint32_t i)
{
    return &s->pending[i % PENDING];
}

/* ---- Coming ---- */

static bool pending_has_data(const struct message *m)
{
    return m->kind == MESSAGE_TAKE || m->kind == MESSAGE_GIVE;
}

static bool pending_must_wait(const struct link *l, const struct message *m)
{
    return pending_has_data(m) ||
           (l->staging && l->staging->pending_first != l->staging->pending_next);
}

static bool pending_append(struct verbs *v, struct link *l, const struct message *m,
                           const struct serving *begun)
{
    struct link_staging *s = staged_of(v, l);

    if (!s || s->pending_next - s->pending_first == PENDING)
        return false;
    struct pending *h = pending_at(s, s->pending_next);
    *h = (struct pending){.m = *m, .serving = *begun};
    if (pending_has_data(m)) {
        const uint64_t bytes = m->b & 0xffffffff;
        if (!bytes || bytes > STAGED_MOST || !segment_at(&v->config, m->segment, m->offset, bytes))
            return false;
    } else if (m->bytes) {
        memcpy(h->data, m->data, m->bytes);
        h->m.data = h->data;
    }
    s->pending_next++;
    v->held_back = true;
    return true;
}

bool pending_receive(struct verbs *v, struct link *l, const struct message *m)
{
    struct serving s = {.update = 0};
    enum served how;

    if (m->kind == MESSAGE_REPLY)
        return serve_take_reply(v, l, m);
    if (m->number !=
        l->target.received + 1) /* or it came by a path that failed, and again by another */
        return l->recovery.begun && !is_after(m->number, l->target.received);
    l->target.received = m->number;
    if (pending_must_wait(l, m))
        return pending_append(v, l, m, &s);
    how = serve_message(v, l, m, &s);
    if (how != SERVED_LATER)
        return how == SERVED;
    if (pending_append(v, l, m, &s))
        return true;
    gpu_forget(v, &s.update);
    return false;
}

/* ---- Moving data ---- */

/* The NIC moves the next bytes between the peer's memory and this PE's; false: not now. */
static bool pending_move(struct verbs *v, struct link *l, struct pending *h, struct ibv_sge here)
{
    struct path *p = l->target.by;
    struct ibv_send_wr *wr;

    if (p->state != PATH_ACTIVE || !(wr = post_next(v, p, WORK_OTHER, 0, 0, h->bytes)))
        return false;
    wr->opcode = h->m.kind == MESSAGE_TAKE ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE;
    wr->wr.rdma.remote_addr = h->m.a + h->moved;
    wr->wr.rdma.rkey = (uint32_t)(h->m.b >> 32);
    *wr->sg_list = here;
    h->end = p->sends;
    h->state = PENDING_MOVES;
    return true;
}

/* This PE's memory cannot be registered: the link goes below, and the peer requests the data
 * there. */
static void pending_give_up(struct verbs *v, struct link *l)
{
    v->report->memory_refused(v, l, "what is to be staged cannot be registered");
}

static void pending_move_directly(struct verbs *v, struct link *l, struct pending *h, char *at)
{
    h->bytes = (h->m.b & 0xffffffff) - h->moved;
    struct ibv_mr *mr = memory_of(v, l->target.by->nic, at, &h->bytes);

    if (mr)
        pending_move(v, l, h, (struct ibv_sge){(uintptr_t)at, (uint32_t)h->bytes, mr->lkey});
    else
        pending_give_up(v, l);
}

static void pending_move_buffer(struct verbs *v, struct link *l, struct pending *h)
{
    struct ibv_mr *mr = staged_pool(v, l->target.by->nic);

    if (mr)
        pending_move(v, l, h,
                     (struct ibv_sge){(uintptr_t)h->buffer->at, (uint32_t)h->bytes, mr->lkey});
    else
        pending_give_up(v, l);
}

static bool pending_copy(struct pending *h, void *to, const void *from)
{
    h->state = PENDING_COPIED;
    return !staging_begin(h->buffer, to, from, h->bytes);
}

static void pending_end_part(struct pending *h)
{
    h->moved += h->bytes;
    h->state = h->moved == (h->m.b & 0xffffffff) ? PENDING_DONE : PENDING_WAITS;
    staged_let_go(&h->buffer);
}

/* The next step of a chunk, if it can be taken; false: it has failed. */
static bool pending_step(struct verbs *v, struct link *l, struct pending *h)
{
    const bool takes = h->m.kind == MESSAGE_TAKE;
    const bool staged = v->gpu_below && v->config.segment[h->m.segment].of_device;
    char *at = segment_at(&v->config, h->m.segment, h->m.offset, h->m.b & 0xffffffff);

    if (!at)
        return false;
    at += h->moved;
    switch (h->state) {
    case PENDING_WAITS:
        if (!staged) {
            pending_move_directly(v, l, h, at);
            return true;
        }
        h->bytes = (h->m.b & 0xffffffff) - h->moved;
        if (!h->buffer && !(h->buffer = staging_take(&v->staging, STAGING_IN, h->bytes, NULL)))
            return !v->staging.failed;
        h->bytes = staged_least(h->bytes, h->buffer->room);
        if (!takes)
            return pending_copy(h, h->buffer->at, at);
        pending_move_buffer(v, l, h);
        return true;
    case PENDING_MOVES:
        if (is_after(h->end, l->target.by->done))
            return true;
        if (staged && takes)
            return pending_copy(h, at, h->buffer->at);
        pending_end_part(h);
        return true;
    case PENDING_COPIED:
        if (h->buffer->copying)
            return true;
        if (h->buffer->copied)
            return false;
        if (takes)
            pending_end_part(h);
        else
            pending_move_buffer(v, l, h);
        return true;
    default:
        return true;
    }
}

/* ---- In their turn ---- */

/* The device may take long for an update. The peer, which waits for the reply, is told every second
 * that this PE lives: it would take this PE for failed otherwise (watch_peers). */
static void pending_send_alive(struct verbs *v, struct link *l)
{
    const uint64_t limit_ns = (uint64_t)v->config.number(SETTING_PEER_TIMEOUT) * 1000000000u;
    const uint64_t now = clock_ns(), since = now - l->staging->alive_ns;
    const struct control alive = {.kind = CONTROL_ALIVE};

    if (!l->staging->alive_ns ||
        ((since >= ALIVE_NS || since >= limit_ns / 8) && control_send(v, l, &alive)))
        l->staging->alive_ns = now;
}

/* All steps of a chunk that can be taken now; false: it has failed. */
static bool pending_advance(struct verbs *v, struct link *l, struct pending *h)
{
    for (enum pending_state before = PENDING_DONE; h->state != before;) {
        before = h->state;
        if (!pending_step(v, l, h))
            return false;
    }
    if (h->state == PENDING_DONE && h == pending_at(l->staging, l->staging->pending_first)) {
        l->target.served = h->m.number;
        l->target.owes_reply = true;
        l->staging->pending_first++;
    }
    return true;
}

/* The first message, which has no data to move. */
static enum served pending_serve_first(struct verbs *v, struct link *l)
{
    struct link_staging *s = l->staging;
    struct pending *h = pending_at(s, s->pending_first);
    const enum served how = serve_message(v, l, &h->m, &h->serving);

    if (how == SERVED_LATER) {
        pending_send_alive(v, l);
    } else if (how == SERVED) {
        s->pending_first++;
        s->alive_ns = 0;
    }
    return how;
}

/* All messages that wait, in order. A chunk that is behind no fence overlaps what is before it; a
 * chunk behind a fence does not, nor does any other message. */
static bool pending_serve(struct verbs *v, struct link *l)
{
    struct link_staging *s = l->staging;

    for (uint32_t i = s->pending_first; is_after(s->pending_next, i); i++) {
        struct pending *h = pending_at(s, i);
        const bool first = i == s->pending_first, data = pending_has_data(&h->m);
        if (!first && (h->m.amo || !data))
            break;
        if (data ? !pending_advance(v, l, h) : pending_serve_first(v, l) == SERVED_NEVER)
            return false;
    }
    v->held_back |= s->pending_first != s->pending_next;
    return true;
}

/* Drops all messages from that one on. */
static void pending_drop(struct link *l, uint32_t from)
{
    struct link_staging *s = l->staging;

    for (; s->pending_next != from; s->pending_next--) {
        struct pending *h = pending_at(s, s->pending_next - 1);
        staged_let_go(&h->buffer);
        gpu_forget(l->verbs, &h->serving.update);
    }
}

void pending_forget(struct link *l)
{
    struct link_staging *s = l->staging;

    if (!s)
        return;
    uint32_t from = s->pending_first;
    while (from != s->pending_next && !pending_has_data(&pending_at(s, from)->m))
        from++;
    l->target.received = l->target.served + (from - s->pending_first);
    pending_drop(l, from);
}

void pending_go_on(struct verbs *v, struct link *l)
{
    if (l->state != LINK_FAILED)
        staged_go_on(v, l);
    if (l->state != LINK_FAILED && !pending_serve(v, l))
        v->report->link_failed(v, l, GSHMEM_ERR_TRANSPORT,
                               "verbs: its request for GPU memory could not be carried out");
}

bool pending_is_busy(const struct link *l)
{
    return l->staging && l->staging->pending_first != l->staging->pending_next;
}

void pending_end(struct link *l)
{
    staged_end(l);
    if (l->staging)
        pending_drop(l, l->staging->pending_first);
}
