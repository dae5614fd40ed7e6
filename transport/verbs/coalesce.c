/* Small puts and updates that coalesce into one operation; they come one by one, or as a batch of
 * few records.
 *
 * - While something is in flight to a PE, a small loose request waits for more of its kind. A put
 *   that begins where the last one ends is merged with it.
 * - Many puts (GSHMEM_IB_GATHER) go as one message, which the target's proxy carries out: one
 *   packet, its acknowledgement and a share of a reply, instead of a packet and an
 *   acknowledgement for each.
 * - A few puts go as writes, without the target's CPU.
 * - Updates without a result, and signals that are added, always go as one message.
 * - A small put with a signal is two changes. All signals are behind all data, and those of one
 *   word that follow each other are one. Signals that are set are written behind the data, unless
 *   all goes as a message, or writes may be reordered. Only puts join of which a message would hold
 *   GSHMEM_IB_GATHER: the data of others is written anyway, and their signals wait for each other
 *   (signals.c).
 *
 * A collection is of one epoch. It is one operation, its first request, of which the others are
 * parts (struct joined): they are issued, issued again, handed to the transport below and ended
 * together. */
#include <stdlib.h>
#include <string.h>

#include "gshmem/rma.h"
#include "gshmem/type.h"
#include "transport/batch.h"
#include "transport/verbs/atomics.h"
#include "transport/verbs/coalesce.h"
#include "transport/verbs/coalesced.h"
#include "transport/verbs/gpu.h"
#include "transport/verbs/memory.h"
#include "transport/verbs/ops.h"
#include "transport/verbs/verbs.h"

/* ---- What coalesces ---- */

/* The request as changes of a collection, and how many they are; 0: it cannot be in one. A lone
 * signal that is set is a write, which needs nobody at the target. */
static int coalesce_describe(const struct verbs *v, const struct transport_request *r,
                             struct message_change c[2])
{
    if (r->kind == TRANSPORT_PUT && r->sent)
        return 0;
    if (r->kind == TRANSPORT_PUT && r->bytes) {
        c[0] = (struct message_change){
            .segment = (uint8_t)r->segment, .bytes = (uint8_t)r->bytes, .offset = r->offset};
        if (r->bytes > (r->signal_op ? v->coalesce_signalled : MESSAGE_CHANGE_MOST))
            return 0;
        if (!r->signal_op)
            return 1;
        c[1] = coalesced_signal(r);
        return r->signal_offset % 8 ? 0 : 2; /* one that is not aligned is refused elsewhere */
    }
    if (r->kind == TRANSPORT_PUT) {
        c[0] = coalesced_signal(r);
        return r->signal_op == GSHMEM_SIGNAL_ADD;
    }
    c[0] = (struct message_change){.segment = (uint8_t)r->segment,
                                   .amo = (uint8_t)r->amo,
                                   .type = (uint8_t)r->type,
                                   .offset = r->offset};
    return r->kind == TRANSPORT_ATOMIC && !r->old && r->amo != GSHMEM_AMO_COMPARE_SWAP;
}

uint32_t coalesce_signalled_most(uint32_t puts)
{
    /* the first change and the signal are far ones */
    const uint32_t room = MESSAGE_CHANGES_DATA - (MESSAGE_CHANGE_FAR + MESSAGE_CHANGE_UPDATE) -
                          (MESSAGE_CHANGE_FAR - MESSAGE_CHANGE_NEAR),
                   each = room / puts;

    return each <= MESSAGE_CHANGE_NEAR                        ? 0
           : each > MESSAGE_CHANGE_NEAR + MESSAGE_CHANGE_MOST ? MESSAGE_CHANGE_MOST
                                                              : each - MESSAGE_CHANGE_NEAR;
}

/* Whether it lies within one chunk of the peer's memory: others are refused or split, alone. */
static bool coalesce_is_in_chunk(const struct link *l, const struct message_change *c)
{
    const uint64_t bytes = c->bytes ? c->bytes : 8;

    return c->offset < l->peer.bytes[c->segment] &&
           bytes <= l->peer.bytes[c->segment] - c->offset &&
           c->offset / CHUNK_BYTES == (c->offset + bytes - 1) / CHUNK_BYTES &&
           c->offset >> MESSAGE_CHANGE_OFFSET_BITS == 0;
}

bool coalesce_takes(const struct link *l, const struct transport_request *r)
{
    struct message_change c[2] = {{.offset = 0}};
    int n;

    if (l->state != LINK_ACTIVE || !(r->flags & TRANSPORT_LOOSE) ||
        !(n = coalesce_describe(l->verbs, r, c)) || atomics_have(l->verbs, r))
        return false;
    return (l->active[0]->sends != l->active[0]->done || l->messages.sent != l->messages.replied ||
            l->issuing != l->posted) &&
           coalesce_is_in_chunk(l, &c[0]) && (n == 1 || coalesce_is_in_chunk(l, &c[1]));
}

