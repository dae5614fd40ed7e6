/* Signals of puts, each behind the data of its put.
 *
 * A signal that is added is a message to the target's proxy, since CPUs update the same word. One
 * that is set is a write behind the put's own, on the same queue pair. Where NICs may reorder
 * writes (path.reorders) it is a message too, which the target is given when all before it is in
 * its place.
 *
 * Signals share:
 * - While something is in flight, the signal of a loose put of which it is said that more follow
 *   waits (the operation is held). It goes with others when the data of SHARE_BYTES waits for a
 *   signal, when a round has brought no other one, when nothing is in flight any more, or before a
 *   fence.
 * - Signals of one word that go together are one: the last value that is set, or the sum of those
 *   that are added. All their data is before it.
 * - Signals of several words are one message, but for a few that are set, which are writes.
 *
 * Collections (coalesce.c) do the same for puts that are small enough to travel in a message. */
#include "gshmem/rma.h"
#include "gshmem/type.h"
#include "transport/verbs/atomics.h"
#include "transport/verbs/coalesced.h"
#include "transport/verbs/ops.h"
#include "transport/verbs/order.h"
#include "transport/verbs/peer.h"
#include "transport/verbs/post.h"
#include "transport/verbs/send.h"
#include "transport/verbs/signals.h"
#include "transport/verbs/staged.h"
#include "transport/verbs/verbs.h"

/* All of them fit in a message. */
enum { SHARE_WORDS = MESSAGE_CHANGES_DATA / (MESSAGE_CHANGE_FAR + MESSAGE_CHANGE_UPDATE) };

/* ---- One signal ---- */

bool signals_send_put(struct verbs *v, struct link *l, struct op *op, bool data)
{
    const struct transport_request *r = &op->request;
    const bool signals = !atomics_have(v, r); /* else the target's NIC does */
    struct message m = {.kind = MESSAGE_PUT,
                        .segment = (uint8_t)r->segment,
                        .bytes = (uint16_t)(data ? r->bytes : 0),
                        .offset = data ? r->offset : 0,
                        .data = op_data(v, op),
                        .signal_op = (uint8_t)(signals ? r->signal_op : 0),
                        .signal_segment = (uint8_t)r->signal_segment,
                        .a = r->signal_offset,
                        .b = r->signal_value};

    if (!send_update(v, l, op, &m))
        return false;
    if (m.signal_op == GSHMEM_SIGNAL_SET)
        l->messages.last_set = op->number;
    return true;
}

/* A signal that is set: it is visible after the data, since it is written behind it. `first`: the
 * first operation whose signal this write is, of those up to `op`. */
static bool signals_write(struct verbs *v, struct link *l, struct op *op, uint32_t first)
{
    const struct transport_request *r = &op->request;
    struct path *p = l->active[0];
    uint64_t bytes = 8;
    uint32_t key;

    if (!order_allows(l, p) ||
        !peer_find_key(v, l, p, r->signal_segment, r->signal_offset, &bytes, &key))
        return false;
    struct ibv_send_wr *wr = post_next(v, p, WORK_SIGNAL, op_number(l, op), first, 8);
    if (!wr)
        return false;
    op->value = r->signal_value;
    post_within(p, wr, &op->value, 8);
    wr->opcode = IBV_WR_RDMA_WRITE;
    wr->wr.rdma.remote_addr = l->peer.base[r->signal_segment] + r->signal_offset;
    wr->wr.rdma.rkey = key;
    op_sent_by(op, p);
    return true;
}

/* Whether the target's CPU gives the signal: others update that word too, NICs do not reach it, or
 * they might write it before its data, or before another one. */
bool signals_are_messages(const struct verbs *v, const struct link *l,
                          const struct transport_request *r)
{
    return r->signal_op == GSHMEM_SIGNAL_ADD ||
           (r->signal_op && (l->active[0]->reorders || order_has_signals(l) ||
                             staged_is_remote(v, l, r->signal_segment)));
}

static bool signals_issue_one(struct verbs *v, struct link *l, struct op *op)
{
    if (atomics_have(v, &op->request))
        return atomics_issue(v, l, op);
    return signals_are_messages(v, l, &op->request) ? signals_send_put(v, l, op, false)
                                                    : signals_write(v, l, op, op_number(l, op));
}

/* Whether data is in flight that the signal might overtake: by other paths than the signal's, or by
 * that one, if it reorders and the signal is no message. */
