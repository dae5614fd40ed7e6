/* Messages: what a peer asks this PE's CPU to do, and the replies both ways.
 *
 * A message is from a PE that has proved to be of the job; what it asks for is checked against the
 * symmetric segments all the same. */
#include <string.h>

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
static bool is_coming(const struct link *l)
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
    if (l->state != LINK_BELOW || is_coming(l))
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
    if (!m->signal_op)
        link_fail(v, l, GSHMEM_ERR_TRANSPORT, "verbs: it could not register its memory");
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
        return l->mended; /* it has come before a path broke, and again after */
    for (uint32_t i = l->done; i != l->posted; i++) {
        struct op *op = &l->op[i % OPS];
        if (op->wants_reply && op->number == m->number && op->request.kind == TRANSPORT_ATOMIC &&
            op->request.old)
            memcpy(op->request.old, &m->a, 8);
    }
    l->replied = m->number;
    return l->asking && l->asked_number == m->number ? take_keys(v, l, m) : true;
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

static bool do_update(struct verbs *v, const struct message_change *c)
{
    const struct message update = {.segment = c->segment,
                                   .offset = c->offset,
                                   .amo = c->amo,
                                   .type = c->type,
                                   .a = message_get64(c->data)};
    uint64_t old;

    return c->amo != GSHMEM_AMO_COMPARE_SWAP && do_atomic(v, &update, &old);
}

static bool do_changes(struct verbs *v, const struct message *m)
{
    const unsigned char *at = m->data;
    struct message_change c = {.offset = 0};

    for (uint32_t left = m->bytes, taken; left; at += taken, left -= taken) {
        if (!(taken = message_next_change(at, left, &c)))
            return false;
        char *to = c.bytes ? segment_at(&v->config, c.segment, c.offset, c.bytes) : NULL;
        if (c.bytes ? !to || gpu_store(v, c.segment, to, c.data, c.bytes) : !do_update(v, &c))
            return false;
    }
    return true;
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

bool serve_do(struct verbs *v, struct link *l, const struct message *m)
{
    struct message answer = {.number = m->number};

    l->served_number = m->number;
    if (m->kind == MESSAGE_PUT || m->kind == MESSAGE_CHANGES) {
        l->owes_reply = true;
        return m->kind == MESSAGE_PUT ? do_put(v, m) : do_changes(v, m);
    }
    if (m->kind == MESSAGE_ATOMIC && !do_atomic(v, m, &answer.a))
        return false;
    if (m->kind == MESSAGE_KEY)
        find_keys(v, l, m, &answer);
    if (m->kind == MESSAGE_ATOMIC && !m->signal_op)
        l->owes_reply = true;
    else
        reply(v, l, answer);
    return true;
}

bool serve_message(struct verbs *v, struct link *l, const struct message *m)
{
    if (m->kind == MESSAGE_REPLY)
        return serve_take_reply(v, l, m);
    if (m->number != l->heard_number + 1) /* or it came by a path that broke, and again after */
        return l->mended && !is_after(m->number, l->heard_number);
    l->heard_number = m->number;
    return stage_hears(l, m) ? stage_hear(v, l, m) : serve_do(v, l, m);
}
