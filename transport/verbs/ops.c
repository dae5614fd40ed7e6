/* The list of a link's operations: room, copies of small data, and which bytes of an operation are
 * issued. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "transport/verbs/coalesced.h"
#include "transport/verbs/gpu.h"
#include "transport/verbs/memory.h"
#include "transport/verbs/nics.h"
#include "transport/verbs/ops.h"
#include "transport/verbs/post.h"
#include "transport/verbs/verbs.h"

/* ---- Room ---- */

/* A peer that is seldom talked to has room for few operations. More is made only while nothing
 * points to them: no work request that waits in a batch, and no part that the transport below
 * carries. */
bool op_make_room(struct verbs *v, struct link *l)
{
    const uint32_t depth = l->depth * 4 < OPS ? l->depth * 4 : OPS;
    struct op *more;

    post_batches(v, l);
    for (int i = 0; i < l->paths; i++) {
        if (l->path[i]->batch.end != l->path[i]->batch.first)
            return false;
    }
    if (l->state == LINK_FAILED || l->below_left || l->depth == OPS ||
        !(more = calloc(depth, sizeof *more)))
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

/* ---- Data ---- */

void *op_data(const struct verbs *v, const struct op *op)
{
    const struct transport_request *r = &op->request;

    if (op->slot >= 0)
        return v->slots + (size_t)op->slot * SLOT_BYTES;
    if (r->kind == TRANSPORT_PUT && r->bytes <= SMALL_BYTES)
        return (void *)(uintptr_t)op->small;
    return r->local;
}

/* A link whose peer has stopped keeps its slots for long. So one link gets a quarter of the slots
 * at most, and few of the last quarter. */
static bool op_may_take_slot(const struct verbs *v, const struct link *l)
{
    return v->slots_left && l->slots < (v->slots_left > SLOTS / 4 ? SLOTS / 4 : SLOTS_LEAST);
}

gshmem_status_t op_keep_data(struct verbs *v, struct op *op)
{
    const struct transport_request *r = &op->request;
    uint64_t in_segment = r->bytes;

    if (r->kind == TRANSPORT_PUT && r->bytes <= SMALL_BYTES)
        return gpu_fetch(v, op->small, r->local, r->bytes);
    if (r->kind == TRANSPORT_GET && op->link->peer.pairs &&
        memory_of(v, &v->nic[op->link->peer.rail[0].mine], r->local, &in_segment) &&
        in_segment == r->bytes)
        return GSHMEM_OK; /* the NIC writes straight to its place */
    if (!op_may_take_slot(v, op->link))
        return TRANSPORT_FULL;
    const int slot = v->slot_free[v->slots_left - 1];
    gshmem_status_t status =
        r->kind != TRANSPORT_GET
            ? gpu_fetch(v, v->slots + (size_t)slot * SLOT_BYTES, r->local, r->bytes)
            : GSHMEM_OK;
    if (status)
        return status;
    v->slots_left--;
    op->link->slots++;
    op->slot = slot;
    return GSHMEM_OK;
}

struct ibv_mr *op_register(struct verbs *v, struct nic *nic, struct op *op)
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
            v->config.fail_handled(
                GSHMEM_ERR_TRANSPORT,
                "verbs: %s: registering %llu B of this PE's memory: %s (ulimit -l limits what may "
                "be "
                "pinned): all to PE %d goes by TCP from here on, and to others for which it is so",
                nic->name, (unsigned long long)r->bytes, strerror(errno), op->link->pe);
        v->refusal_said = true;
        v->report->memory_refused(v, op->link, "this PE's memory cannot be registered");
    }
    return *mr;
}

void op_free_holes(struct op *op)
{
    for (struct hole *next; op->hole; op->hole = next) {
        next = op->hole->next;
        free(op->hole);
    }
}

void op_release(struct verbs *v, struct op *op)
{
    if (op->slot >= 0) {
        v->slot_free[v->slots_left++] = op->slot;
        op->link->slots--;
    }
    op->slot = -1;
    if (GSHMEM_LIKELY(!op->registered))
        return;
    for (int i = 0; i < v->opened; i++) {
        if (op->mr[i])
            ibv_dereg_mr(op->mr[i]);
        op->mr[i] = NULL;
    }
    op->registered = false;
}

/* ---- Which bytes are issued ---- */

bool op_next_range(const struct op *op, uint64_t *at, uint64_t *bytes)
{
    *at = op->hole ? op->hole->at : op->at;
    *bytes = op->hole ? op->hole->bytes : op->request.bytes - op->at;
    return *bytes > 0;
}

void op_took_range(struct op *op, uint64_t bytes)
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

/* These bytes have not arrived: they become a hole. False: out of memory. */
static bool op_lose_range(struct op *op, uint64_t at, uint64_t bytes)
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

/* A hole behind which nothing was given to a path is taken back from op->at. */
static void op_trim(struct op *op)
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

bool op_issue_again(struct link *l, const struct work *w)
{
    struct op *op = op_of(l, w->op);

    if (work_is_of_messages(w->kind))
        return true;
    l->alone.id = NONE_ALONE;
    if (w->kind == WORK_MESSAGE)
        op->wants_reply = false;
    if (op->coalesced && w->kind == WORK_WRITE) /* its changes go in order, by one path */
        op->at = w->at < op->at ? w->at : op->at;
    else if ((w->kind == WORK_WRITE || w->kind == WORK_READ) && !op_lose_range(op, w->at, w->bytes))
        return false;
    op_trim(op);
    l->held -= op->held;
    l->signals.waiting = l->signals.weight = 0; /* the others wait no longer */
    op->issued = op->held = op->updates = op->fenced = false;
    if (is_after(l->issuing, w->op))
        l->issuing = w->op;
    return true;
}
