/* Small puts and updates that travel together.
 *
 * While something is on its way to a PE, what is small and loose waits for more of its kind, and
 * what goes on where the last put ends is one with it. Many puts that do not (GSHMEM_IB_GATHER) go
 * as one message, which the owner's proxy carries out: one packet, its acknowledgement and a share
 * in a reply, where each would have been a packet and its acknowledgement. A few go as writes,
 * which need nobody there. Updates without a result, signals that are added among them, would be
 * messages of their own, and so always go as one.
 *
 * Those of one collection are of one epoch. They are one op, the first of them, of which the others
 * are parts (struct joined): it is issued, issued again, ended and handed below as one. */
#include <stdlib.h>
#include <string.h>

#include "gshmem/rma.h"
#include "gshmem/type.h"
#include "transport/verbs/verbs.h"

/* ---- What can be collected ---- */

/* False: it cannot be one of several. */
static bool coalesce_describe(const struct transport_request *r, struct message_change *c)
{
    if (r->kind == TRANSPORT_PUT && !r->signal_op) {
        *c = (struct message_change){
            .segment = (uint8_t)r->segment, .bytes = (uint8_t)r->bytes, .offset = r->offset};
        return r->bytes - 1 < MESSAGE_CHANGE_MOST && !r->sent;
    }
    if (r->kind == TRANSPORT_PUT) {
        *c = (struct message_change){.segment = (uint8_t)r->signal_segment,
                                     .amo = GSHMEM_AMO_ADD,
                                     .type = GSHMEM_TYPE_UINT64,
                                     .offset = r->signal_offset};
        return r->signal_op == GSHMEM_SIGNAL_ADD && r->bytes == 0 && !r->sent;
    }
    *c = (struct message_change){.segment = (uint8_t)r->segment,
                                 .amo = (uint8_t)r->amo,
                                 .type = (uint8_t)r->type,
                                 .offset = r->offset};
    return r->kind == TRANSPORT_ATOMIC && !r->old && r->amo != GSHMEM_AMO_COMPARE_SWAP;
}

/* Whether it is there, in one chunk: others are refused, or taken apart, on their own. */
static bool is_there(const struct link *l, const struct message_change *c)
{
    const uint64_t bytes = c->bytes ? c->bytes : 8;

    return c->offset < l->bytes[c->segment] && bytes <= l->bytes[c->segment] - c->offset &&
           c->offset / CHUNK_BYTES == (c->offset + bytes - 1) / CHUNK_BYTES &&
           c->offset >> MESSAGE_CHANGE_OFFSET_BITS == 0;
}

bool coalesce_takes(const struct link *l, const struct transport_request *r)
{
    struct message_change c;

    if (l->state != LINK_UP || !(r->flags & TRANSPORT_LOOSE) || !coalesce_describe(r, &c) ||
        atomics_have(l->verbs, r))
        return false;
    return (l->up[0]->sends != l->up[0]->done || l->said != l->replied || l->issuing != l->posted) &&
           is_there(l, &c);
}

/* ---- Collecting ---- */

static struct op *last_op(const struct link *l)
{
    return l->posted == l->done ? NULL : op_of(l, l->posted - 1);
}

/* Whether a put is one with the last. */
static bool continues(const struct coalesced *g, const struct message_change *c)
{
    return g->last.bytes && c->bytes && c->segment == g->last.segment &&
           c->offset == g->last.offset + g->last.bytes &&
           c->bytes + g->last.bytes <= MESSAGE_CHANGE_MOST && c->offset % CHUNK_BYTES;
}

static gshmem_status_t add_data(struct verbs *v, const struct transport_request *r,
                                unsigned char *at)
{
    if (r->kind == TRANSPORT_PUT && !r->signal_op)
        return gpu_fetch(v, at, r->local, r->bytes);
    message_put64(at, r->kind == TRANSPORT_PUT ? r->signal_value : r->operand);
    return GSHMEM_OK;
}

/* TRANSPORT_FULL: it has no room in this collection. */
static gshmem_status_t coalesce_add(struct verbs *v, struct coalesced *g,
                                    const struct transport_request *r)
{
    unsigned char head[MESSAGE_CHANGE_FAR + 1];
    struct message_change c;

    coalesce_describe(r, &c);
    const bool on = continues(g, &c);
    const uint32_t head_bytes = on ? 0 : message_change_head(head, &g->last, &c);
    const uint32_t bytes = head_bytes + (c.bytes ? c.bytes : 8u);
    if (g->bytes + bytes > sizeof g->text)
        return TRANSPORT_FULL;
    gshmem_status_t status = add_data(v, r, g->text + g->bytes + head_bytes);
    if (status)
        return status;
    if (on) {
        g->text[g->head] = (unsigned char)(g->text[g->head] + c.bytes);
        g->last.bytes = (uint8_t)(g->last.bytes + c.bytes);
    } else {
        memcpy(g->text + g->bytes, head, head_bytes);
        g->head = g->bytes;
        g->last = c;
        g->changes++;
        g->updates |= c.bytes == 0;
        g->of_device |= c.bytes && v->config.segment[c.segment].of_device;
    }
    g->bytes += bytes;
    return GSHMEM_OK;
}

