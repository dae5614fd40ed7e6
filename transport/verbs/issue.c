/* From requests to work requests: what a link's queue pairs are given, and when.
 *
 * Puts are writes, gets reads. What a NIC must not do, since CPUs do it to the same memory (atomics,
 * signals that are added), goes to the owner as a message. A put's signal that is set is a write
 * behind the put's own, on the same queue pair: nobody waits in between. Where NICs do not place writes in order
 * (path.reorders) that signal is a message, too, which the owner is given when all before it is in its place.
 *
 * Order is kept where it is asked for: between two requests that are not both loose, or of different
 * epochs, is a fence. What is behind a fence waits until what went before it by other paths, or by one that
 * reorders, is done, and until messages that went before it are applied; small puts do not wait for those but become
 * messages too, and messages do not wait for them at all. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gshmem/rma.h"
#include "transport/verbs/post.h"

uint32_t issue_number(const struct link *l, const struct op *op)
{
    return l->done + (((uint32_t)(op - l->op) - l->done) & (l->depth - 1));
}

static void note_sent(struct op *op, const struct path *p)
{
    op->end[p->index] = p->sends;
    op->used |= (uint16_t)(1u << p->index);
}

/* ---- Order ---- */

/* Marks what the next request may not overtake; false: a signal before it is still held back. */
static bool issue_fence(struct link *l, struct op *op)
{
    const bool ordered = !(op->request.flags & TRANSPORT_LOOSE);

    if (op->fenced || (!ordered && !l->ordered && op->request.epoch == l->epoch)) {
        op->fenced = true;
        return true;
    }
    if (l->held)
        return false;
    for (int i = 0; i < l->paths; i++) {
        l->path[i]->fence = l->path[i]->sends;
        l->path[i]->fence_read = l->path[i]->last_read;
    }
    l->fence_update = l->last_update;
    l->epoch = op->request.epoch;
    l->ordered = ordered;
    op->behind = op->fenced = true;
    return true;
}

static void issue_move_up(uint32_t *mark, uint32_t done)
{
    if (!is_after(*mark, done))
        *mark = done;
}

void issue_move_marks(struct link *l)
{
    for (int i = 0; i < l->paths; i++) {
        issue_move_up(&l->path[i]->fence, l->path[i]->done);
        issue_move_up(&l->path[i]->fence_read, l->path[i]->done);
        issue_move_up(&l->path[i]->last_read, l->path[i]->done);
    }
    issue_move_up(&l->fence_update, l->replied);
}

/* Whether what went before the fence is done, by other paths than that one. */
static bool others_are_done(const struct link *l, const struct path *p)
{
    for (int i = 0; i < l->ups; i++) {
        if (l->up[i] != p && is_after(l->up[i]->fence, l->up[i]->done))
            return false;
    }
    return true;
}

/* Whether a path's next write, read or update comes behind all that went before the fence. A message always does, if
 * others are done: it is told to the owner when all before it is in its place. */
static bool may_use(const struct link *l, const struct path *p)
{
    return others_are_done(l, p) && !(p->reorders && is_after(p->fence, p->done));
}

bool issue_has_unapplied(const struct link *l)
{
    return is_after(l->fence_update, l->replied);
}

bool issue_may_go_below(struct link *l, struct op *op)
{
    return issue_fence(l, op) && !issue_has_unapplied(l);
}

bool issue_waits_for_writes(const struct link *l)
{
    const struct path *p = l->up[0];

    return p->reorders && is_after(p->fence, p->done);
}

/* ---- Messages ---- */

/* Sends one that the owner will reply to; false: not now. */
static bool send_question(struct verbs *v, struct link *l, enum work_kind kind, uint32_t op,
                          struct message *m, uint32_t most)
{
    if (l->said - l->replied >= most || !others_are_done(l, l->up[0]))
        return false;
    m->from = (uint32_t)v->config.pe;
    m->number = l->said + 1;
    if (!post_message(v, l->up[0], kind, op, m))
        return false;
    l->said++;
    return true;
}

