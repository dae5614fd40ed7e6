/* From requests to work requests: what a link's queue pair is given, in order, and when it is done.
 *
 * Puts are writes, gets reads. What a NIC must not do, since CPUs do it to the same memory
 * (atomics, signals that are added), goes to the owner as a message; and as nothing may overtake
 * that before it is done there, small puts behind it go the same way, and all else waits for its
 * reply. A put's signal that is set is a write behind the put's own, on the same queue pair: nobody
 * waits in between. */
#include <errno.h>
#include <string.h>

#include "gshmem/rma.h"
#include "transport/verbs/verbs.h"

static struct op *op_at(struct link *l, uint32_t number)
{
    return &l->op[number % OPS];
}

static bool is_after(uint32_t a, uint32_t b)
{
    return (int32_t)(a - b) > 0;
}

/* ---- Work requests ---- */

void issue_batched(struct verbs *v, struct link *l)
{
    struct ibv_send_wr *bad;
    int error;

    if (!l->batched)
        return;
    l->wr[l->batched - 1].next = NULL;
    l->wr[l->batched - 1].send_flags |= IBV_SEND_SIGNALED; /* for all before it too */
    l->batched = 0;
    if ((error = ibv_post_send(l->qp, l->wr, &bad))) {
        v->config.fail(GSHMEM_ERR_TRANSPORT, "verbs: %s: posting to PE %d: %s", v->nic[0].name, l->pe,
                       strerror(error));
        link_fail(v, l, GSHMEM_ERR_TRANSPORT, "verbs: its queue pair takes nothing any more");
    }
}

/* The next one, to be filled in; NULL: no room. `kept`: it may use the room that is kept. */
static struct ibv_send_wr *next_work(struct verbs *v, struct link *l, bool kept)
{
    if (l->sends - l->sends_done >= SEND_DEPTH - (kept ? 0 : SEND_KEPT))
        return NULL;
    if (l->batched == BATCH)
        issue_batched(v, l);
    if (l->state == LINK_FAILED)
        return NULL;
    struct ibv_send_wr *wr = &l->wr[l->batched];
    *wr = (struct ibv_send_wr){.wr_id = (uint64_t)l->pe << 32 | ++l->sends,
                               .sg_list = &l->sge[l->batched],
                               .num_sge = 1,
                               /* a read may come back later than what is behind it */
                               .send_flags =
                                   is_after(l->last_read, l->sends_done) ? IBV_SEND_FENCE : 0};
    if (l->batched)
        l->wr[l->batched - 1].next = wr;
    l->batched++;
    return wr;
}

bool issue_message(struct verbs *v, struct link *l, const struct message *m)
{
    struct ibv_send_wr *wr = next_work(v, l, true);

    if (!wr)
        return false;
    struct message_bytes *text = &l->text[l->batched - 1];
    *wr->sg_list = (struct ibv_sge){(uintptr_t)text, message_encode(text, m), 0};
    wr->opcode = IBV_WR_SEND;
    wr->send_flags |= IBV_SEND_INLINE;
    return true;
}

/* ---- Messages ---- */

static bool has_unapplied(const struct link *l)
{
    return is_after(l->last_update, l->replied);
}

/* Sends one that the owner will reply to; false: not now. */
static bool send_question(struct verbs *v, struct link *l, struct message *m, uint32_t most)
{
    if (l->said - l->replied >= most)
        return false;
    m->from = (uint32_t)v->config.pe;
    m->number = l->said + 1;
    if (!issue_message(v, l, m))
        return false;
    l->said++;
    return true;
}

static bool send_update(struct verbs *v, struct link *l, struct op *op, struct message *m)
{
    if (!send_question(v, l, m, WINDOW))
        return false;
    op->wants_reply = true;
    op->number = l->last_update = l->said;
    return true;
}

static const void *data_of(struct verbs *v, const struct op *op)
{
    return op->slot >= 0                      ? v->slots + (size_t)op->slot * SLOT_BYTES
           : op->request.bytes <= SMALL_BYTES ? op->small
                                              : op->request.local;
}

