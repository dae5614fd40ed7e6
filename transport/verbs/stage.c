/* Memory of GPUs that NICs cannot get at, here or there: large requests go through pinned buffers
 * (transport/staging.h), a piece at a time, several of them on their way.
 *
 * Who asks tells the owner where the data of a piece is, or is to be, in its own memory: in a
 * buffer where that is a GPU's out of reach, else in its place. The owner's proxy fetches it from
 * there, or puts it there, through a buffer of its own where that is needed, and replies when it is
 * done. So a buffer that waits for another PE is one of those for what goes out, and one that
 * serves others is free again whatever they do: PEs that ask each other for all they have can
 * always be served.
 *
 * An owner moves a piece by the path that the message came by. If that breaks, it forgets the first piece
 * that it has not carried out and all behind it, as if they had never come, and who asked asks again.
 * Messages behind a piece wait for it.
 *
 * So do messages behind one that has the device update memory, which may take as long as kernels fill it. That
 * one needs no path: it stays when its path breaks, as it may be half done. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "device/device.h"
#include "runtime/base/clock.h"
#include "runtime/base/settings.h"
#include "transport/segment.h"
#include "transport/verbs/note.h"
#include "transport/verbs/post.h"
#include "transport/verbs/verbs.h"

enum { PIECES = 32, HEARD = 64, PIECE_MOST = STAGING_LARGE, ALIVE_NS = 1000 * 1000 * 1000 };
_Static_assert((int)PIECES > (int)WINDOW && (int)HEARD > (int)WINDOW + 1,
               "as many as can be without reply");

enum piece_state { PIECE_COPIED, PIECE_READY, PIECE_ASKED, PIECE_LANDS, PIECE_DONE };

/* Of a request of this PE's. */
struct piece {
    uint32_t op, number; /* of the message that asks for it */
    enum piece_state state;
    uint64_t at, bytes;
    struct staged *buffer; /* NULL: it is where NICs reach it */
};

enum heard_state { HEARD_WAITS, HEARD_MOVES, HEARD_COPIED, HEARD_DONE };

/* A message of the other's that is not carried out yet. */
struct heard {
    struct message m;
    struct serving serving; /* of one without data to move, */
    enum heard_state state; /* and of one with such: */
    uint64_t moved, bytes; /* of it: all there is, and now */
    uint32_t end;          /* the work request that moves them */
    struct staged *buffer;
    unsigned char data[MESSAGE_HEAD + MESSAGE_DATA];
};

struct stage {
    struct piece piece[PIECES];
    uint32_t first, next; /* counted for ever */
    uint32_t held;        /* buffers for what goes out */
    struct heard heard[HEARD];
    uint32_t heard_first, heard_next;
    uint64_t told_ns; /* when it was last said that this PE lives, or the wait for an update began; 0: there is none */
};

static struct stage *stage_of(struct verbs *v, struct link *l)
{
    if (!l->stage && !(l->stage = calloc(1, sizeof *l->stage)))
        v->config.fail(GSHMEM_ERR_MEMORY, "verbs: out of memory to stage data of PE %d", l->pe);
    return l->stage;
}

static struct piece *piece_at(struct stage *s, uint32_t i)
{
    return &s->piece[i % PIECES];
}

static struct heard *heard_at(struct stage *s, uint32_t i)
{
    return &s->heard[i % HEARD];
}