bool issue_update(struct verbs *v, struct link *l, struct op *op, struct message *m)
{
    if (!send_question(v, l, WORK_MESSAGE, issue_number(l, op), m, l->window))
        return false;
    op->wants_reply = true;
    op->number = l->last_update = l->said;
    note_sent(op, l->up[0]);
    return true;
}

static bool issue_send_put(struct verbs *v, struct link *l, struct op *op, bool data)
{
    const struct transport_request *r = &op->request;
    const bool signals = !atomics_have(v, r); /* else its NIC does, and not for a message */
    struct message m = {.kind = MESSAGE_PUT,
                        .segment = (uint8_t)r->segment,
                        .bytes = (uint16_t)(data ? r->bytes : 0),
                        .offset = data ? r->offset : 0,
                        .data = finish_data(v, op),
                        .signal_op = (uint8_t)(signals ? r->signal_op : 0),
                        .signal_segment = (uint8_t)r->signal_segment,
                        .a = r->signal_offset,
                        .b = r->signal_value};

    return issue_update(v, l, op, &m);
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

    return issue_update(v, l, op, &m);
}

/* ---- Keys ---- */

/* The key of that path's NIC for an offset of the peer's segment, and how far it reaches; false: it
 * has been asked for. */
static bool find_key(struct verbs *v, struct link *l, const struct path *p, int segment,
                     uint64_t offset, uint64_t *bytes, uint32_t *key)
{
    const uint64_t chunk = offset / CHUNK_BYTES, to_end = (chunk + 1) * CHUNK_BYTES - offset;

    if (!l->key[segment] || offset >= l->bytes[segment] || *bytes > l->bytes[segment] - offset) {
        link_fail(v, l, GSHMEM_ERR_TRANSPORT,
                  "verbs: its symmetric memory ends before this address");
        return false;
    }
    const uint64_t found = l->key[segment][chunk * (uint64_t)l->rails + p->number % RAILS_MOST];
    *bytes = *bytes < to_end ? *bytes : to_end;
    *key = (uint32_t)found;
    if (found)
        return true;
    struct message m = {.kind = MESSAGE_KEY,
                        .segment = (uint8_t)segment,
                        .amo = (uint8_t)l->rails,
                        .offset = chunk};
    if (!l->asking && send_question(v, l, WORK_OTHER, 0, &m, l->window + 1)) {
        l->asking = true;
        l->asked_segment = segment;
        l->asked_chunk = chunk;
        l->asked_number = l->said;
    }
    return false;
}

/* ---- Memory of this side ---- */

struct ibv_mr *issue_register_alone(struct verbs *v, struct nic *nic, struct op *op)
{
    const struct transport_request *r = &op->request;
    struct ibv_mr **mr = &op->mr[nic - v->nic];

    if (*mr)
        return *mr;
    op->registered = true;
    *mr = memory_register(v, nic, r->local, r->bytes, gpu_has(v, r->local, r->bytes),
                          op->staged ? IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                                           IBV_ACCESS_REMOTE_READ
                          : r->kind == TRANSPORT_GET ? nic_reads_into(nic)
                                                     : 0);
    if (!*mr) {
        if (!v->refusal_said)
            v->config.fail(GSHMEM_ERR_TRANSPORT,
                           "verbs: %s: registering %llu B of this PE's memory: %s (ulimit -l limits what may be "
                           "pinned): all to PE %d goes by TCP from here on, and to others for which it is so",
                           nic->name, (unsigned long long)r->bytes, strerror(errno), op->link->pe);
        v->refusal_said = true;
        link_go_below(v, op->link, "this PE's memory cannot be registered");
    }
    return *mr;
}

/* The bytes of a request from `from` on that are registered here; false: op->failure says why. */
static bool local_piece(struct verbs *v, struct nic *nic, struct op *op, uint64_t from, uint64_t *bytes,
                        struct ibv_sge *sge)
{
    const struct transport_request *r = &op->request;
    char *at = (op->slot >= 0 ? v->slots + (size_t)op->slot * SLOT_BYTES : (char *)r->local) + from;
    uint64_t covered = *bytes;
    struct ibv_mr *mr = nic->slots_mr;

