/* Staging, the initiator's side: data of a GPU that NICs do not reach, at the peer or here, moves
 * by chunks, several of them in flight.
 *
 * 1. The initiator copies a put's chunk into a pinned buffer, if its own NIC does not reach the
 *    data.
 * 2. It sends a message that says where the data of the chunk is, or is to be, in its memory.
 * 3. The target's proxy fetches the data from there, or puts it there (pending.c), and replies.
 * 4. The initiator copies a get's chunk out of its buffer, and the chunk is done.
 *
 * A buffer that waits for another PE is one of those for what goes out; one that serves a peer is
 * free again whatever other PEs do. So PEs that ask each other for all they have are always
 * served. */
#include <string.h>

#include "transport/verbs/memory.h"
#include "transport/verbs/ops.h"
#include "transport/verbs/send.h"
#include "transport/verbs/staged.h"
#include "transport/verbs/verbs.h"

static struct staged_chunk *staged_chunk_at(struct link_staging *s, uint32_t i)
{
    return &s->chunk[i % STAGED_CHUNKS];
}

/* ---- Requests ---- */

/* Makes the next chunk of an operation, which lies within one registration on either side; false:
 * later, or op->failure says why. */
static bool staged_make_chunk(struct verbs *v, struct link *l, struct op *op)
{
    const struct transport_request *r = &op->request;
    struct link_staging *s = l->staging;
    char *local = (char *)r->local + op->at;
    struct staged_chunk p = {.op = op_number(l, op), .state = STAGED_READY, .at = op->at};

    if (s->next - s->first == STAGED_CHUNKS)
        return false;
    p.bytes = staged_least(r->bytes - op->at, STAGED_MOST);
    p.bytes = staged_least(p.bytes, CHUNK_BYTES - (r->offset + op->at) % CHUNK_BYTES);
    if (staged_is_local(v, op)) {
        if (!(p.buffer = staging_take(&v->staging, STAGING_OUT, p.bytes, &s->held))) {
            op->failure = v->staging.failed ? GSHMEM_ERR_MEMORY : GSHMEM_OK;
            return false;
        }
        p.bytes = staged_least(p.bytes, p.buffer->room);
        if (r->kind == TRANSPORT_PUT) {
            if ((op->failure = staging_begin(p.buffer, p.buffer->at, local, p.bytes))) {
                staging_give(p.buffer);
                return false;
            }
            p.state = STAGED_COPIED;
        }
    } else if (op->slot < 0) {
        uint64_t covered = p.bytes;
        if (memory_of(v, l->active[0]->nic, local, &covered))
            p.bytes = covered;
    }
    *staged_chunk_at(s, s->next++) = p;
    op->at += p.bytes;
    op->chunks++;
    return true;
}

/* The chunk's address in this PE's memory, and its registration with the messenger's NIC. */
static struct ibv_mr *staged_find_local(struct verbs *v, struct link *l, struct op *op,
                                        const struct staged_chunk *p, uint64_t *address)
{
    struct nic *nic = l->active[0]->nic;
    char *at = p->buffer ? p->buffer->at : (char *)op_data(v, op) + p->at;
    uint64_t covered = p->bytes;
    struct ibv_mr *mr;

    *address = (uintptr_t)at;
    if (p->buffer)
        return staged_pool(v, nic);
    if (op->slot >= 0)
        return nic->slots_mr;
    mr = memory_of(v, nic, at, &covered);
    if (mr || covered)
        return covered == p->bytes ? mr : NULL;
    return op_register(v, nic, op);
}

static bool staged_request(struct verbs *v, struct link *l, struct op *op, struct staged_chunk *p)
{
    const struct transport_request *r = &op->request;
    uint64_t address;
    struct ibv_mr *mr = staged_find_local(v, l, op, p, &address);

    if (!mr) {
        v->report->memory_refused(v, l, "what is to be staged cannot be registered");
        return false;
    }
    struct message m = {.kind = r->kind == TRANSPORT_PUT ? MESSAGE_TAKE : MESSAGE_GIVE,
                        .segment = (uint8_t)r->segment,
                        .amo = op->behind && p->at == 0,
                        .offset = r->offset + p->at,
                        .a = address,
                        .b = (uint64_t)mr->rkey << 32 | p->bytes};
    const bool wanted = op->wants_reply;
    if (!send_update(v, l, op, &m))
        return false;
    op->wants_reply = wanted; /* each chunk waits for its own reply */
    p->number = l->messages.sent;
    p->state = STAGED_REQUESTED;
    return true;
}