static bool send_put(struct verbs *v, struct link *l, struct op *op, bool data)
{
    const struct transport_request *r = &op->request;
    struct message m = {.kind = MESSAGE_PUT,
                        .segment = (uint8_t)r->segment,
                        .bytes = (uint16_t)(data ? r->bytes : 0),
                        .offset = data ? r->offset : 0,
                        .data = data_of(v, op),
                        .signal_op = (uint8_t)r->signal_op,
                        .signal_segment = (uint8_t)r->signal_segment,
                        .a = r->signal_offset,
                        .b = r->signal_value};

    return send_update(v, l, op, &m);
}

static bool send_atomic(struct verbs *v, struct link *l, struct op *op)
{
    const struct transport_request *r = &op->request;
    struct message m = {.kind = MESSAGE_ATOMIC,
                        .segment = (uint8_t)r->segment,
                        .offset = r->offset,
                        .amo = (uint8_t)r->amo,
                        .type = (uint8_t)r->type,
                        .signal_op = r->old != NULL,
                        .a = r->operand,
                        .b = r->compare};

    return send_update(v, l, op, &m);
}

/* ---- Keys ---- */

/* The key for an offset of the peer's segment, and how far it reaches; false: it has been asked
 * for. */
static bool find_key(struct verbs *v, struct link *l, int segment, uint64_t offset, uint64_t *bytes,
                     uint32_t *key)
{
    const uint64_t chunk = offset / CHUNK_BYTES, to_end = (chunk + 1) * CHUNK_BYTES - offset;

    if (!l->key[segment] || offset >= l->bytes[segment] || *bytes > l->bytes[segment] - offset) {
        link_fail(v, l, GSHMEM_ERR_TRANSPORT,
                  "verbs: its symmetric memory ends before this address");
        return false;
    }
    *bytes = *bytes < to_end ? *bytes : to_end;
    *key = (uint32_t)l->key[segment][chunk];
    if (l->key[segment][chunk])
        return true;
    struct message m = {.kind = MESSAGE_KEY, .segment = (uint8_t)segment, .offset = chunk};
    if (!l->asking && send_question(v, l, &m, WINDOW + 1)) {
        l->asking = true;
        l->asked_segment = segment;
        l->asked_chunk = chunk;
        l->asked_number = l->said;
    }
    return false;
}

/* ---- Memory of this side ---- */

/* Registers the program's own memory for this request alone. */
static struct ibv_mr *register_alone(struct verbs *v, struct op *op)
{
    const struct transport_request *r = &op->request;

    if (op->mr)
        return op->mr;
    op->mr = memory_register(v, &v->nic[0], r->local, r->bytes, gpu_has(v, r->local, r->bytes),
                             r->kind == TRANSPORT_GET ? IBV_ACCESS_LOCAL_WRITE : 0);
    if (!op->mr)
        op->failure = v->config.fail(GSHMEM_ERR_TRANSPORT,
                                     "verbs: %s: registering %llu B of this PE's memory: %s "
                                     "(ulimit -l limits what may be pinned)",
                                     v->nic[0].name, (unsigned long long)r->bytes, strerror(errno));
    return op->mr;
}

/* The next bytes of a request that are registered here; false: op->failure says why. */
static bool local_piece(struct verbs *v, struct op *op, uint64_t *bytes, struct ibv_sge *sge)
{
    const struct transport_request *r = &op->request;
    char *at = op->slot >= 0 ? v->slots + (size_t)op->slot * SLOT_BYTES : r->local;
    uint64_t covered = *bytes;
    struct ibv_mr *mr = v->nic[0].slots_mr;

    if (op->slot < 0) {
        mr = memory_of(v, &v->nic[0], at + op->at, &covered);
        if (!mr && covered)
            op->failure = GSHMEM_ERR_TRANSPORT;
        else if (!mr && (mr = register_alone(v, op)))
            covered = *bytes;
    }
    if (!mr)
        return false;
    *bytes = covered;
    *sge = (struct ibv_sge){(uintptr_t)at + op->at, (uint32_t)covered, mr->lkey};
    return true;
}