/* The pool, as a NIC knows it. */
static struct ibv_mr *pool_of(struct verbs *v, struct nic *nic)
{
    if (!nic->stage_mr && staging_ready(&v->staging))
        nic->stage_mr =
            ibv_reg_mr(nic->pd, v->staging.memory, v->staging.bytes,
                       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
    if (!nic->stage_mr && !v->staging.failed && !v->refusal_said) {
        v->refusal_said = true;
        v->config.fail(GSHMEM_ERR_TRANSPORT,
                       "verbs: %s: registering %llu KiB of pinned buffers (GSHMEM_STAGING): %s (ulimit -l limits what "
                       "may be pinned): GPU memory goes by TCP",
                       nic->name, (unsigned long long)v->staging.bytes >> 10, strerror(errno));
    }
    return nic->stage_mr;
}

static void stage_let_go(struct staged **buffer)
{
    struct staged_list one = {*buffer, *buffer};

    if (*buffer)
        staging_abandon(&one);
    *buffer = NULL;
}

/* ---- Whether ---- */

bool stage_is_far(const struct verbs *v, const struct link *l, int segment)
{
    return l->gpu_below && v->config.segment[segment].of_device;
}

static bool is_far_here(const struct verbs *v, const struct op *op)
{
    const struct transport_request *r = &op->request;

    return v->gpu_below && op->slot < 0 && (r->kind == TRANSPORT_GET || r->bytes > SMALL_BYTES) &&
           gpu_has(v, r->local, r->bytes);
}

bool stage_needs(const struct verbs *v, const struct link *l, const struct op *op)
{
    const struct transport_request *r = &op->request;

    if (!(v->gpu_below || l->gpu_below) || r->kind == TRANSPORT_ATOMIC || !r->bytes)
        return false;
    return (stage_is_far(v, l, r->segment) &&
            (r->kind == TRANSPORT_GET || r->bytes > MESSAGE_DATA)) ||
           is_far_here(v, op);
}

/* ---- Asking ---- */

static uint64_t stage_least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* The next piece of a request, which is that of nobody else's registration, here or there; false:
 * later, or op->failure says why. */
static bool make_piece(struct verbs *v, struct link *l, struct op *op)
{
    const struct transport_request *r = &op->request;
    struct stage *s = l->stage;
    char *local = (char *)r->local + op->at;
    struct piece p = {.op = issue_number(l, op), .state = PIECE_READY, .at = op->at};

    if (s->next - s->first == PIECES)
        return false;
    p.bytes = stage_least(r->bytes - op->at, PIECE_MOST);
    p.bytes = stage_least(p.bytes, CHUNK_BYTES - (r->offset + op->at) % CHUNK_BYTES);
    if (is_far_here(v, op)) {
        if (!(p.buffer = staging_take(&v->staging, STAGING_OUT, p.bytes, &s->held))) {
            op->failure = v->staging.failed ? GSHMEM_ERR_MEMORY : GSHMEM_OK;
            return false;
        }
        p.bytes = stage_least(p.bytes, p.buffer->room);
        if (r->kind == TRANSPORT_PUT) {
            if ((op->failure = staging_begin(p.buffer, p.buffer->at, local, p.bytes))) {
                staging_give(p.buffer);
                return false;
            }
            p.state = PIECE_COPIED;
        }
    } else if (op->slot < 0) {
        uint64_t covered = p.bytes;
        if (memory_of(v, l->up[0]->nic, local, &covered))
            p.bytes = covered;
    }
    *piece_at(s, s->next++) = p;
    op->at += p.bytes;
    op->pieces++;
    return true;
}

/* Where its data is in this PE's memory, as the messenger's NIC knows it. */
static struct ibv_mr *find_local(struct verbs *v, struct link *l, struct op *op,
                                 const struct piece *p, uint64_t *address)
{
    struct nic *nic = l->up[0]->nic;
    char *at = p->buffer ? p->buffer->at : (char *)finish_data(v, op) + p->at;
    uint64_t covered = p->bytes;
    struct ibv_mr *mr;

    *address = (uintptr_t)at;
    if (p->buffer)
        return pool_of(v, nic);
    if (op->slot >= 0)
        return nic->slots_mr;
    mr = memory_of(v, nic, at, &covered);
    if (mr || covered)
        return covered == p->bytes ? mr : NULL;
    return issue_register_alone(v, nic, op);
}

static bool stage_ask(struct verbs *v, struct link *l, struct op *op, struct piece *p)
{
    const struct transport_request *r = &op->request;
    uint64_t address;
    struct ibv_mr *mr = find_local(v, l, op, p, &address);

    if (!mr) {
        link_go_below(v, l, "what is to be staged cannot be registered");
        return false;
    }
    struct message m = {.kind = r->kind == TRANSPORT_PUT ? MESSAGE_TAKE : MESSAGE_GIVE,
                        .segment = (uint8_t)r->segment,
                        .amo = op->behind && p->at == 0,
                        .offset = r->offset + p->at,
                        .a = address,
                        .b = (uint64_t)mr->rkey << 32 | p->bytes};
    const bool wanted = op->wants_reply;
    if (!issue_update(v, l, op, &m))
        return false;
    op->wants_reply = wanted; /* pieces know for themselves */
    p->number = l->said;
    p->state = PIECE_ASKED;
    return true;
}

/* Those that have been asked for will be replied to; the others are given up. */
static void give_up_rest(struct link *l, struct op *op)
{
    const uint32_t number = issue_number(l, op);
    struct stage *s = l->stage;

    for (uint32_t i = s->first; i != s->next; i++) {
        struct piece *p = piece_at(s, i);
        if (p->op != number || p->state >= PIECE_ASKED)
            continue;
        stage_let_go(&p->buffer);
        op->at = stage_least(op->at, p->at);
        op->pieces--;
        p->state = PIECE_DONE;
    }
}

/* All pieces of one request, in their order; true: all have been asked for, or it has failed. */
static bool ask_all(struct verbs *v, struct link *l, struct op *op)
{
    const uint32_t number = issue_number(l, op);
    struct stage *s = l->stage;
    bool all = true;

    while (op->at < op->request.bytes && make_piece(v, l, op)) {
    }
    for (uint32_t i = s->first; is_after(s->next, i) && !op->failure; i++) {
        struct piece *p = piece_at(s, i);
        if (p->op != number || p->state >= PIECE_ASKED)
            continue;
        if (p->state == PIECE_COPIED && !p->buffer->copying) {
            op->failure = p->buffer->copied;
            p->state = PIECE_READY;
        }
        all = p->state == PIECE_READY && !op->failure && stage_ask(v, l, op, p);
        if (!all)
            break;
    }
    if (op->failure) {
        give_up_rest(l, op);
        return true;
    }
    v->held_back = true;
    return all && op->at == op->request.bytes;
}

bool stage_issue(struct verbs *v, struct link *l, struct op *op)
{
    if (!stage_of(v, l)) {
        op->failure = GSHMEM_ERR_MEMORY;
        return true;
    }
    op->staged = true;
    return ask_all(v, l, op);
}

bool stage_to_below(struct link *l, struct op *op)
{
    if (op->staged && op->pieces)
        give_up_rest(l, op);
    return !op->pieces;
}

/* ---- Answered ---- */

static void end_piece(struct link *l, struct op *op, struct piece *p, gshmem_status_t status)
{
    stage_let_go(&p->buffer);
    op->failure = op->failure ? op->failure : status;
    op->pieces--;
    p->state = PIECE_DONE;
    l->verbs->held_back = true;
}

static void stage_land(struct verbs *v, struct link *l)
{
    struct stage *s = l->stage;

    for (uint32_t i = s->first; i != s->next; i++) {
        struct piece *p = piece_at(s, i);
        struct op *op = op_of(l, p->op);
        if (p->state == PIECE_ASKED && !is_after(p->number, l->replied)) {
            gshmem_status_t status = GSHMEM_OK;
            const bool lands = p->buffer && op->request.kind == TRANSPORT_GET;
            if (lands)
                status = staging_begin(p->buffer, (char *)op->request.local + p->at, p->buffer->at,
                                       p->bytes);
            if (lands && !status)
                p->state = PIECE_LANDS;
            else
                end_piece(l, op, p, status);
        } else if (p->state == PIECE_LANDS && !p->buffer->copying) {
            end_piece(l, op, p, p->buffer->copied);
        }
        v->held_back |= p->state == PIECE_LANDS || p->state == PIECE_COPIED;
    }
    while (s->first != s->next && piece_at(s, s->first)->state == PIECE_DONE)
        s->first++;
}

void stage_forget(struct link *l, uint32_t heard)
{
    struct stage *s = l->stage;

    for (uint32_t i = s ? s->first : 0; s && i != s->next; i++) {
        struct piece *p = piece_at(s, i);
        const struct work w = {.op = p->op, .kind = WORK_MESSAGE};
        if (p->state != PIECE_ASKED || !is_after(p->number, heard))
            continue;
        p->state = PIECE_READY;
        issue_again(l, &w);
    }
}

/* ---- Serving ---- */

static bool is_of_data(const struct message *m)
{
    return m->kind == MESSAGE_TAKE || m->kind == MESSAGE_GIVE;
}

bool stage_hears(const struct link *l, const struct message *m)
{
    return is_of_data(m) || (l->stage && l->stage->heard_first != l->stage->heard_next);
}

bool stage_hear(struct verbs *v, struct link *l, const struct message *m, const struct serving *begun)
{
    struct stage *s = stage_of(v, l);

    if (!s || s->heard_next - s->heard_first == HEARD)
        return false;
    struct heard *h = heard_at(s, s->heard_next);
    *h = (struct heard){.m = *m, .serving = *begun};
    if (is_of_data(m)) {
        const uint64_t bytes = m->b & 0xffffffff;
        if (!bytes || bytes > PIECE_MOST || !segment_at(&v->config, m->segment, m->offset, bytes))
            return false;
    } else if (m->bytes) {
        memcpy(h->data, m->data, m->bytes);
        h->m.data = h->data;
    }
    s->heard_next++;
    v->held_back = true;
    return true;
}

/* The NIC moves the next bytes between the other's memory and this one's; false: not now. */
static bool stage_move(struct verbs *v, struct link *l, struct heard *h, struct ibv_sge here)
{
    struct path *p = l->heard_by;
    struct ibv_send_wr *wr;

    if (p->state != PATH_UP || !(wr = post_next(v, p, WORK_OTHER, 0, 0, h->bytes)))
        return false;
    wr->opcode = h->m.kind == MESSAGE_TAKE ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE;
    wr->wr.rdma.remote_addr = h->m.a + h->moved;
    wr->wr.rdma.rkey = (uint32_t)(h->m.b >> 32);
    *wr->sg_list = here;
    h->end = p->sends;
    h->state = HEARD_MOVES;
    return true;
}

/* What the NIC is to move cannot be registered: the link goes below, and the other asks there. */
static void stage_give_up(struct verbs *v, struct link *l)
{
    link_go_below(v, l, "what is to be staged cannot be registered");
}

static void move_directly(struct verbs *v, struct link *l, struct heard *h, char *at)
{
    h->bytes = (h->m.b & 0xffffffff) - h->moved;
    struct ibv_mr *mr = memory_of(v, l->heard_by->nic, at, &h->bytes);

    if (mr)
        stage_move(v, l, h, (struct ibv_sge){(uintptr_t)at, (uint32_t)h->bytes, mr->lkey});
    else
        stage_give_up(v, l);
}

static void move_buffer(struct verbs *v, struct link *l, struct heard *h)
{
    struct ibv_mr *mr = pool_of(v, l->heard_by->nic);

    if (mr)
        stage_move(v, l, h,
                   (struct ibv_sge){(uintptr_t)h->buffer->at, (uint32_t)h->bytes, mr->lkey});
    else
        stage_give_up(v, l);
}

static bool stage_copy(struct heard *h, void *to, const void *from)
{
    h->state = HEARD_COPIED;
    return !staging_begin(h->buffer, to, from, h->bytes);
}

static void end_part(struct heard *h)
{
    h->moved += h->bytes;
    h->state = h->moved == (h->m.b & 0xffffffff) ? HEARD_DONE : HEARD_WAITS;
    stage_let_go(&h->buffer);
}

/* One step, if it can be taken; false: it has failed. */
static bool verbs_stage_go_on(struct verbs *v, struct link *l, struct heard *h)
{
    const bool takes = h->m.kind == MESSAGE_TAKE;
    const bool far = v->gpu_below && v->config.segment[h->m.segment].of_device;
    char *at = segment_at(&v->config, h->m.segment, h->m.offset, h->m.b & 0xffffffff);

    if (!at)
        return false;
    at += h->moved;
    switch (h->state) {
    case HEARD_WAITS:
        if (!far) {
            move_directly(v, l, h, at);
            return true;
        }
        h->bytes = (h->m.b & 0xffffffff) - h->moved;
        if (!h->buffer && !(h->buffer = staging_take(&v->staging, STAGING_IN, h->bytes, NULL)))
            return !v->staging.failed;
        h->bytes = stage_least(h->bytes, h->buffer->room);
        if (!takes)
            return stage_copy(h, h->buffer->at, at);
        move_buffer(v, l, h);
        return true;
    case HEARD_MOVES:
        if (is_after(h->end, l->heard_by->done))
            return true;
        if (far && takes)
            return stage_copy(h, at, h->buffer->at);
        end_part(h);
        return true;
    case HEARD_COPIED:
        if (h->buffer->copying)
            return true;
        if (h->buffer->copied)
            return false;
        if (takes)
            end_part(h);
        else
            move_buffer(v, l, h);
        return true;
    default:
        return true;
    }
}

/* The device takes its time for an update. Who waits for the reply is told now and then that this PE lives, and
 * would give it up otherwise (see listen_to_all in failover.c). */
static void stage_say_alive(struct verbs *v, struct link *l)
{
    const uint64_t patience = (uint64_t)v->config.number(SETTING_PEER_TIMEOUT) * 1000000000u;
    const uint64_t now = clock_ns(), since = now - l->stage->told_ns;
    const struct note alive = {.kind = NOTE_ALIVE};

    if (!l->stage->told_ns ||
        ((since >= ALIVE_NS || since >= patience / 8) && link_say(v, l, &alive)))
        l->stage->told_ns = now;
}

/* The next step of a piece, or several; false: it has failed. */
static bool move_on(struct verbs *v, struct link *l, struct heard *h)
{
    for (enum heard_state before = HEARD_DONE; h->state != before;) {
        before = h->state;
        if (!verbs_stage_go_on(v, l, h))
            return false;
    }
    if (h->state == HEARD_DONE && h == heard_at(l->stage, l->stage->heard_first)) {
        l->served_number = h->m.number;
        l->owes_reply = true;
        l->stage->heard_first++;
    }
    return true;
}

/* The first, which is none of data. */
static enum served serve_first(struct verbs *v, struct link *l)
{
    struct stage *s = l->stage;
    struct heard *h = heard_at(s, s->heard_first);
    const enum served how = serve_do(v, l, &h->m, &h->serving);