    if (op->slot < 0) {
        mr = memory_of(v, nic, at, &covered);
        if (!mr && covered)
            link_go_below(v, op->link, "this PE's memory cannot be registered");
        else if (!mr && (mr = issue_register_alone(v, nic, op)))
            covered = *bytes;
    }
    if (!mr)
        return false;
    *bytes = covered;
    *sge = (struct ibv_sge){(uintptr_t)at, (uint32_t)covered, mr->lkey};
    return true;
}

/* ---- Requests ---- */

/* What is large goes by all paths, in stripes. The path for the bytes from `at` on, and how many of them. */
static struct path *next_path(const struct link *l, const struct op *op, uint64_t at, uint64_t *bytes)
{
    const uint64_t all = op->request.bytes;

    if (l->ups == 1 || all < 2 * STRIPE_BYTES || l->up[0]->nic->iwarp)
        return l->up[0];
    uint64_t stripe = (all / (unsigned)l->ups + 4095) & ~4095ull;
    if (stripe < STRIPE_BYTES)
        stripe = STRIPE_BYTES;
    uint64_t left = stripe - at % stripe;
    *bytes = *bytes < left ? *bytes : left;
    return l->up[at / stripe % (unsigned)l->ups];
}

bool issue_next_piece(const struct op *op, uint64_t *at, uint64_t *bytes)
{
    *at = op->hole ? op->hole->at : op->at;
    *bytes = op->hole ? op->hole->bytes : op->request.bytes - op->at;
    return *bytes > 0;
}

void issue_took_piece(struct op *op, uint64_t bytes)
{
    struct hole *h = op->hole;

    if (!h) {
        op->at += bytes;
        return;
    }
    h->at += bytes;
    h->bytes -= bytes;
    if (h->bytes == 0) {
        op->hole = h->next;
        free(h);
    }
}

/* These bytes are to go again. What ends where the op has got to is given back; what lies before that is
 * a hole. false: out of memory. */
static bool lose_piece(struct op *op, uint64_t at, uint64_t bytes)
{
    struct hole **next = &op->hole, *before = NULL, *h;

    while (*next && (*next)->at < at) {
        before = *next;
        next = &before->next;
    }
    if (before && before->at + before->bytes == at) {
        before->bytes += bytes;
        h = before;
    } else {
        if (!(h = malloc(sizeof *h)))
            return false;
        *h = (struct hole){*next, at, bytes};
        *next = h;
    }
    if (h->next && h->at + h->bytes == h->next->at) {
        struct hole *joined = h->next;
        h->bytes += joined->bytes;
        h->next = joined->next;
        free(joined);
    }
    return true;
}

/* The last hole is none if nothing lies behind it. */
static void issue_give_back(struct op *op)
{
    struct hole **last = &op->hole;

    while (*last && (*last)->next)
        last = &(*last)->next;
    if (*last && (*last)->at + (*last)->bytes == op->at) {
        op->at = (*last)->at;
        free(*last);
        *last = NULL;
    }
}

/* Writes or reads the rest; false: not now. */
static bool issue_move(struct verbs *v, struct link *l, struct op *op)
{
    const struct transport_request *r = &op->request;
    const bool reads = r->kind == TRANSPORT_GET, within = !reads && r->bytes <= SMALL_BYTES;

    for (uint64_t at, bytes; issue_next_piece(op, &at, &bytes);) {
        struct ibv_sge here = {0};
        uint32_t key;
        struct path *p = next_path(l, op, at, &bytes);

        if (!may_use(l, p) || !find_key(v, l, p, r->segment, r->offset + at, &bytes, &key))
            return false;
        if (!within && !local_piece(v, p->nic, op, at, &bytes, &here))
            return op->failure != GSHMEM_OK;
        struct ibv_send_wr *wr = post_next(v, p, reads ? WORK_READ : WORK_WRITE, issue_number(l, op),
                                           at, bytes);
        if (!wr)
            return false;
        wr->opcode = reads ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE;
        wr->wr.rdma.remote_addr = l->base[r->segment] + r->offset + at;
        wr->wr.rdma.rkey = key;
        if (within)
            post_within(p, wr, op->small + at, (uint32_t)bytes);
        else
            *wr->sg_list = here;
        if (reads)
            p->last_read = p->sends;
        note_sent(op, p);
        issue_took_piece(op, bytes);
    }
    return true;
}