/* ---- Requests ---- */

/* Writes or reads the rest; false: not now. */
static bool move(struct verbs *v, struct link *l, struct op *op)
{
    const struct transport_request *r = &op->request;
    const bool reads = r->kind == TRANSPORT_GET;

    while (op->at < r->bytes) {
        uint64_t bytes = r->bytes - op->at;
        struct ibv_sge here;
        uint32_t key;

        bytes = bytes < PIECE_BYTES ? bytes : PIECE_BYTES;
        if (!find_key(v, l, r->segment, r->offset + op->at, &bytes, &key))
            return false;
        bool within = !reads && r->bytes <= SMALL_BYTES;
        if (within)
            here = (struct ibv_sge){(uintptr_t)op->small + op->at, (uint32_t)bytes, 0};
        else if (!local_piece(v, op, &bytes, &here))
            return op->failure != GSHMEM_OK;
        struct ibv_send_wr *wr = next_work(v, l, false);
        if (!wr)
            return false;
        *wr->sg_list = here;
        wr->opcode = reads ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE;
        wr->wr.rdma.remote_addr = l->base[r->segment] + r->offset + op->at;
        wr->wr.rdma.rkey = key;
        if (within)
            wr->send_flags |= IBV_SEND_INLINE;
        if (reads) {
            wr->send_flags &= ~(unsigned)IBV_SEND_FENCE;
            l->last_read = l->sends;
        }
        op->at += bytes;
    }
    return true;
}

/* The signal that is set: seen after the data, since it is written behind it. */
static bool set_signal(struct verbs *v, struct link *l, struct op *op)
{
    const struct transport_request *r = &op->request;
    uint64_t bytes = 8;
    uint32_t key;

    if (!find_key(v, l, r->signal_segment, r->signal_offset, &bytes, &key))
        return false;
    struct ibv_send_wr *wr = next_work(v, l, false);
    if (!wr)
        return false;
    op->value = r->signal_value;
    *wr->sg_list = (struct ibv_sge){(uintptr_t)&op->value, 8, 0};
    wr->opcode = IBV_WR_RDMA_WRITE;
    wr->send_flags |= IBV_SEND_INLINE;
    wr->wr.rdma.remote_addr = l->base[r->signal_segment] + r->signal_offset;
    wr->wr.rdma.rkey = key;
    return true;
}

static bool issue_put(struct verbs *v, struct link *l, struct op *op)
{
    const struct transport_request *r = &op->request;
    const bool adds = r->signal_op == GSHMEM_SIGNAL_ADD;

    if (op->at == 0 && r->bytes <= MESSAGE_DATA && (has_unapplied(l) || adds))
        return send_put(v, l, op, true);
    if (op->at == 0 && has_unapplied(l))
        return false;
    if (!move(v, l, op) || op->failure)
        return op->failure != GSHMEM_OK;
    if (!r->signal_op)
        return true;
    return adds ? send_put(v, l, op, false) : set_signal(v, l, op);
}

static bool issue_one(struct verbs *v, struct link *l, struct op *op)
{
    switch (op->request.kind) {
    case TRANSPORT_PUT:
        return issue_put(v, l, op);
    case TRANSPORT_GET:
        return (op->at || !has_unapplied(l)) && move(v, l, op);
    default:
        return send_atomic(v, l, op);
    }
}

static bool is_over(const struct link *l, const struct op *op)
{
    return l->state == LINK_FAILED || (!is_after(op->sends_end, l->sends_done) &&
                                       !(op->wants_reply && is_after(op->number, l->replied)));
}

void issue_more(struct verbs *v, struct link *l)
{
    while (l->state == LINK_UP && l->issuing != l->posted) {
        struct op *op = op_at(l, l->issuing);
        if (!issue_one(v, l, op))
            break;
        op->sends_end = l->sends;
        l->issuing++;
        if (is_over(l, op)) /* it took no work request, so that none will come back and end it */
            v->held_back = true;
    }
}