static bool signals_overtake_data(const struct verbs *v, const struct link *l, const struct op *op)
{
    const bool by_nic = atomics_have(v, &op->request);
    const struct path *signals = by_nic ? l->updater : l->active[0];

    for (int i = 0; i < l->paths; i++) {
        const struct path *p = l->path[i];
        if (op->used >> i & 1 && (p != signals || (by_nic && p->reorders)) &&
            is_after(op->end[i], p->done))
            return true;
    }
    return false;
}

/* ---- Which may share ---- */

/* Not one that a NIC adds or that is staged, nor one without data: what is behind a fence might be
 * held while what is before it is issued again. */
static bool signals_may_share(const struct verbs *v, const struct link *l,
                              const struct transport_request *r)
{
    return r->kind == TRANSPORT_PUT && r->signal_op && r->bytes && !l->active[0]->nic->iwarp &&
           !atomics_have(v, r) && !staged_is_remote(v, l, r->signal_segment);
}

static bool signals_have_company(const struct link *l)
{
    const struct path *p = l->active[0];

    return p->sends - p->done > p->batch.end - p->batch.first ||
           l->messages.sent != l->messages.replied;
}

bool signals_may_wait(const struct verbs *v, const struct link *l, const struct op *op)
{
    const struct transport_request *r = &op->request;
    const uint8_t flags = TRANSPORT_MORE | TRANSPORT_LOOSE;

    return (r->flags & flags) == flags && !op->staged && signals_have_company(l) &&
           signals_may_share(v, l, r);
}

/* ---- Those that are held ---- */

bool signals_issue(struct verbs *v, struct link *l, struct op *op)
{
    const bool overtakes = signals_overtake_data(v, l, op);

    if (!overtakes && !signals_may_wait(v, l, op))
        return signals_issue_one(v, l, op);
    op_hold(l, op);
    if (overtakes)
        return true;
    if (!l->signals.waiting++)
        l->signals.then = 1;
    l->signals.weight +=
        SHARE_PUT + (op->request.bytes < SHARE_BYTES ? op->request.bytes : SHARE_BYTES);
    v->held_back = true;
    return true;
}

/* Signals of one word, of operations from `first` to `last`: as many as can be one. */
struct signals {
    uint32_t first, last;
    const struct transport_request *of; /* the last */
    uint64_t value;
    bool in_message, gone;
    uint32_t end; /* done when so many work requests of the path are */
};

/* The signals that this one is one with; n: none. It is not merged with one behind which there is
 * another kind of signal of that word. */
static int signals_find(const struct signals *s, int n, const struct transport_request *r)
{
    for (int i = n - 1; i >= 0; i--) {
        if (s[i].of->signal_offset == r->signal_offset &&
            s[i].of->signal_segment == r->signal_segment)
            return s[i].of->signal_op == r->signal_op ? i : n;
    }
    return n;
}

static void signals_join(struct signals *s, bool begins, uint32_t number, const struct op *op)
{
    const struct transport_request *r = &op->request;
    const uint64_t before = begins || r->signal_op == GSHMEM_SIGNAL_SET ? 0 : s->value;

    if (begins)
        *s = (struct signals){.first = number};
    s->last = number;
    s->of = r;
    s->value = before + r->signal_value;
}

/* Those that are held from `first` on, by word; *end: the operations before that one are those that
 * have been looked at. */
static int signals_collect(const struct verbs *v, const struct link *l, uint32_t first,
                           struct signals s[SHARE_WORDS], uint32_t *end)
{
    int n = 0;

    for (*end = first; *end != l->issuing; ++*end) {
        struct op *op = op_of(l, *end);
        op->share = 0;
        if (!op->held || op->updates || !signals_may_share(v, l, &op->request) ||
            signals_overtake_data(v, l, op))
            continue;
        const int at = signals_find(s, n, &op->request);
        if (at == SHARE_WORDS)
            break;
        signals_join(&s[at], at == n, *end, op);
        n += at == n;
        op->share = (uint8_t)(at + 1);
    }
    return n;
}

/* Marks those that go as one message: all, if there are many or one of them has to. A few that are
 * set are writes, which need nobody at the target; so are all in a GPU's memory that NICs reach,
 * where the target's proxy would need the GPU for each. */