    if (how == SERVED_LATER) {
        stage_say_alive(v, l);
    } else if (how == SERVED) {
        s->heard_first++;
        s->told_ns = 0;
    }
    return how;
}

/* What has been heard, in its order. A piece that is behind no fence overlaps what is before it, be that other
 * pieces or an update; a piece behind a fence does not, nor does any other message. */
static bool stage_serve(struct verbs *v, struct link *l)
{
    struct stage *s = l->stage;

    for (uint32_t i = s->heard_first; is_after(s->heard_next, i); i++) {
        struct heard *h = heard_at(s, i);
        const bool first = i == s->heard_first, data = is_of_data(&h->m);
        if (!first && (h->m.amo || !data))
            break;
        if (data ? !move_on(v, l, h) : serve_first(v, l) == SERVED_NEVER)
            return false;
    }
    v->held_back |= s->heard_first != s->heard_next;
    return true;
}

/* From that one on nothing has come. */
static void drop_heard(struct link *l, uint32_t from)
{
    struct stage *s = l->stage;

    for (; s->heard_next != from; s->heard_next--) {
        struct heard *h = heard_at(s, s->heard_next - 1);
        stage_let_go(&h->buffer);
        gpu_forget(l->verbs, &h->serving.update);
    }
}

void stage_unhear(struct link *l)
{
    struct stage *s = l->stage;

    if (!s)
        return;
    uint32_t from = s->heard_first;
    while (from != s->heard_next && !is_of_data(&heard_at(s, from)->m))
        from++;
    l->heard_number = l->served_number + (from - s->heard_first);
    drop_heard(l, from);
}

/* ---- All ---- */

void stage_go_on(struct verbs *v, struct link *l)
{
    if (l->state != LINK_FAILED)
        stage_land(v, l);
    if (l->state != LINK_FAILED && !stage_serve(v, l))
        link_fail(v, l, GSHMEM_ERR_TRANSPORT,
                  "verbs: what it asked for, of GPU memory, could not be done");
}

bool stage_is_busy(const struct link *l)
{
    return l->stage && l->stage->heard_first != l->stage->heard_next;
}

void stage_end(struct link *l)
{
    struct stage *s = l->stage;

    for (; s && s->first != s->next; s->first++) {
        struct piece *p = piece_at(s, s->first);
        if (p->state == PIECE_DONE)
            continue;
        stage_let_go(&p->buffer);
        op_of(l, p->op)->pieces--;
    }
    if (s)
        drop_heard(l, s->heard_first);
}
