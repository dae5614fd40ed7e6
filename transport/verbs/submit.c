/* From requests to operations. The short ways come first: a lone small put, a lone update by a NIC,
 * and a small put that joins others. What they do not take goes the general way. */
#include "gshmem/rma.h"
#include "transport/verbs/atomics.h"
#include "transport/verbs/coalesce.h"
#include "transport/verbs/coalesced.h"
#include "transport/verbs/issue.h"
#include "transport/verbs/memory.h"
#include "transport/verbs/ops.h"
#include "transport/verbs/peer.h"
#include "transport/verbs/post.h"
#include "transport/verbs/submit.h"
#include "transport/verbs/verbs.h"

/* ---- The general way ---- */

/* Whether no path will ever be active. */
static bool submit_never_active(const struct link *l)
{
    for (int i = 0; i < l->paths; i++) {
        if (l->path[i]->state != PATH_NONE)
            return false;
    }
    return true;
}

/* Whether a NIC has work of this link, whose completion wakes the thread that makes progress. */
static bool submit_completions_are_due(const struct link *l)
{
    for (int i = 0; i < l->actives; i++) {
        const struct path *p = l->active[i];
        if (p->sends - p->done > p->batch.end - p->batch.first)
            return true;
    }
    return false;
}

/* When a collection begins, the operation before it is issued: nothing joins that one any more. */
static gshmem_status_t submit_coalesced(struct verbs *v, struct link *l,
                                        const struct transport_request *request)
{
    const uint32_t before = l->posted - 1;
    bool begun;
    gshmem_status_t status = coalesce_post(v, l, request, &begun);

    if (!begun)
        return status;
    issue_more(v, l);
    if (op_of(l, before)->coalesced && op_of(l, before)->wants_reply)
        post_batches(v, l); /* the target can begin with it */
    return status;
}

static gshmem_status_t submit_alone_in_turn(struct verbs *v, struct link *l,
                                            const struct transport_request *request)
{
    if (!op_has_room(v, l))
        return TRANSPORT_FULL;
    struct op *op = op_open(l, request);
    gshmem_status_t status = op_copies(request) ? op_keep_data(v, op) : GSHMEM_OK;
    l->posted += !status;
    return status;
}

/* Many records, which the target can begin with while the thread collects more. */
static bool submit_is_full_batch(const struct transport_request *request)
{
    return request->kind == TRANSPORT_BATCH && request->bytes > TRANSPORT_COPIED / 2;
}

/* As transport_ops.batches says. */
static bool submit_is_too_large(const struct transport_request *request)
{
    return request->kind == TRANSPORT_BATCH &&
           (request->each == TRANSPORT_GET || request->bytes > TRANSPORT_COPIED);
}

static gshmem_status_t submit_in_turn(struct verbs *v, struct link *l,
                                      const struct transport_request *request)
{
    if (l->state == LINK_FAILED)
        return l->failure;
    if (request->segment >= v->config.segments ||
        (request->signal_op && request->signal_segment >= v->config.segments))
        return v->config.fail(GSHMEM_ERR_ARGUMENT,
                              "verbs: a request to PE %d names a segment that there is not", l->pe);
    if (submit_is_too_large(request))
        return v->config.fail(GSHMEM_ERR_ARGUMENT,
                              "verbs: a batch of %llu B to PE %d, or one of gets",
                              (unsigned long long)request->bytes, l->pe);
    if (l->state == LINK_BELOW && l->posted == l->done && submit_never_active(l) &&
        !atomics_have(v, request))
        return v->below->ops->post(v->below, request);
    if (l->posted != l->done && coalesce_takes(l, request))
        return submit_coalesced(v, l, request);
    gshmem_status_t status = coalesce_takes_batch(l, request) ? coalesce_post_batch(v, l, request)
                                                              : submit_alone_in_turn(v, l, request);
    if (status)
        return status;
    issue_more(v, l);
    if (l->state != LINK_ACTIVE)
        v->settled = false;
    if (l->state != LINK_ACTIVE ||
        (request->flags & TRANSPORT_MORE &&
         (request->flags & TRANSPORT_HELD ||
          (!submit_is_full_batch(request) && submit_completions_are_due(l)))))
        v->held_back = true;
    else
        post_batches(v, l);
    return GSHMEM_OK; /* if the link failed within this call, done was called with that */
}