/* Gives up the chunks that have not been requested; the others still get their replies. */
static void staged_give_up(struct link *l, struct op *op)
{
    const uint32_t number = op_number(l, op);
    struct link_staging *s = l->staging;

    for (uint32_t i = s->first; i != s->next; i++) {
        struct staged_chunk *p = staged_chunk_at(s, i);
        if (p->op != number || p->state >= STAGED_REQUESTED)
            continue;
        staged_let_go(&p->buffer);
        op->at = staged_least(op->at, p->at);
        op->chunks--;
        p->state = STAGED_DONE;
    }
}

/* Requests all chunks of an operation, in order; true: all are requested, or it has failed. */
static bool staged_request_all(struct verbs *v, struct link *l, struct op *op)
{
    const uint32_t number = op_number(l, op);
    struct link_staging *s = l->staging;
    bool all = true;

    while (op->at < op->request.bytes && staged_make_chunk(v, l, op)) {
    }
    for (uint32_t i = s->first; is_after(s->next, i) && !op->failure; i++) {
        struct staged_chunk *p = staged_chunk_at(s, i);
        if (p->op != number || p->state >= STAGED_REQUESTED)
            continue;
        if (p->state == STAGED_COPIED && !p->buffer->copying) {
            op->failure = p->buffer->copied;
            p->state = STAGED_READY;
        }
        all = p->state == STAGED_READY && !op->failure && staged_request(v, l, op, p);
        if (!all)
            break;
    }
    if (op->failure) {
        staged_give_up(l, op);
        return true;
    }
    v->held_back = true;
    return all && op->at == op->request.bytes;
}

bool staged_issue(struct verbs *v, struct link *l, struct op *op)
{
    if (!staged_of(v, l)) {
        op->failure = GSHMEM_ERR_MEMORY;
        return true;
    }
    op->staged = true;
    return staged_request_all(v, l, op);
}

bool staged_may_go_below(struct link *l, struct op *op)
{
    if (op->staged && op->chunks)
        staged_give_up(l, op);
    return !op->chunks;
}

/* ---- Replies ---- */

static void staged_end_chunk(struct link *l, struct op *op, struct staged_chunk *p,
                             gshmem_status_t status)
{
    staged_let_go(&p->buffer);
    op->failure = op->failure ? op->failure : status;
    op->chunks--;
    p->state = STAGED_DONE;
    l->verbs->held_back = true;
}

void staged_go_on(struct verbs *v, struct link *l)
{
    struct link_staging *s = l->staging;

    for (uint32_t i = s->first; i != s->next; i++) {
        struct staged_chunk *p = staged_chunk_at(s, i);
        struct op *op = op_of(l, p->op);
        if (p->state == STAGED_REQUESTED && !is_after(p->number, l->messages.replied)) {
            gshmem_status_t status = GSHMEM_OK;
            const bool lands = p->buffer && op->request.kind == TRANSPORT_GET;
            if (lands)
                status = staging_begin(p->buffer, (char *)op->request.local + p->at, p->buffer->at,
                                       p->bytes);
            if (lands && !status)
                p->state = STAGED_LANDS;
            else
                staged_end_chunk(l, op, p, status);
        } else if (p->state == STAGED_LANDS && !p->buffer->copying) {
            staged_end_chunk(l, op, p, p->buffer->copied);
        }
        v->held_back |= p->state == STAGED_LANDS || p->state == STAGED_COPIED;
    }
    while (s->first != s->next && staged_chunk_at(s, s->first)->state == STAGED_DONE)
        s->first++;
}

void staged_repeat(struct link *l, uint32_t received)
{
    struct link_staging *s = l->staging;

    for (uint32_t i = s ? s->first : 0; s && i != s->next; i++) {
        struct staged_chunk *p = staged_chunk_at(s, i);
        const struct work w = {.op = p->op, .kind = WORK_MESSAGE};
        if (p->state != STAGED_REQUESTED || !is_after(p->number, received))
            continue;
        p->state = STAGED_READY;
        op_issue_again(l, &w);
    }
}

void staged_end(struct link *l)
{
    struct link_staging *s = l->staging;

    for (; s && s->first != s->next; s->first++) {
        struct staged_chunk *p = staged_chunk_at(s, s->first);
        if (p->state == STAGED_DONE)
            continue;
        staged_let_go(&p->buffer);
        op_of(l, p->op)->chunks--;
    }
}
