/* Small puts that travel together.
 *
 * While something is on its way to a PE, loose puts of up to 128 B to it wait for each other, and what
 * goes on where the last one ends is one with it. Many that do not (GSHMEM_IB_GATHER) go as one message,
 * which the owner's proxy carries out: one packet, its acknowledgement and a share in a reply, where
 * each would have been a packet and its acknowledgement. A few go as writes, which need nobody there.
 *
 * Those of one collection are of one epoch. They are one op, the first of them, of which the others
 * are parts (struct joined): it is issued, issued again, ended and handed below as one. */
#include <string.h>

#include "transport/verbs/verbs.h"

/* ---- Collecting ---- */

static struct op *last_op(const struct link *l)
{
    return l->posted == l->done ? NULL : &l->op[(l->posted - 1) % OPS];
}

static bool is_on_its_way(const struct link *l, const struct path *p)
{
    return p->sends - p->done > p->batched - p->batch_first || l->said != l->replied;
}

bool gather_takes(const struct link *l, const struct transport_request *r)
{
    if (r->kind != TRANSPORT_PUT || !(r->flags & TRANSPORT_LOOSE) || r->signal_op || r->sent ||
        r->bytes - 1 >= MESSAGE_PUT_MOST || l->state != LINK_UP)
        return false;
    /* of one chunk, and there: others are taken apart, or refused, on their own */
    return (l->up[0]->sends != l->up[0]->done || l->said != l->replied || l->issuing != l->posted) &&
           r->offset / CHUNK_BYTES == (r->offset + r->bytes - 1) / CHUNK_BYTES &&
           r->offset < l->bytes[r->segment] && r->bytes <= l->bytes[r->segment] - r->offset &&
           r->offset >> MESSAGE_PUT_OFFSET_BITS == 0;
}

/* Whether it is one with the last put. */
static bool continues(const struct message_put *last, const struct transport_request *r)
{
    return r->segment == last->segment && r->offset == last->offset + last->bytes &&
           r->bytes + last->bytes <= MESSAGE_PUT_MOST && r->offset % CHUNK_BYTES;
}

/* TRANSPORT_FULL: it has no room in this collection. */
static gshmem_status_t add(struct verbs *v, struct gathered *g, const struct transport_request *r)
{
    const struct message_put put = {.segment = (uint8_t)r->segment, .bytes = (uint8_t)r->bytes,
                                    .offset = r->offset};
    unsigned char head[MESSAGE_PUT_FAR];
    const bool on = g->puts && continues(&g->last, r);
    const uint32_t head_bytes = on ? 0 : message_put_head(head, &g->last, &put);

    if (g->bytes + head_bytes + r->bytes > sizeof g->text)
        return TRANSPORT_FULL;
    gshmem_status_t status = gpu_fetch(v, g->text + g->bytes + head_bytes, r->local, r->bytes);
    if (status)
        return status;
    if (on) {
        g->text[g->head] = (unsigned char)(g->text[g->head] + r->bytes);
        g->last.bytes = (uint8_t)(g->last.bytes + r->bytes);
    } else {
        memcpy(g->text + g->bytes, head, head_bytes);
        g->head = g->bytes;
        g->last = put;
        g->puts++;
        g->of_device |= v->config.segment[r->segment].of_device != 0;
    }
    g->bytes = (uint16_t)(g->bytes + head_bytes + r->bytes);
    return GSHMEM_OK;
}

/* Adds it to the last op, if that collects what it may go with. */
static gshmem_status_t join(struct verbs *v, struct link *l, const struct transport_request *r)
{
    struct op *op = last_op(l);

    if (!op || !op->gathered || op->issued || op->at || op->request.epoch != r->epoch ||
        l->joined_next - l->joined_first == JOINED)
        return TRANSPORT_FULL;
    gshmem_status_t status = add(v, op->gathered, r);
    if (status)
        return status;
    l->joined[l->joined_next++ % JOINED] = (struct joined){r->done, r->tag};
    op->joined_end = l->joined_next;
    return GSHMEM_OK;
}