/* ---- Posting ---- */

/* What is small is copied now; TRANSPORT_FULL: there is no slot for it. */
static gshmem_status_t keep_data(struct verbs *v, struct op *op)
{
    const struct transport_request *r = &op->request;
    uint64_t in_segment = r->bytes;

    op->slot = -1;
    if (r->kind == TRANSPORT_ATOMIC || r->bytes > SLOT_BYTES || r->bytes == 0)
        return GSHMEM_OK;
    if (r->kind == TRANSPORT_PUT && r->bytes <= SMALL_BYTES)
        return gpu_fetch(v, op->small, r->local, r->bytes);
    if (r->kind == TRANSPORT_GET && memory_of(v, &v->nic[0], r->local, &in_segment) && in_segment == r->bytes)
        return GSHMEM_OK; /* straight to its place */
    if (v->slots_left == 0)
        return TRANSPORT_FULL;
    const int slot = v->slot_free[v->slots_left - 1];
    gshmem_status_t status =
        r->kind == TRANSPORT_PUT
            ? gpu_fetch(v, v->slots + (size_t)slot * SLOT_BYTES, r->local, r->bytes)
            : GSHMEM_OK;
    if (status)
        return status;
    v->slots_left--;
    op->slot = slot;
    return GSHMEM_OK;
}

gshmem_status_t issue_post(struct verbs *v, struct link *l, const struct transport_request *request)
{
    if (l->state == LINK_FAILED)
        return l->failure;
    if (l->state == LINK_BELOW && l->posted == l->done)
        return v->below->ops->post(v->below, request);
    if (l->state == LINK_BELOW || l->posted - l->done == OPS)
        return TRANSPORT_FULL;

    struct op *op = op_at(l, l->posted);
    op->request = *request;
    op->at = 0;
    op->wants_reply = false;
    op->failure = GSHMEM_OK;
    op->mr = NULL;
    gshmem_status_t status = keep_data(v, op);
    if (status)
        return status;
    l->posted++;
    issue_more(v, l);
    if (l->batched && request->flags & TRANSPORT_MORE)
        v->held_back = true;
    else if (l->state == LINK_UP)
        issue_batched(v, l);
    return GSHMEM_OK; /* if the link broke just now, done has been called with that */
}

/* ---- Done ---- */

static void release(struct verbs *v, struct op *op)
{
    if (op->slot >= 0)
        v->slot_free[v->slots_left++] = op->slot;
    if (op->mr)
        ibv_dereg_mr(op->mr);
    op->slot = -1;
    op->mr = NULL;
}

void issue_finish(struct verbs *v, struct link *l)
{
    uint32_t *end = l->state == LINK_FAILED ? &l->posted : &l->issuing;

    while (l->done != *end && is_over(l, op_at(l, l->done))) {
        struct op *op = op_at(l, l->done);
        gshmem_status_t status = l->state == LINK_FAILED ? l->failure : op->failure;
        void (*done)(void *tag, gshmem_status_t status) = op->request.done;
        void *tag = op->request.tag;

        if (!status && op->request.kind == TRANSPORT_GET && op->slot >= 0)
            status = gpu_deliver(v, op->request.local, data_of(v, op), op->request.bytes);
        release(v, op);
        l->done++;
        v->events++;
        done(tag, status);
    }
}

void issue_below(struct verbs *v, struct link *l)
{
    while (l->done != l->posted) {
        struct op *op = op_at(l, l->done);
        struct transport_request r = op->request;

        if (r.kind == TRANSPORT_PUT && r.bytes)
            r.local = (void *)(uintptr_t)data_of(v, op);
        gshmem_status_t status = v->below->ops->post(v->below, &r);
        if (status == TRANSPORT_FULL)
            break;
        release(v, op);
        l->done++;
        v->events++;
        if (status)
            r.done(r.tag, status);
    }
    l->issuing = l->done;
    v->held_back |= l->done != l->posted;
}
