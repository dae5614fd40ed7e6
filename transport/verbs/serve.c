/* Messages: what a peer asks this PE's CPU to do, and the replies both ways.
 *
 * A message is from a PE that has proved to be of the job; what it asks for is checked against the
 * symmetric segments all the same. */
#include <string.h>

#include "device/device.h"
#include "runtime/base/atomic_type.h"
#include "transport/segment.h"
#include "transport/verbs/note.h"
#include "transport/verbs/verbs.h"

/* ---- Replies ---- */

/* The last ones are kept: those that a broken path has not delivered are sent again. No more than
 * those can be without the other's knowing, as it waits when a window of messages has no reply. */
static void reply(struct verbs *v, struct link *l, struct message m)
{
    m.kind = MESSAGE_REPLY;
    m.from = (uint32_t)v->config.pe;
    l->owes_reply = false;
    l->reply[l->reply_end++ % REPLIES] = m;
}

/* Whether a path is coming up, by which messages may come already, but no reply can go yet. */
static bool serve_is_coming(const struct link *l)
{
    for (int i = 0; i < l->paths; i++) {
        if (l->path[i]->state == PATH_READY || l->path[i]->state == PATH_TRIED)
            return true;
    }
    return false;
}

/* By a note only when no later reply can overtake it, by a path. */
static bool send_reply(struct verbs *v, struct link *l, const struct message *m)
{
    struct note n = {.kind = NOTE_REPLY};

    if (l->messenger)
        return l->messenger->state == PATH_UP &&
               post_message(v, l->messenger, WORK_OTHER, 0, m);
    if (l->state != LINK_BELOW || serve_is_coming(l))
        return false;
    message_encode(&n.reply, m);
    return link_say(v, l, &n);
}

void serve_replies(struct verbs *v, struct link *l)
{
    if (l->owes_reply)
        reply(v, l, (struct message){.number = l->served_number});
    while (l->reply_next != l->reply_end && send_reply(v, l, &l->reply[l->reply_next % REPLIES]))
        l->reply_next++;
    v->held_back |= l->reply_next != l->reply_end;
}

/* The keys of a chunk, of all NICs that both sides have in common. */
static bool take_keys(struct verbs *v, struct link *l, const struct message *m)
{
    const uint64_t pair[] = {m->a, m->b};
    uint64_t *key = &l->key[l->asked_segment][l->asked_chunk * (uint64_t)l->rails];

    l->asking = false;
    if (!m->signal_op && v->config.segment[l->asked_segment].by_nic)
        link_fail(v, l, GSHMEM_ERR_TRANSPORT, "verbs: it could not register its memory, which NICs alone update");
    else if (!m->signal_op)
        link_go_below(v, l, "its memory cannot be registered");
    for (int i = 0; i < l->rails; i++) {
        if (m->signal_op >> i & 1)
            key[i] = 1ull << 32 | (uint32_t)(pair[i / 2] >> 32 * (i % 2));
    }
    return true;
}

bool serve_take_reply(struct verbs *v, struct link *l, const struct message *m)
{
    if (is_after(m->number, l->said))
        return false;
    if (!is_after(m->number, l->replied))
        return l->recovered; /* it has come before a path broke, and again after */
    for (uint32_t i = l->done; i != l->posted; i++) {
        struct op *op = op_of(l, i);
        if (op->wants_reply && op->number == m->number && op->request.kind == TRANSPORT_ATOMIC &&
            op->request.old)
            memcpy(op->request.old, &m->a, 8);
    }
    l->replied = m->number;
    return l->asking && l->asked_number == m->number ? take_keys(v, l, m) : true;
}

/* ---- Requests ---- */

static enum served do_put(struct verbs *v, const struct message *m, struct serving *s)
{
    const struct transport_config *c = &v->config;
    const bool begun = s->update != 0; /* the heap may have shrunk since */
    char *at = segment_at(c, m->segment, m->offset, m->bytes);
    uint64_t *signal = NULL;

    if (m->signal_op)
        signal = (uint64_t *)(void *)segment_at_aligned(c, m->signal_segment, m->a, 8);
    if (!begun && ((!at && !s->stored) || m->signal_op > GSHMEM_SIGNAL_ADD || (m->signal_op && !signal)))
        return SERVED_NEVER;
    if (m->bytes && !s->stored && gpu_store(v, m->segment, at, m->data, m->bytes))
        return SERVED_NEVER;
    s->stored = true;
    return m->signal_op ? gpu_signal(v, m->signal_segment, signal, m->signal_op, m->b, &s->update) : SERVED;
}