/* Adds it to the last op, if that collects what it may go with. */
static gshmem_status_t coalesce_join(struct verbs *v, struct link *l,
                                     const struct transport_request *r)
{
    struct op *op = last_op(l);

    if (!op || !op->coalesced || op->issued || op->at || op->coalesced->closed ||
        op->request.epoch != r->epoch || l->joined_next - l->joined_first == JOINED)
        return TRANSPORT_FULL;
    gshmem_status_t status = coalesce_add(v, op->coalesced, r);
    if (status)
        return status;
    l->joined[l->joined_next++ % JOINED] = (struct joined){r->done, r->tag};
    op->joined_end = l->joined_next;
    return GSHMEM_OK;
}

/* Most peers are never sent so much at once. */
static bool coalesce_make_room(struct link *l)
{
    if (!l->joined)
        l->joined = calloc(JOINED, sizeof *l->joined);
    return l->joined && (l->coalesced = calloc(COALESCED_MOST, sizeof *l->coalesced));
}

static gshmem_status_t coalesce_begin(struct verbs *v, struct link *l,
                                      const struct transport_request *r)
{
    if (!l->coalesced && !coalesce_make_room(l))
        return v->config.fail(GSHMEM_ERR_MEMORY, "verbs: out of memory for small puts to PE %d", l->pe);
    struct coalesced *g = &l->coalesced[l->coalesced_next % COALESCED_MOST];
    if (l->coalesced_next - l->coalesced_first == COALESCED_MOST || !issue_has_room(v, l))
        return TRANSPORT_FULL;
    g->last = (struct message_change){.segment = UINT8_MAX}; /* far from any */
    g->bytes = g->changes = 0;
    g->updates = g->of_device = g->closed = false;
    g->round = v->rounds;
    g->then = l->joined_next - 1; /* it has grown by itself */
    gshmem_status_t status = coalesce_add(v, g, r);
    if (status)
        return status;
    g->op = issue_open(l, r);
    g->op->coalesced = g;
    l->collecting = l->direct ? g : NULL;
    l->coalesced_next++;
    l->posted++;
    return GSHMEM_OK;
}

/* Last of all, and so a jump. */
__attribute__((noinline)) static gshmem_status_t coalesce_copy(void *to, const void *from,
                                                               uint64_t bytes)
{
    gshmem_copy(to, from, bytes);
    return GSHMEM_OK;
}