/* ---- A lone request ----
 *
 * A small put, or an update by a NIC, while no request before it is in flight, nor anything else
 * by its path. It has nothing to keep in order with or to wait for, and leaves at once, though
 * more may follow: those coalesce meanwhile. */

__attribute__((noinline)) static bool submit_cache_key(struct link *l,
                                                       const struct transport_request *r)
{
    const uint64_t from = r->offset / CHUNK_BYTES * CHUNK_BYTES,
                   key = peer_known_key(l, l->direct, r->segment, r->offset, r->bytes);

    if (!key)
        return false;
    const uint64_t all = l->peer.bytes[r->segment] - from;
    l->cached = (struct cached_key){.from = from,
                                    .bytes = all < CHUNK_BYTES ? all : CHUNK_BYTES,
                                    .base = l->peer.base[r->segment],
                                    .key = (uint32_t)key,
                                    .segment = r->segment};
    return true;
}

/* The operation is issued, and its one work request is all of it. */
static inline void submit_alone(struct link *l, struct op *op, struct path *p)
{
    op->issued = op->fenced = true;
    op->end[p->index] = p->sends;
    op->used = (uint16_t)(1u << p->index);
    l->alone.id = p->mark | p->sends;
    l->alone.path = p;
    l->order.epoch = op->request.epoch;
    l->issuing = ++l->posted;
}

static bool submit_lone_put(struct verbs *v, struct link *l, const struct transport_request *r)
{
    struct path *p = l->direct;

    /* `sent` is called when the put is done, which is soon enough */
    if (!p || (r->kind | r->signal_op) || !(r->flags & TRANSPORT_LOOSE) ||
        r->bytes - 1 >= p->lone.most ||
        (GSHMEM_UNLIKELY(!peer_key_is_cached(l, r->segment, r->offset, r->bytes)) &&
         !submit_cache_key(l, r)) ||
        !post_begin_alone(p, WORK_WRITE, l->posted, (uint32_t)r->bytes))
        return false;
    struct op *op = op_open(l, r);
    gshmem_copy(op->small, r->local, r->bytes);
    p->lone.wr.wr_id = p->mark | p->sends;
    p->lone.wr.wr.rdma.remote_addr = l->cached.base + r->offset;
    p->lone.wr.wr.rdma.rkey = l->cached.key;
    p->lone.sge.addr = (uintptr_t)op->small;
    p->lone.sge.length = (uint32_t)r->bytes;
    op->at = r->bytes;
    l->order.strict = false;
    submit_alone(l, op, p);
    post_lone(v, p);
    return true;
}

static bool submit_lone_update(struct verbs *v, struct link *l, const struct transport_request *r)
{
    struct path *p = l->updater;
    uint64_t key;

    if (r->kind != TRANSPORT_ATOMIC || l->state != LINK_ACTIVE || !l->updates ||
        p->state != PATH_ACTIVE || r->segment >= TRANSPORT_SEGMENT_MAX || !atomics_have(v, r) ||
        !(key = peer_known_key(l, p, r->segment, r->offset & ~7ull, 8)) ||
        !post_begin_alone(p, WORK_UPDATE, l->posted, 8))
        return false;
    struct op *op = op_open(l, r);
    const struct update u = atomics_update(op);
    atomics_fill_in(v, op, &u, (uint32_t)key, post_take_alone(p));
    l->order.strict = !(r->flags & TRANSPORT_LOOSE);
    submit_alone(l, op, p);
    if (op->held) /* it may be tried again */
        l->alone.id = NONE_ALONE;
    post_collected(v, p);
    return true;
}

/* ---- A small put that joins others ---- */

/* Called last, so that the compiler makes it a jump. */
__attribute__((noinline)) static gshmem_status_t submit_copy(void *to, const void *from,
                                                             uint64_t bytes)
{
    gshmem_copy(to, from, bytes);
    return GSHMEM_OK;
}