static enum served do_atomic(struct verbs *v, const struct message *m, struct serving *s, uint64_t *old)
{
    const uint64_t bytes = atomic_type_bytes(m->type);
    const struct device_update u = {
        .op = (enum gshmem_amo)m->amo,
        .type = m->type,
        .at = bytes ? segment_at_aligned(&v->config, m->segment, m->offset, bytes) : NULL,
        .operand = m->a,
        .compare = m->b};

    return (u.at || s->update) && m->amo < GSHMEM_AMO_COUNT ? gpu_apply(v, m->segment, &u, &s->update, old) : SERVED_NEVER;
}

static enum served do_update(struct verbs *v, const struct message_change *c, struct serving *s)
{
    const struct message update = {.segment = c->segment,
                                   .offset = c->offset,
                                   .amo = c->amo,
                                   .type = c->type,
                                   .a = message_get64(c->data)};
    uint64_t old;

    return c->amo != GSHMEM_AMO_COMPARE_SWAP ? do_atomic(v, &update, s, &old) : SERVED_NEVER;
}

static enum served do_change(struct verbs *v, const struct message_change *c, struct serving *s)
{
    char *to;

    if (c->bytes == 0)
        return do_update(v, c, s);
    to = segment_at(&v->config, c->segment, c->offset, c->bytes);
    return to && !gpu_store(v, c->segment, to, c->data, c->bytes) ? SERVED : SERVED_NEVER;
}

static enum served do_changes(struct verbs *v, const struct message *m, struct serving *s)
{
    while (s->taken < m->bytes) {
        struct message_change c = s->last;
        const uint32_t taken = message_next_change((const unsigned char *)m->data + s->taken,
                                                   m->bytes - s->taken, &c);
        const enum served how = taken ? do_change(v, &c, s) : SERVED_NEVER;
        if (how != SERVED)
            return how;
        s->taken += taken;
        s->last = c;
    }
    return SERVED;
}

/* All of them, or none. */
static void find_keys(struct verbs *v, const struct link *l, const struct message *m,
                      struct message *answer)
{
    uint64_t pair[2] = {0};

    if (m->segment >= v->config.segments)
        return;
    for (int i = 0; i < m->amo && i < l->pairs; i++) {
        struct nic *nic = &v->nic[l->rail[i].mine];
        struct ibv_mr *mr = NULL;
        if (nic->gone)
            continue;
        if (!(mr = memory_of_chunk(v, nic, m->segment, m->offset))) {
            answer->signal_op = 0;
            return;
        }
        pair[i / 2] |= (uint64_t)mr->rkey << 32 * (i % 2);
        answer->signal_op |= (uint8_t)(1u << i);
    }
    answer->a = pair[0];
    answer->b = pair[1];
}

enum served serve_do(struct verbs *v, struct link *l, const struct message *m, struct serving *s)
{
    struct message answer = {.number = m->number};
    enum served how = SERVED;

    if (m->kind == MESSAGE_PUT)
        how = do_put(v, m, s);
    else if (m->kind == MESSAGE_CHANGES)
        how = do_changes(v, m, s);
    else if (m->kind == MESSAGE_ATOMIC)
        how = do_atomic(v, m, s, &answer.a);
    else
        find_keys(v, l, m, &answer);
    if (how != SERVED)
        return how;
    l->served_number = m->number;
    if (m->kind == MESSAGE_KEY || (m->kind == MESSAGE_ATOMIC && m->signal_op))
        reply(v, l, answer);
    else
        l->owes_reply = true;
    return SERVED;
}

bool serve_message(struct verbs *v, struct link *l, const struct message *m)
{
    struct serving s = {.update = 0};
    enum served how;

    if (m->kind == MESSAGE_REPLY)
        return serve_take_reply(v, l, m);
    if (m->number != l->heard_number + 1) /* or it came by a path that broke, and again after */
        return l->recovered && !is_after(m->number, l->heard_number);
    l->heard_number = m->number;
    if (stage_hears(l, m))
        return stage_hear(v, l, m, &s);
    how = serve_do(v, l, m, &s);
    if (how != SERVED_LATER)
        return how == SERVED;
    if (stage_hear(v, l, m, &s))
        return true;
    gpu_forget(v, &s.update);
    return false;
}
