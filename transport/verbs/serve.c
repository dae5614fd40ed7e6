/* Messages that this PE's CPU carries out for a peer, and the replies both ways.
 *
 * A message comes from a PE that has proved to be of the job. Its addresses are checked against the
 * symmetric segments all the same. */
#include <string.h>

#include "device/device.h"
#include "runtime/base/atomic_type.h"
#include "transport/batch_target.h"
#include "transport/segment.h"
#include "transport/verbs/control.h"
#include "transport/verbs/eager.h"
#include "transport/verbs/gpu.h"
#include "transport/verbs/memory.h"
#include "transport/verbs/post.h"
#include "transport/verbs/serve.h"
#include "transport/verbs/verbs.h"

/* ---- Replies ---- */

/* The last REPLIES replies are kept, as those that a failed path has not delivered are sent
 * again. No more can be unknown to the peer, which waits when a window of messages has no reply. */
static void serve_queue_reply(struct verbs *v, struct link *l, struct message m)
{
    m.kind = MESSAGE_REPLY;
    m.from = (uint32_t)v->config.pe;
    l->target.owes_reply = false;
    l->target.reply[l->target.reply_end++ % REPLIES] = m;
}

/* Whether a path is being set up: messages may come by it already, but no reply can go yet. */
static bool serve_path_is_coming(const struct link *l)
{
    for (int i = 0; i < l->paths; i++) {
        if (l->path[i]->state == PATH_READY || l->path[i]->state == PATH_PROBED)
            return true;
    }
    return false;
}

/* A reply goes by a control message only where no later one can overtake it by a path. */
static bool serve_send_reply(struct verbs *v, struct link *l, const struct message *m)
{
    struct control n = {.kind = CONTROL_REPLY};

    if (l->messenger)
        return l->messenger->state == PATH_ACTIVE &&
               post_message(v, l->messenger, WORK_OTHER, 0, m);
    if (l->state != LINK_BELOW || serve_path_is_coming(l))
        return false;
    message_encode(&n.reply, m);
    return control_send(v, l, &n);
}

void serve_send_replies(struct verbs *v, struct link *l)
{
    if (l->target.owes_reply)
        serve_queue_reply(v, l, (struct message){.number = l->target.served});
    while (l->target.reply_next != l->target.reply_end &&
           serve_send_reply(v, l, &l->target.reply[l->target.reply_next % REPLIES]))
        l->target.reply_next++;
    v->held_back |= l->target.reply_next != l->target.reply_end;
}

/* The keys of a chunk, or of the eager buffers, for all pairs of NICs. */
static bool serve_take_keys(struct verbs *v, struct link *l, const struct message *m)
{
    const int segment = l->key_request.segment;
    const bool eager = segment == MESSAGE_EAGER;
    const uint64_t pair[] = {m->a, m->b};
    uint64_t *key = eager ? l->batches.key
                          : &l->peer.key[segment][l->key_request.chunk * (uint64_t)l->peer.rails];

    l->key_request.pending = false;
    if (eager)
        l->batches.address = m->offset;
    if (!m->signal_op && !eager && v->config.segment[segment].by_nic)
        v->report->link_failed(v, l, GSHMEM_ERR_TRANSPORT,
                               "verbs: it could not register its memory, which only NICs update");
    else if (!m->signal_op)
        v->report->memory_refused(v, l, "its memory cannot be registered");
    for (int i = 0; i < l->peer.rails; i++) {
        if (m->signal_op >> i & 1)
            key[i] = 1ull << 32 | (uint32_t)(pair[i / 2] >> 32 * (i % 2));
    }
    return true;
}

bool serve_take_reply(struct verbs *v, struct link *l, const struct message *m)
{
    if (is_after(m->number, l->messages.sent))
        return false;
    if (!is_after(m->number, l->messages.replied))
        return l->recovery.begun; /* it has come before a path failed, and again after */
    for (uint32_t i = l->done; i != l->posted; i++) {
        struct op *op = op_of(l, i);
        if (op->wants_reply && op->number == m->number && op->request.kind == TRANSPORT_ATOMIC &&
            op->request.old)
            memcpy(op->request.old, &m->a, 8);
    }
    l->messages.replied = m->number;
    return l->key_request.pending && l->key_request.number == m->number ? serve_take_keys(v, l, m)
                                                                        : true;
}

/* ---- Requests ---- */

static enum served serve_put(struct verbs *v, const struct message *m, struct serving *s)
{
    const struct transport_config *c = &v->config;
    const bool begun = s->update != 0; /* the heap may have shrunk since */
    char *at = segment_at(c, m->segment, m->offset, m->bytes);
    uint64_t *signal = NULL;

    if (m->signal_op)
        signal = (uint64_t *)(void *)segment_at_aligned(c, m->signal_segment, m->a, 8);
    if (!begun &&
        ((!at && !s->stored) || m->signal_op > GSHMEM_SIGNAL_ADD || (m->signal_op && !signal)))
        return SERVED_NEVER;
    if (m->bytes && !s->stored && gpu_store(v, m->segment, at, m->data, m->bytes))
        return SERVED_NEVER;
    s->stored = true;
    return m->signal_op ? gpu_signal(v, m->signal_segment, signal, m->signal_op, m->b, &s->update)
                        : SERVED;
}