/* Another, with a head of so many bytes. */
static inline uint32_t begin_change(struct coalesced *g, const struct transport_request *r,
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

/* The same for most puts of the CPU's memory in one go. */
GSHMEM_HOT gshmem_status_t coalesce_more(struct verbs *v, struct link *l,
                                       const struct transport_request *r)
{
    struct coalesced *g = l->collecting;
    const uint64_t bytes = r->bytes, distance = r->offset - g->last.offset;
    const uint64_t room = sizeof g->text - g->bytes;
    unsigned char *at = g->text + g->bytes;

    if ((r->kind | r->signal_op) || r->segment >= TRANSPORT_SEGMENT_MAX ||
        !(r->flags & TRANSPORT_LOOSE) || bytes - 1 >= MESSAGE_CHANGE_MOST ||
        g->op->request.epoch != r->epoch || r->offset % CHUNK_BYTES + bytes > CHUNK_BYTES ||
        r->offset + bytes > l->bytes[r->segment] ||
        room < MESSAGE_CHANGE_NEAR + bytes || l->joined_next - l->joined_first == JOINED)
        return issue_in_turn(v, l, r);
    if (!message_is_near(&g->last, r->segment, distance)) {
        if (room < MESSAGE_CHANGE_FAR + bytes)
            return issue_in_turn(v, l, r);
        message_change_far(at, r->segment, r->offset, bytes);
        at += begin_change(g, r, MESSAGE_CHANGE_FAR);
    } else if (distance == g->last.bytes && distance && distance + bytes <= MESSAGE_CHANGE_MOST &&
               r->offset % CHUNK_BYTES) {
        g->last.bytes = (uint8_t)(distance + bytes);
        g->text[g->head] = (unsigned char)(g->text[g->head] + bytes);
    } else {
        message_change_near(at, distance, bytes);
        at += begin_change(g, r, MESSAGE_CHANGE_NEAR);
    }
    g->bytes += (uint32_t)bytes;
    l->joined[l->joined_next % JOINED] = (struct joined){r->done, r->tag};
    g->op->joined_end = ++l->joined_next;
    if (GSHMEM_UNLIKELY(bytes != 8))
        return coalesce_copy(at, r->local, bytes);
    memcpy(at, r->local, 8);
    return GSHMEM_OK;
}

gshmem_status_t coalesce_post(struct verbs *v, struct link *l, const struct transport_request *r)
{
    gshmem_status_t status = coalesce_join(v, l, r);

    if (status != TRANSPORT_FULL)
        return status;
    const bool is_first = l->posted == l->done;
    const uint32_t before = l->posted - 1;
    if ((status = coalesce_begin(v, l, r)))
        return status;
    v->held_back = true;
    issue_more(v, l); /* the one before it, which grows no more */
    if (!is_first && op_of(l, before)->coalesced && op_of(l, before)->wants_reply)
        issue_batched(v, l); /* the owner can begin with it */
    return GSHMEM_OK;
}

static bool is_on_its_way(const struct link *l, const struct path *p)
{
    return p->sends - p->done > p->batched - p->batch_first || l->said != l->replied;
}

/* Until a round of progress finds nothing on its way, or comes after one in which nothing joined
 * it. */
bool coalesce_waits(struct verbs *v, struct link *l, const struct op *op)
{
    struct coalesced *g = op->coalesced;

    if (op != last_op(l) || op->at || g->closed)
        return false;
    if (g->round != v->rounds) {
        if (g->then == l->joined_next || !is_on_its_way(l, l->up[0]))
            return false;
        g->round = v->rounds;
        g->then = l->joined_next;
    }
    v->held_back = true;
    return true;
}

/* ---- Sending ---- */

/* A GPU's memory is better written by the NIC than copied to by the owner's proxy, one by one. */
static bool goes_as_message(const struct verbs *v, const struct link *l, const struct coalesced *g)
{
    return g->updates || issue_has_unapplied(l) || issue_waits_for_writes(l) || l->up[0]->nic->iwarp ||
           (g->of_device ? l->gpu_below : g->changes >= v->coalesce_from);
}

/* The one that begins at `at`: how many bytes it takes. */
static uint32_t take_apart(const struct coalesced *g, uint32_t at, struct message_change *c)
{
    return message_next_change(g->text + at, g->bytes - at, c);
}

static void goes(struct link *l, const struct coalesced *g)
{
    if (l->collecting == g)
        l->collecting = NULL;
}

bool coalesce_issue(struct verbs *v, struct link *l, struct op *op)
{
    const struct coalesced *g = op->coalesced;
    struct message m = {.kind = MESSAGE_CHANGES, .bytes = (uint16_t)g->bytes, .data = g->text};
    struct message_change c = {.offset = 0};

    goes(l, g);
    if (op->at == 0 && goes_as_message(v, l, g))
        return issue_update(v, l, op, &m);
    if (issue_has_unapplied(l))
        return false;
    for (uint32_t at = 0, taken; at < g->bytes; at += taken) {
        taken = take_apart(g, at, &c);
        if (at < op->at)
            continue;
        if (!issue_small(v, l, op, at, &c))
            return false;
        op->at = at + taken;
    }
    return true;
}

/* ---- Below ---- */

/* One of them, in the order in which they were posted; false: the transport below is full. */
static bool carry_part(struct verbs *v, struct link *l, struct op *op,
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
    return finish_part_below(v, l, op, &r);
}

/* Takes off what comes before `at`; what is there is far then, for which there is room: so was the
 * first. */
static void coalesce_cut(struct coalesced *g, uint32_t at)
{
    const struct message_change none = {.segment = UINT8_MAX};
    struct message_change c = {.offset = 0};
    unsigned char head[MESSAGE_CHANGE_FAR + 1];

    for (uint32_t i = 0; i <= at;)
        i += take_apart(g, i, &c);
    const uint32_t head_bytes = message_change_head(head, &none, &c);
    const uint32_t rest = (uint32_t)(g->text + g->bytes - c.data);
    memmove(g->text + head_bytes, c.data, rest);
    memcpy(g->text, head, head_bytes);
    g->bytes = head_bytes + rest;
    g->closed = true;
}

bool coalesce_carry(struct verbs *v, struct link *l, struct op *op)
{
    struct coalesced *g = op->coalesced;
    struct message_change c = {.offset = 0};

    goes(l, g);
    for (uint32_t at = 0, taken; at < g->bytes; at += taken) {
        taken = take_apart(g, at, &c);
        if (at < op->at)
            continue;
        if (l->state != LINK_BELOW || !carry_part(v, l, op, &c)) {
            if (at)
                coalesce_cut(g, at);
            op->at = 0;
            return false;
        }
    }
    finish_all_below(op);
    return true;
}