/* A record of a batch, as the request that it would be by itself. */
static struct transport_request coalesce_request_of(const struct transport_request *batch,
                                                    uint64_t i)
{
    const size_t bytes = batch->element_bytes, step = batch_record_bytes(batch->each, bytes);
    const char *record = (const char *)batch->local + i * step,
               *value = record + BATCH_NUMBER_BYTES;
    struct transport_request one = {.kind = batch->each,
                                    .segment = batch->segment,
                                    .amo = batch->amo,
                                    .type = batch->type,
                                    .offset = batch->offset + batch_number(record) * bytes};

    if (one.kind == TRANSPORT_ATOMIC) {
        one.operand = batch_operand(value, bytes);
    } else {
        one.local = (void *)(uintptr_t)value;
        one.bytes = bytes;
    }
    return one;
}

bool coalesce_takes_batch(const struct link *l, const struct transport_request *r)
{
    const uint64_t record =
        MESSAGE_CHANGE_FAR +
        (r->each == TRANSPORT_ATOMIC ? MESSAGE_CHANGE_UPDATE : r->element_bytes);

    if (r->kind != TRANSPORT_BATCH || l->state != LINK_ACTIVE ||
        r->elements * record > MESSAGE_CHANGES_DATA)
        return false;
    for (uint64_t i = 0; i < r->elements; i++) {
        const struct transport_request one = coalesce_request_of(r, i);
        struct message_change c[2];
        if (!coalesce_describe(l->verbs, &one, c) || !coalesce_is_in_chunk(l, &c[0]))
            return false;
    }
    return true;
}

/* ---- Collecting ---- */

static struct op *coalesce_last_op(const struct link *l)
{
    return l->posted == l->done ? NULL : op_of(l, l->posted - 1);
}

/* Whether a put is merged with the last one. */
static bool coalesce_continues(const struct coalesced *g, const struct message_change *c)
{
    return g->last.bytes && c->bytes && c->segment == g->last.segment &&
           c->offset == g->last.offset + g->last.bytes &&
           c->bytes + g->last.bytes <= MESSAGE_CHANGE_MOST && c->offset % CHUNK_BYTES;
}

static gshmem_status_t coalesce_add_data(struct verbs *v, const struct transport_request *r,
                                         const struct message_change *c, unsigned char *at)
{
    if (c->bytes)
        return gpu_fetch(v, at, r->local, r->bytes);
    message_put64(at, r->operand);
    return GSHMEM_OK;
}

/* Adds a change that does not continue the last one, for which there is room. */
static gshmem_status_t coalesce_add_change(struct verbs *v, struct coalesced *g,
                                           const struct transport_request *r,
                                           const struct message_change *c)
{
    const uint32_t head_bytes = message_change_head(g->text + g->bytes, &g->last, c);
    gshmem_status_t status = coalesce_add_data(v, r, c, g->text + g->bytes + head_bytes);

    if (status)
        return status;
    g->head = g->bytes;
    g->last = *c;
    g->changes++;
    g->updates |= c->bytes == 0;
    g->of_device |= c->bytes && v->config.segment[c->segment].of_device;
    g->bytes += head_bytes + coalesced_data_bytes(c);
    return GSHMEM_OK;
}

/* Adds a signal for which there is room. */
static void coalesce_add_signal(const struct verbs *v, struct coalesced *g,
                                const struct transport_request *r, const struct message_change *c)
{
    if (coalesced_shares_signal(g, r)) {
        coalesced_share_signal(g, r);
        return;
    }
    g->signal.bytes += message_change_head(g->signal.text + g->signal.bytes, &g->signal.last, c);
    message_put64(g->signal.text + g->signal.bytes, r->signal_value);
    g->signal.bytes += sizeof r->signal_value;
    g->signal.last = *c;
    g->changes++;
    g->updates |= r->signal_op == GSHMEM_SIGNAL_ADD;
    g->signals = true;
    g->of_device |= v->config.segment[c->segment].of_device;
}

/* A put that continues the last one is merged with it. */
static gshmem_status_t coalesce_merge(struct verbs *v, struct coalesced *g,
                                      const struct transport_request *r,
                                      const struct message_change *c)
{
    gshmem_status_t status = coalesce_add_data(v, r, c, g->text + g->bytes);

    if (status)
        return status;
    g->text[g->head] = (unsigned char)(g->text[g->head] + c->bytes);
    g->last.bytes = (uint8_t)(g->last.bytes + c->bytes);
    g->bytes += c->bytes;
    return GSHMEM_OK;
}