static enum served serve_atomic(struct verbs *v, const struct message *m, struct serving *s,
                                uint64_t *old)
{
    const uint64_t bytes = atomic_type_bytes(m->type);
    const struct device_update u = {
        .op = (enum gshmem_amo)m->amo,
        .type = m->type,
        .at = bytes ? segment_at_aligned(&v->config, m->segment, m->offset, bytes) : NULL,
        .operand = m->a,
        .compare = m->b};

    return (u.at || s->update) && m->amo < GSHMEM_AMO_COUNT
               ? gpu_apply(v, m->segment, &u, &s->update, old)
               : SERVED_NEVER;
}

static enum served serve_update(struct verbs *v, const struct message_change *c, struct serving *s)
{
    const struct message update = {.segment = c->segment,
                                   .offset = c->offset,
                                   .amo = c->amo,
                                   .type = c->type,
                                   .a = message_get64(c->data)};
    uint64_t old;

    return c->amo != GSHMEM_AMO_COMPARE_SWAP ? serve_atomic(v, &update, s, &old) : SERVED_NEVER;
}

static enum served serve_change(struct verbs *v, const struct message_change *c, struct serving *s)
{
    char *to;

    if (c->bytes == 0)
        return serve_update(v, c, s);
    to = segment_at(&v->config, c->segment, c->offset, c->bytes);
    return to && !gpu_store(v, c->segment, to, c->data, c->bytes) ? SERVED : SERVED_NEVER;
}

static enum served serve_changes(struct verbs *v, const struct message *m, struct serving *s)
{
    while (s->taken < m->bytes) {
        struct message_change c = s->last;
        const uint32_t taken =
            message_next_change((const unsigned char *)m->data + s->taken, m->bytes - s->taken, &c);
        const enum served how = taken ? serve_change(v, &c, s) : SERVED_NEVER;
        if (how != SERVED)
            return how;
        s->taken += taken;
        s->last = c;
    }
    return SERVED;
}

/* Puts, or updates of memory that the CPU updates. */
static enum served serve_batch(struct verbs *v, const struct link *l, const struct message *m)
{
    struct batch_object o = {.config = &v->config,
                             .offset = m->offset,
                             .segment = m->segment,
                             .each = m->signal_op,
                             .amo = m->amo,
                             .type = m->type,
                             .bytes = m->signal_segment};
    const uint64_t bytes = m->a * batch_record_bytes(o.each, o.bytes);
    const char *records = eager_records(l, m->b);

    if (!records || bytes > EAGER_BYTES || o.each == TRANSPORT_GET ||
        !batch_is_sound(o.each, m->a, o.bytes, bytes) || !batch_find_object(&o) ||
        (o.each == TRANSPORT_ATOMIC && v->config.segment[o.segment].by_nic))
        return SERVED_NEVER;
    return batch_carry_out(&o, records, m->a) ? SERVED : SERVED_NEVER;
}

static struct ibv_mr *serve_find_registration(struct verbs *v, struct link *l, struct nic *nic,
                                              const struct message *m)
{
    return m->segment == MESSAGE_EAGER ? eager_registration(v, l, nic)
                                       : memory_of_chunk(v, nic, m->segment, m->offset);
}

/* The keys for all pairs of NICs, or none. */
static void serve_find_keys(struct verbs *v, struct link *l, const struct message *m,
                            struct message *reply)
{
    uint64_t pair[2] = {0};

    if (m->segment >= v->config.segments && m->segment != MESSAGE_EAGER)
        return;
    for (int i = 0; i < m->amo && i < l->peer.pairs; i++) {
        struct nic *nic = &v->nic[l->peer.rail[i].mine];
        struct ibv_mr *mr = NULL;
        if (nic->gone)
            continue;
        if (!(mr = serve_find_registration(v, l, nic, m))) {
            reply->signal_op = 0;
            return;
        }
        pair[i / 2] |= (uint64_t)mr->rkey << 32 * (i % 2);
        reply->signal_op |= (uint8_t)(1u << i);
    }
    reply->a = pair[0];
    reply->b = pair[1];
    if (m->segment == MESSAGE_EAGER)
        reply->offset = (uintptr_t)eager_records(l, 0);
}

enum served serve_message(struct verbs *v, struct link *l, const struct message *m,
                          struct serving *s)
{
    struct message reply = {.number = m->number};
    enum served how = SERVED;

    if (m->kind == MESSAGE_PUT)
        how = serve_put(v, m, s);
    else if (m->kind == MESSAGE_CHANGES)
        how = serve_changes(v, m, s);
    else if (m->kind == MESSAGE_BATCH)
        how = serve_batch(v, l, m);
    else if (m->kind == MESSAGE_ATOMIC)
        how = serve_atomic(v, m, s, &reply.a);
    else
        serve_find_keys(v, l, m, &reply);
    if (how != SERVED)
        return how;
    l->target.served = m->number;
    if (m->kind == MESSAGE_KEY || (m->kind == MESSAGE_ATOMIC && m->signal_op))
        serve_queue_reply(v, l, reply);
    else
        l->target.owes_reply = true;
    return SERVED;
}