gshmem_status_t gather_post(struct verbs *v, struct link *l, const struct transport_request *r)
{
    gshmem_status_t status = join(v, l, r);

    if (status != TRANSPORT_FULL)
        return status;
    if (l->posted - l->done == OPS || l->gathered_next - l->gathered_first == GATHERS)
        return TRANSPORT_FULL;
    struct gathered *g = &l->gathered[l->gathered_next % GATHERS];
    g->last = (struct message_put){.offset = 0};
    g->bytes = g->puts = 0;
    g->of_device = false;
    g->round = v->rounds;
    g->then = l->joined_next - 1; /* it has grown by itself */
    if ((status = add(v, g, r)))
        return status;
    const struct op *before = last_op(l);
    struct op *op = issue_open(l, r);
    op->gathered = g;
    l->gathered_next++;
    l->posted++;
    v->held_back = true;
    issue_more(v, l); /* the one before it, which grows no more */
    if (before && before->gathered && before->wants_reply)
        issue_batched(v, l); /* the owner can begin with it */
    return GSHMEM_OK;
}

/* Until a round of progress finds nothing on its way, or comes after one in which nothing joined it. */
bool gather_waits(struct verbs *v, struct link *l, const struct op *op)
{
    struct gathered *g = op->gathered;

    if (op != last_op(l) || op->at)
        return false;
    if (g->round != v->rounds && (g->then == l->joined_next || !is_on_its_way(l, l->up[0])))
        return false;
    if (g->round != v->rounds) {
        g->round = v->rounds;
        g->then = l->joined_next;
    }
    v->held_back = true;
    return true;
}

/* ---- Sending ---- */

/* A GPU's memory is better written by the NIC than copied to by the owner's proxy, one by one. */
static bool goes_as_message(const struct verbs *v, const struct link *l, const struct gathered *g)
{
    return issue_has_unapplied(l) || l->up[0]->nic->iwarp || (g->puts >= v->gather_from && !g->of_device);
}

/* The put that begins at `at`: how many bytes it takes. */
static uint32_t take_apart(const struct gathered *g, uint32_t at, struct message_put *put)
{
    return message_next_put(g->text + at, g->bytes - at, put);
}

bool gather_issue(struct verbs *v, struct link *l, struct op *op)
{
    const struct gathered *g = op->gathered;
    struct message m = {.kind = MESSAGE_PUTS, .bytes = g->bytes, .data = g->text};
    struct message_put put = {.offset = 0};

    if (op->at == 0 && goes_as_message(v, l, g))
        return issue_update(v, l, op, &m);
    if (issue_has_unapplied(l))
        return false;
    for (uint32_t at = 0, taken; at < g->bytes; at += taken) {
        taken = take_apart(g, at, &put);
        if (at < op->at)
            continue;
        if (!issue_small(v, l, op, at, &put))
            return false;
        op->at = at + taken;
    }
    return true;
}

/* ---- Below ---- */

static void part_carried(void *tag, gshmem_status_t status)
{
    struct op *op = tag;
    struct link *l = op->link;

    op->failure = op->failure ? op->failure : status;
    if (--op->parts == 0 && op->below == BELOW_CARRIES)
        op->below = BELOW_DONE;
    l->verbs->held_back = true;
    if (--l->below_left == 0)
        link_settle(l->verbs, l);
}

static bool carry_part(struct verbs *v, struct link *l, struct op *op, const struct message_put *put)
{
    struct transport_request r = op->request;

    r.segment = put->segment;
    r.offset = put->offset;
    r.local = (void *)(uintptr_t)put->data;
    r.bytes = put->bytes;
    r.done = part_carried;
    r.tag = op;
    op->parts++;
    l->below_left++;
    gshmem_status_t status = v->below->ops->post(v->below, &r);
    if (status == TRANSPORT_FULL) {
        op->parts--;
        l->below_left--;
        return false;
    }
    if (status)
        part_carried(op, status);
    return true;
}

bool gather_carry(struct verbs *v, struct link *l, struct op *op)
{
    struct gathered *g = op->gathered;
    struct message_put put = {.offset = 0};

    for (uint32_t at = 0, taken; at < g->bytes; at += taken) {
        taken = take_apart(g, at, &put);
        if (at < op->at)
            continue;
        if (l->state != LINK_BELOW || !carry_part(v, l, op, &put))
            return false;
        op->at = at + taken;
    }
    op->below = op->parts ? BELOW_CARRIES : BELOW_DONE;
    return true;
}