bool issue_small(struct verbs *v, struct link *l, struct op *op, uint64_t at,
                 const struct message_change *put)
{
    struct path *p = l->up[0];
    uint64_t bytes = put->bytes;
    uint32_t key = l->near.key;

    if (!may_use(l, p) || (!(p == l->direct && is_near(l, put->segment, put->offset, bytes)) &&
                           !find_key(v, l, p, put->segment, put->offset, &bytes, &key)))
        return false;
    struct ibv_send_wr *wr = post_next(v, p, WORK_WRITE, issue_number(l, op), at, 0); /* a packet */
    if (!wr)
        return false;
    wr->opcode = IBV_WR_RDMA_WRITE;
    wr->wr.rdma.remote_addr = l->base[put->segment] + put->offset;
    wr->wr.rdma.rkey = key;
    post_within(p, wr, put->data, (uint32_t)bytes);
    note_sent(op, p);
    return true;
}

/* The signal that is set: seen after the data, since it is written behind it. */
static bool set_signal(struct verbs *v, struct link *l, struct op *op)
{
    const struct transport_request *r = &op->request;
    struct path *p = l->up[0];
    uint64_t bytes = 8;
    uint32_t key;

    if (!may_use(l, p) || !find_key(v, l, p, r->signal_segment, r->signal_offset, &bytes, &key))
        return false;
    struct ibv_send_wr *wr = post_next(v, p, WORK_SIGNAL, issue_number(l, op), 0, 8);
    if (!wr)
        return false;
    op->value = r->signal_value;
    post_within(p, wr, &op->value, 8);
    wr->opcode = IBV_WR_RDMA_WRITE;
    wr->wr.rdma.remote_addr = l->base[r->signal_segment] + r->signal_offset;
    wr->wr.rdma.rkey = key;
    note_sent(op, p);
    return true;
}

/* What the owner's NIC does to a word that nobody else updates. */
static bool update_by_nic(struct verbs *v, struct link *l, struct op *op)
{
    struct path *p = l->updater;
    uint64_t bytes = 8;
    uint32_t key;

    if (!p || p->state != PATH_UP)
        return atomics_wait(v, op);
    const struct update u = atomics_update(op);
    if (!may_use(l, p) || !find_key(v, l, p, u.segment, u.word, &bytes, &key))
        return op->failure != GSHMEM_OK;
    if (!l->updates && !atomics_make_room(v, op))
        return true;
    struct ibv_send_wr *wr = post_next(v, p, WORK_UPDATE, issue_number(l, op), 0, 8);
    if (!wr)
        return false;
    atomics_fill_in(v, op, &u, key, wr);
    note_sent(op, p);
    return true;
}

/* A signal that the owner gives, as others update that word too, or NICs do not get there, or it would not be written
 * behind its data. */
static bool tells_signal(const struct verbs *v, const struct link *l,
                         const struct transport_request *r)
{
    return r->signal_op == GSHMEM_SIGNAL_ADD ||
           (r->signal_op && (l->up[0]->reorders || stage_is_far(v, l, r->signal_segment)));
}

static bool send_signal(struct verbs *v, struct link *l, struct op *op)
{
    if (atomics_have(v, &op->request))
        return update_by_nic(v, l, op);
    return tells_signal(v, l, &op->request) ? issue_send_put(v, l, op, false)
                                            : set_signal(v, l, op);
}

/* Whether data of it is on its way that its signal might overtake: by other paths than the signal's; or by that one, if
 * it reorders and the signal is no message. */