/* Begins another change, with a head of so many bytes. */
static inline uint32_t submit_begin_change(struct coalesced *g, const struct transport_request *r,
                                           uint32_t head)
{
    g->head = g->bytes;
    g->bytes += head;
    g->changes++;
    g->last.segment = r->segment;
    g->last.bytes = (uint8_t)r->bytes;
    g->last.offset = r->offset;
    return head;
}

/* A put whose signal is of the same word as the last one's. */
static inline bool submit_shares_signal(const struct verbs *v, const struct coalesced *g,
                                        const struct transport_request *r)
{
    return r->kind == TRANSPORT_PUT && r->bytes <= v->coalesce_signalled &&
           coalesced_shares_signal(g, r);
}

/* What coalesce_post does, for most puts of the CPU's memory. Not inline: it would make the lone
 * put save registers (docs/decisions/0014-verbs-small-puts.md). */
__attribute__((noinline)) static gshmem_status_t
submit_to_collection(struct verbs *v, struct link *l, const struct transport_request *r)
{
    struct coalesced *g = l->coalesce.open;
    const uint64_t bytes = r->bytes, distance = r->offset - g->last.offset;
    const uint64_t room = sizeof g->text - g->bytes - g->signal.bytes;
    unsigned char *at = g->text + g->bytes;

    if (((r->kind | r->signal_op) && !submit_shares_signal(v, g, r)) ||
        r->segment >= TRANSPORT_SEGMENT_MAX || !(r->flags & TRANSPORT_LOOSE) ||
        bytes - 1 >= MESSAGE_CHANGE_MOST || g->op->request.epoch != r->epoch ||
        r->offset % CHUNK_BYTES + bytes > CHUNK_BYTES ||
        r->offset + bytes > l->peer.bytes[r->segment] || room < MESSAGE_CHANGE_NEAR + bytes ||
        l->coalesce.joined_next - l->coalesce.joined_first == JOINED)
        return submit_in_turn(v, l, r);
    if (!message_is_near(&g->last, r->segment, distance)) {
        if (room < MESSAGE_CHANGE_FAR + bytes)
            return submit_in_turn(v, l, r);
        message_change_far(at, r->segment, r->offset, bytes);
        at += submit_begin_change(g, r, MESSAGE_CHANGE_FAR);
    } else if (distance == g->last.bytes && distance && distance + bytes <= MESSAGE_CHANGE_MOST &&
               r->offset % CHUNK_BYTES) {
        g->last.bytes = (uint8_t)(distance + bytes);
        g->text[g->head] = (unsigned char)(g->text[g->head] + bytes);
    } else {
        message_change_near(at, distance, bytes);
        at += submit_begin_change(g, r, MESSAGE_CHANGE_NEAR);
    }
    g->bytes += (uint32_t)bytes;
    if (r->signal_op)
        coalesced_share_signal(g, r);
    l->coalesce.joined[l->coalesce.joined_next % JOINED] = (struct joined){r->done, r->tag};
    g->op->joined_end = ++l->coalesce.joined_next;
    if (GSHMEM_UNLIKELY(bytes != 8))
        return submit_copy(at, r->local, bytes);
    memcpy(at, r->local, 8);
    return GSHMEM_OK;
}

/* ---- Which way ---- */

/* Not inline, for the registers that it takes. */
__attribute__((noinline)) static gshmem_status_t
submit_first(struct verbs *v, struct link *l, const struct transport_request *request)
{
    const bool went = !(request->flags & TRANSPORT_HELD) &&
                      (submit_lone_put(v, l, request) || submit_lone_update(v, l, request));

    return went ? GSHMEM_OK : submit_in_turn(v, l, request);
}

gshmem_status_t submit_request(struct verbs *v, struct link *l,
                               const struct transport_request *request)
{
    if (l->posted == l->done)
        return submit_first(v, l, request);
    return l->coalesce.open ? submit_to_collection(v, l, request) : submit_in_turn(v, l, request);
}