static bool signals_mark_messages(const struct verbs *v, const struct link *l, struct signals *s,
                                  int n)
{
    bool many = (uint32_t)n >= v->coalesce_from, some = false;

    for (int i = 0; i < n; i++)
        many |= signals_are_messages(v, l, s[i].of);
    for (int i = 0; i < n; i++) {
        const struct transport_request *r = s[i].of;
        s[i].in_message = many && (signals_are_messages(v, l, r) ||
                                   !v->config.segment[r->signal_segment].of_device);
        some |= s[i].in_message;
    }
    return some;
}

/* All of them that are marked, as one message. */
static bool signals_send_message(struct verbs *v, struct link *l, struct signals *s, int n)
{
    struct message_change last = {.segment = UINT8_MAX}; /* not near any */
    unsigned char text[MESSAGE_CHANGES_DATA];
    struct message m = {.kind = MESSAGE_CHANGES, .data = text};
    struct op *op = NULL;

    for (int i = 0; i < n; i++) {
        if (!s[i].in_message)
            continue;
        const struct message_change c = coalesced_signal(s[i].of);
        m.bytes = (uint16_t)(m.bytes + message_change_head(text + m.bytes, &last, &c));
        message_put64(text + m.bytes, s[i].value);
        m.bytes += 8;
        last = c;
        op = op_of(l, s[i].last);
    }
    if (!send_update(v, l, op, &m))
        return false;
    for (int i = 0; i < n; i++) {
        s[i].gone = s[i].in_message;
        s[i].end = l->active[0]->sends;
        if (s[i].in_message && s[i].of->signal_op == GSHMEM_SIGNAL_SET)
            l->messages.last_set = op->number;
    }
    return true;
}

/* Operations whose signals have gone are not held any more, and are done when those are. */
static void signals_let_go(struct link *l, const struct path *p, const struct signals *s,
                           uint32_t first, uint32_t end, uint32_t message)
{
    for (uint32_t i = first; i != end; i++) {
        struct op *op = op_of(l, i);
        const struct signals *own = op->share ? &s[op->share - 1] : NULL;
        if (!own || !own->gone)
            continue;
        op->held = false;
        l->held--;
        op->end[p->index] = own->end;
        op->used |= (uint16_t)(1u << p->index);
        if (own->in_message) {
            op->wants_reply = true;
            op->number = message;
        }
    }
}

/* Not held meanwhile, as an update that a NIC makes may hold it by itself. */
static bool signals_try(struct verbs *v, struct link *l, struct op *op)
{
    op->held = false;
    l->held--;
    if (signals_issue_one(v, l, op))
        return true;
    op_hold(l, op);
    return false;
}

/* Gives the signals that are held from `first` on; false: not all of them, now. */
static bool signals_send_shared(struct verbs *v, struct link *l, uint32_t first)
{
    struct signals s[SHARE_WORDS];
    const struct path *p = l->active[0];
    uint32_t end, message = 0;
    bool all = true;
    const int n = signals_collect(v, l, first, s, &end);

    if (n == 1 && s[0].first == s[0].last)
        return signals_try(v, l, op_of(l, first));
    if (signals_mark_messages(v, l, s, n)) {
        all = signals_send_message(v, l, s, n);
        message = l->messages.sent;
    }
    for (int i = 0; i < n && all; i++) {
        if (s[i].in_message)
            continue;
        all = s[i].gone = signals_write(v, l, op_of(l, s[i].last), s[i].first);
        s[i].end = p->sends; /* the path is the same one if it has been written */
    }
    if (l->state == LINK_FAILED) /* no operation is left */
        return false;
    signals_let_go(l, p, s, first, end, message);
    return all;
}

void signals_send_held(struct verbs *v, struct link *l)
{
    l->signals.waiting = l->signals.weight = 0;
    for (uint32_t i = is_after(l->done, l->held_from) ? l->done : l->held_from;
         i != l->issuing && l->held && l->state == LINK_ACTIVE; i++) {
        struct op *op = op_of(l, i);
        if (!op->held || op->updates || signals_overtake_data(v, l, op))
            continue;
        if (signals_may_share(v, l, &op->request) ? signals_send_shared(v, l, i)
                                                  : signals_try(v, l, op))
            continue;
        l->signals.waiting = l->held; /* all of them, until a completion or a reply */
        l->signals.then = 0;
        return;
    }
}

void signals_end_round(struct verbs *v, struct link *l)
{
    if (!l->signals.waiting || !l->signals.then)
        return;
    if (l->signals.waiting == l->signals.then || l->state != LINK_ACTIVE ||
        !signals_have_company(l)) {
        l->signals.waiting = 0;
        return;
    }
    l->signals.then = l->signals.waiting;
    v->held_back = true;
}