static bool may_be_overtaken(const struct verbs *v, const struct link *l, const struct op *op)
{
    const bool by_nic = atomics_have(v, &op->request);
    const struct path *signals = by_nic ? l->updater : l->up[0];

    for (int i = 0; i < l->paths; i++) {
        const struct path *p = l->path[i];
        if (op->used >> i & 1 && (p != signals || (by_nic && p->reorders)) && is_after(op->end[i], p->done))
            return true;
    }
    return false;
}

/* Of a request that is staged: the owner gives it behind the data, but one that its NIC gives has
 * to wait. */
static bool send_signal_behind(struct verbs *v, struct link *l, struct op *op)
{
    if (!op->request.signal_op || op->failure)
        return true;
    if (!atomics_have(v, &op->request))
        return issue_send_put(v, l, op, false);
    return !op->pieces && update_by_nic(v, l, op);
}

/* Little data, by a message, for a signal that only a NIC gives: true when it is there. */
static bool send_small_before(struct verbs *v, struct link *l, struct op *op)
{
    if (!op->wants_reply && !issue_send_put(v, l, op, true))
        return false;
    v->held_back = true;
    return !is_after(op->number, l->replied);
}

/* Looked at before the data leaves, of which the owner's CPU sees nothing: so neither is stored. */
static bool has_bad_signal(const struct link *l, const struct transport_request *r)
{
    if (!r->signal_op)
        return false;
    const uint64_t all = l->bytes[r->signal_segment];
    return all < 8 || r->signal_offset > all - 8 ||
           (l->base[r->signal_segment] + r->signal_offset) % 8;
}

static bool issue_put(struct verbs *v, struct link *l, struct op *op)
{
    const struct transport_request *r = &op->request;
    const bool told = l->up[0]->nic->iwarp, by_nic = atomics_have(v, r);
    const bool far = stage_is_far(v, l, r->segment), adds = told || far || tells_signal(v, l, r);

    if (has_bad_signal(l, r)) {
        op->failure = v->config.fail(GSHMEM_ERR_ARGUMENT,
                                     "verbs: a signal to PE %d lies outside its symmetric memory, "
                                     "or is not aligned",
                                     l->pe);
        return true;
    }
    if (op->staged || stage_needs(v, l, op))
        return stage_issue(v, l, op) && send_signal_behind(v, l, op);
    if (by_nic && far && r->bytes)
        return send_small_before(v, l, op) && update_by_nic(v, l, op);
    if (!by_nic && op->at == 0 && r->bytes <= MESSAGE_DATA &&
        (adds || issue_has_unapplied(l) || issue_waits_for_writes(l)))
        return issue_send_put(v, l, op, true);
    if (op->at == 0 && issue_has_unapplied(l))
        return false;
    if (!issue_move(v, l, op) || op->failure)
        return op->failure != GSHMEM_OK;
    if (told) /* that a write of iWARP's has arrived shows what comes behind it */
        return issue_send_put(v, l, op, false);
    if (!r->signal_op)
        return true;
    if (!may_be_overtaken(v, l, op))
        return send_signal(v, l, op);
    op->held = true;
    l->held++;
    return true;
}

static bool issue_one(struct verbs *v, struct link *l, struct op *op)
{
    if (op->coalesced && coalesce_waits(v, l, op))
        return false;
    if (!issue_fence(l, op))
        return false;
    if (op->coalesced)
        return coalesce_issue(v, l, op);
    switch (op->request.kind) {
    case TRANSPORT_PUT:
        return issue_put(v, l, op);
    case TRANSPORT_GET:
        if (op->staged || stage_needs(v, l, op))
            return stage_issue(v, l, op);
        return (op->at || !issue_has_unapplied(l)) && issue_move(v, l, op);
    default:
        if (!atomics_have(v, &op->request))
            return send_atomic(v, l, op);
        return !issue_has_unapplied(l) && update_by_nic(v, l, op);
    }
}