/* TRANSPORT_FULL: the collection has no room for it. */
static gshmem_status_t coalesce_add(struct verbs *v, struct coalesced *g,
                                    const struct transport_request *r)
{
    unsigned char head[MESSAGE_CHANGE_FAR + 1];
    struct message_change c[2];
    const int n = coalesce_describe(v, r, c);
    const struct message_change *signal =
        r->kind == TRANSPORT_PUT && r->signal_op ? &c[n - 1] : NULL;
    const struct message_change *other = signal == &c[0] ? NULL : &c[0];
    const bool on = other && coalesce_continues(g, other);
    gshmem_status_t status = GSHMEM_OK;
    uint32_t bytes = 0;

    if (other)
        bytes = (on ? 0 : message_change_head(head, &g->last, other)) + coalesced_data_bytes(other);
    if (signal && !coalesced_shares_signal(g, r))
        bytes += message_change_head(head, &g->signal.last, signal) + coalesced_data_bytes(signal);
    if (g->bytes + g->signal.bytes + bytes > sizeof g->text)
        return TRANSPORT_FULL;
    if (other)
        status = on ? coalesce_merge(v, g, r, other) : coalesce_add_change(v, g, r, other);
    if (signal && !status)
        coalesce_add_signal(v, g, r, signal);
    return status;
}

/* Adds the request to the last operation, if that is a collection which it may join. */
static gshmem_status_t coalesce_join(struct verbs *v, struct link *l,
                                     const struct transport_request *r)
{
    struct op *op = coalesce_last_op(l);

    if (!op || !op->coalesced || op->issued || op->at || op->coalesced->closed ||
        op->request.epoch != r->epoch ||
        l->coalesce.joined_next - l->coalesce.joined_first == JOINED)
        return TRANSPORT_FULL;
    gshmem_status_t status = coalesce_add(v, op->coalesced, r);
    if (status)
        return status;
    l->coalesce.joined[l->coalesce.joined_next++ % JOINED] = (struct joined){r->done, r->tag};
    op->joined_end = l->coalesce.joined_next;
    return GSHMEM_OK;
}

/* The room is made at first use: most peers are never sent so much at once. */
static bool coalesce_make_room(struct link *l)
{
    if (!l->coalesce.joined)
        l->coalesce.joined = calloc(JOINED, sizeof *l->coalesce.joined);
    return l->coalesce.joined &&
           (l->coalesce.list = calloc(COALESCED_MOST, sizeof *l->coalesce.list));
}

/* Nothing joins them. */
static gshmem_status_t coalesce_add_records(struct verbs *v, struct coalesced *g,
                                            const struct transport_request *batch)
{
    gshmem_status_t status = GSHMEM_OK;

    for (uint64_t i = 0; i < batch->elements && !status; i++) {
        const struct transport_request one = coalesce_request_of(batch, i);
        status = coalesce_add(v, g, &one);
    }
    g->closed = g->in_order = true;
    return status;
}

static gshmem_status_t coalesce_begin(struct verbs *v, struct link *l,
                                      const struct transport_request *r)
{
    if (!l->coalesce.list && !coalesce_make_room(l))
        return v->config.fail(GSHMEM_ERR_MEMORY, "verbs: out of memory for small puts to PE %d",
                              l->pe);
    struct coalesced *g = &l->coalesce.list[l->coalesce.next % COALESCED_MOST];
    if (l->coalesce.next - l->coalesce.first == COALESCED_MOST || !op_has_room(v, l))
        return TRANSPORT_FULL;
    g->last = g->signal.last = (struct message_change){.segment = UINT8_MAX}; /* not near any */
    g->bytes = g->signal.bytes = g->changes = 0;
    g->updates = g->signals = g->in_order = g->of_device = g->closed = false;
    g->round = v->rounds;
    g->then = l->coalesce.joined_next - 1; /* differs from joined_next: it has just grown */
    gshmem_status_t status =
        r->kind == TRANSPORT_BATCH ? coalesce_add_records(v, g, r) : coalesce_add(v, g, r);
    if (status)
        return status;
    g->op = op_open(l, r);
    g->op->coalesced = g;
    l->coalesce.open = l->direct && !g->closed ? g : NULL;
    l->coalesce.next++;
    l->posted++;
    return GSHMEM_OK;
}

gshmem_status_t coalesce_post_batch(struct verbs *v, struct link *l,
                                    const struct transport_request *r)
{
    return coalesce_begin(v, l, r);
}

gshmem_status_t coalesce_post(struct verbs *v, struct link *l, const struct transport_request *r,
                              bool *begun)
{
    gshmem_status_t status = coalesce_join(v, l, r);

    *begun = false;
    if (status != TRANSPORT_FULL)
        return status;
    status = coalesce_begin(v, l, r);
    *begun = status == GSHMEM_OK;
    v->held_back |= *begun;
    return status;
}

static bool coalesce_is_in_flight(const struct link *l, const struct path *p)
{
    return p->sends - p->done > p->batch.end - p->batch.first ||
           l->messages.sent != l->messages.replied;
}

/* It waits until a call of progress finds nothing in flight, or finds that nothing has joined it
 * since the last call. */
bool coalesce_waits(struct verbs *v, struct link *l, const struct op *op)
{
    struct coalesced *g = op->coalesced;

    if (op != coalesce_last_op(l) || op->at || g->closed)
        return false;
    if (g->round != v->rounds) {
        if (g->then == l->coalesce.joined_next || !coalesce_is_in_flight(l, l->active[0]))
            return false;
        g->round = v->rounds;
        g->then = l->coalesce.joined_next;
    }
    v->held_back = true;
    return true;
}