/* Signals that stripes held back, and updates that are to be tried again. */
static void issue_send_held(struct verbs *v, struct link *l)
{
    for (uint32_t i = l->done; i != l->issuing && l->held && l->state == LINK_UP; i++) {
        struct op *op = op_of(l, i);
        if (!op->held || op->updates || may_be_overtaken(v, l, op))
            continue;
        op->held = false;
        l->held--;
        if (send_signal(v, l, op))
            continue;
        op->held = true;
        l->held++;
        return;
    }
}

void issue_more(struct verbs *v, struct link *l)
{
    if (l->held)
        issue_send_held(v, l);
    while (l->state == LINK_UP && l->issuing != l->posted) {
        struct op *op = op_of(l, l->issuing);
        if (!op->issued && !issue_one(v, l, op))
            break;
        op->issued = true;
        l->issuing++;
        if (!op->used) /* it took no work request, so that none will come back and end it */
            v->held_back = true;
    }
}

bool issue_again(struct link *l, const struct work *w)
{
    struct op *op = op_of(l, w->op);

    if (w->kind == WORK_OTHER)
        return true;
    l->alone = NONE_ALONE;
    if (w->kind == WORK_MESSAGE)
        op->wants_reply = false;
    if (op->coalesced && w->kind == WORK_WRITE) /* its parts go in order, by one path */
        op->at = w->at < op->at ? w->at : op->at;
    else if ((w->kind == WORK_WRITE || w->kind == WORK_READ) && !lose_piece(op, w->at, w->bytes))
        return false;
    issue_give_back(op);
    l->held -= op->held;
    op->issued = op->held = op->updates = op->fenced = false;
    if (is_after(l->issuing, w->op))
        l->issuing = w->op;
    return true;
}

void issue_unheard(struct link *l, uint32_t heard)
{
    for (uint32_t i = l->done; i != l->posted; i++) {
        const struct op *op = op_of(l, i);
        const struct work w = {.op = i, .kind = WORK_MESSAGE};
        if (op->wants_reply && is_after(op->number, heard))
            issue_again(l, &w);
    }
    stage_forget(l, heard);
}

/* ---- Posting ---- */

/* Links whose peers have stopped keep their slots for long: one link gets a quarter of them at most, and
 * of the last quarter a few, so that some are left for others. */
static bool may_take_slot(const struct verbs *v, const struct link *l)
{
    return v->slots_left && l->slots < (v->slots_left > SLOTS / 4 ? SLOTS / 4 : SLOTS_LEAST);
}

/* What is small is copied now; TRANSPORT_FULL: there is no slot for it. */
static gshmem_status_t keep_data(struct verbs *v, struct op *op)
{
    const struct transport_request *r = &op->request;
    uint64_t in_segment = r->bytes;

    if (r->kind == TRANSPORT_ATOMIC || r->bytes > SLOT_BYTES || r->bytes == 0)
        return GSHMEM_OK;
    if (r->kind == TRANSPORT_PUT && r->bytes <= SMALL_BYTES)
        return gpu_fetch(v, op->small, r->local, r->bytes);
    if (r->kind == TRANSPORT_GET && op->link->pairs &&
        memory_of(v, &v->nic[op->link->rail[0].mine], r->local, &in_segment) &&
        in_segment == r->bytes)
        return GSHMEM_OK; /* straight to its place */
    if (!may_take_slot(v, op->link))
        return TRANSPORT_FULL;
    const int slot = v->slot_free[v->slots_left - 1];
    gshmem_status_t status =
        r->kind == TRANSPORT_PUT
            ? gpu_fetch(v, v->slots + (size_t)slot * SLOT_BYTES, r->local, r->bytes)
            : GSHMEM_OK;
    if (status)
        return status;
    v->slots_left--;
    op->link->slots++;
    op->slot = slot;
    return GSHMEM_OK;
}

/* Whether there will never be a path of verbs. */
static bool is_below_for_ever(const struct link *l)
{
    for (int i = 0; i < l->paths; i++) {
        if (l->path[i]->state != PATH_NONE)
            return false;
    }
    return true;
}

/* A peer that is seldom talked to has few requests under way, and little room. More is made while nobody knows where they
 * are: neither a work request that waits for its batch, nor the transport below. */
static bool issue_make_room(struct verbs *v, struct link *l)
{
    const uint32_t depth = l->depth * 4 < OPS ? l->depth * 4 : OPS;
    struct op *more;

    issue_batched(v, l);
    for (int i = 0; i < l->paths; i++) {
        if (l->path[i]->batched != l->path[i]->batch_first)
            return false;
    }
    if (l->state == LINK_FAILED || l->below_left || l->depth == OPS || !(more = calloc(depth, sizeof *more)))
        return false;
    for (uint32_t i = l->done; i != l->posted; i++) {
        struct op *to = &more[i & (depth - 1)];
        *to = *op_of(l, i);
        if (to->coalesced)
            to->coalesced->op = to;
    }
    free(l->op);
    l->op = more;
    l->depth = depth;
    return true;
}

bool issue_has_room(struct verbs *v, struct link *l)
{
    return l->posted - l->done < l->depth || issue_make_room(v, l);
}

struct op *issue_open(struct link *l, const struct transport_request *request)
{
    struct op *op = op_of(l, l->posted);

    l->collecting = NULL;
    op->request = *request;
    op->link = l;
    op->slot = -1;
    op->joined_end = l->joined_next;
    memset((char *)op + offsetof(struct op, at), 0,
           offsetof(struct op, small) - offsetof(struct op, at));
    return op;
}

/* ---- The common cases in one go ----
 *
 * A small put, or an update by a NIC, while no request before it is under way, nor anything else by
 * its path. So it has nothing to keep in order with, or to wait for, and leaves at once, though more
 * may follow: those coalesce meanwhile. What is false goes the general way, like all others. */

/* The key for all of those bytes, of a path's NIC; 0: it is not known, or there is none for all. */
static inline uint64_t known_key(const struct link *l, const struct path *p, int segment,
                                 uint64_t offset, uint64_t bytes)
{
    const bool known = segment < TRANSPORT_SEGMENT_MAX;
    const uint64_t *key = known ? l->key[segment] : NULL, all = known ? l->bytes[segment] : 0;

    if (!key || offset >= all || bytes > all - offset || offset % CHUNK_BYTES + bytes > CHUNK_BYTES)
        return 0;
    return key[offset / CHUNK_BYTES * (uint64_t)l->rails + p->number % RAILS_MOST];
}

__attribute__((noinline)) static bool come_near(struct link *l, const struct transport_request *r)
{
    const uint64_t from = r->offset / CHUNK_BYTES * CHUNK_BYTES,
                   key = known_key(l, l->direct, r->segment, r->offset, r->bytes);

    if (!key)
        return false;
    const uint64_t all = l->bytes[r->segment] - from;
    l->near = (struct near){.from = from,
                            .bytes = all < CHUNK_BYTES ? all : CHUNK_BYTES,
                            .base = l->base[r->segment],
                            .key = (uint32_t)key,
                            .segment = r->segment};
    return true;
}

/* Its one work request is all of it. */
static inline void issue_leave(struct link *l, struct op *op, struct path *p)
{
    op->issued = op->fenced = true;
    op->end[p->index] = p->sends;
    op->used = (uint16_t)(1u << p->index);
    l->alone = p->mark | p->sends;
    l->alone_by = p;
    l->epoch = op->request.epoch;
    l->issuing = ++l->posted;
}

static bool write_at_once(struct verbs *v, struct link *l, const struct transport_request *r)
{
    struct path *p = l->direct;

    /* who asks for `sent` is told when it is done, which is about then */
    if (!p || (r->kind | r->signal_op) || !(r->flags & TRANSPORT_LOOSE) ||
        r->bytes - 1 >= p->lone_most ||
        (GSHMEM_UNLIKELY(!is_near(l, r->segment, r->offset, r->bytes)) && !come_near(l, r)) ||
        !post_begin_alone(p, WORK_WRITE, l->posted, (uint32_t)r->bytes))
        return false;
    struct op *op = issue_open(l, r);
    gshmem_copy(op->small, r->local, r->bytes);
    p->lone.wr_id = p->mark | p->sends;
    p->lone.wr.rdma.remote_addr = l->near.base + r->offset;
    p->lone.wr.rdma.rkey = l->near.key;
    p->lone_sge.addr = (uintptr_t)op->small;
    p->lone_sge.length = (uint32_t)r->bytes;
    op->at = r->bytes;
    l->ordered = false;
    issue_leave(l, op, p);
    post_lone(v, p);
    return true;
}

static bool update_at_once(struct verbs *v, struct link *l, const struct transport_request *r)
{
    struct path *p = l->updater;
    uint64_t key;

    if (r->kind != TRANSPORT_ATOMIC || l->state != LINK_UP || !l->updates || p->state != PATH_UP ||
        r->segment >= TRANSPORT_SEGMENT_MAX || !atomics_have(v, r) ||
        !(key = known_key(l, p, r->segment, r->offset & ~7ull, 8)) ||
        !post_begin_alone(p, WORK_UPDATE, l->posted, 8))
        return false;
    struct op *op = issue_open(l, r);
    const struct update u = atomics_update(op);
    atomics_fill_in(v, op, &u, (uint32_t)key, post_take_alone(p));
    l->ordered = !(r->flags & TRANSPORT_LOOSE);
    issue_leave(l, op, p);
    if (op->held) /* it may have to be made again */
        l->alone = NONE_ALONE;
    post_collected(v, p);
    return true;
}

/* ---- The general way ---- */

/* Whether a NIC has work of this link's, whose completion wakes who drives the network. */
static bool answers_are_due(const struct link *l)
{
    for (int i = 0; i < l->ups; i++) {
        const struct path *p = l->up[i];
        if (p->sends - p->done > p->batched - p->batch_first)
            return true;
    }
    return false;
}

gshmem_status_t issue_in_turn(struct verbs *v, struct link *l,
                              const struct transport_request *request)
{
    if (l->state == LINK_FAILED)
        return l->failure;
    if (request->segment >= v->config.segments ||
        (request->signal_op && request->signal_segment >= v->config.segments))
        return v->config.fail(GSHMEM_ERR_ARGUMENT,
                              "verbs: a request to PE %d names a segment that there is not", l->pe);
    if (l->state == LINK_BELOW && l->posted == l->done && is_below_for_ever(l) &&
        !atomics_have(v, request))
        return v->below->ops->post(v->below, request);
    if (l->posted != l->done && coalesce_takes(l, request))
        return coalesce_post(v, l, request);
    if (!issue_has_room(v, l))
        return TRANSPORT_FULL;
    gshmem_status_t status = keep_data(v, issue_open(l, request));
    if (status)
        return status;
    l->posted++;
    issue_more(v, l);
    if (l->state != LINK_UP)
        v->settled = false;
    if (l->state != LINK_UP || (request->flags & TRANSPORT_MORE && answers_are_due(l)))
        v->held_back = true;
    else
        issue_batched(v, l);
    return GSHMEM_OK; /* if the link broke just now, done has been called with that */
}

/* Apart, so that others are not slowed down by the registers that it takes. */
__attribute__((noinline)) static GSHMEM_HOT gshmem_status_t
issue_post_first(struct verbs *v, struct link *l, const struct transport_request *request)
{
    const bool went = write_at_once(v, l, request) || update_at_once(v, l, request);

    return went ? GSHMEM_OK : issue_in_turn(v, l, request);
}

GSHMEM_HOT gshmem_status_t issue_post(struct verbs *v, struct link *l,
                                      const struct transport_request *request)
{
    if (l->posted == l->done)
        return issue_post_first(v, l, request);
    return l->collecting ? coalesce_more(v, l, request) : issue_in_turn(v, l, request);
}
