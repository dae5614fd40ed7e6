/* Updates that a NIC makes: atomics and signals in memory that no CPU updates
 * (transport_segment.by_nic).
 *
 * All PEs use the same NIC of the target (rails_updater), by the path of their links that leads
 * there. The target itself and the PEs of its node have links for nothing else.
 *
 * A NIC adds to 64-bit words, and compares and swaps them. Any other update is a
 * compare-and-swap:
 *
 * 1. The initiator computes the new value from the word as it was last seen.
 * 2. If the NIC finds another value, the initiator computes again from that one, and tries again:
 *    one round trip if no other PE came between, two if nothing was known of the word.
 *
 * The operation is held until it succeeds, so that nothing behind a fence overtakes it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/base/settings.h"
#include "transport/verbs/atomics.h"
#include "transport/verbs/memory.h"
#include "transport/verbs/ops.h"
#include "transport/verbs/order.h"
#include "transport/verbs/peer.h"
#include "transport/verbs/post.h"
#include "transport/verbs/reach.h"
#include "transport/verbs/verbs.h"

enum { SEEN = 64 }; /* words whose value is remembered, of a link; a power of two */

/* Of a link by which updates have been made. */
struct updates {
    uint64_t result[OPS]; /* what the NIC found, by request */
    struct {
        uint64_t at, value;
    } seen[SEEN];
    struct ibv_mr *mr;
};

int atomics_possible(const struct verbs *v, char *why, size_t why_size)
{
    uint32_t fabric;

    if (!v->nics) {
        snprintf(why, why_size, "this PE does not use its NICs");
        return 0;
    }
    const struct nic *nic = &v->nic[reach_updater(v, &fabric)];
    snprintf(why, why_size, "%s%s", nic->name, nic->updates ? "" : " makes none");
    return nic->updates ? (int)(fabric >> 2 | 1) : 0;
}

/* ---- Words ---- */

/* The object within a word. */
static uint64_t atomics_object_of(const struct update *u, uint64_t word)
{
    uint32_t half;

    if (!u->half)
        return word;
    memcpy(&half, (char *)&word + u->within, 4);
    return half;
}

static uint64_t atomics_with_object(const struct update *u, uint64_t word, uint64_t object)
{
    const uint32_t half = (uint32_t)object;

    if (!u->half)
        return object;
    memcpy((char *)&word + u->within, &half, 4);
    return word;
}

/* What a NIC adds to the word, if an addition is all: the carry of a whole word, or of its upper
 * half, changes nothing else. */
static bool atomics_as_sum(const struct update *u, uint64_t *sum)
{
    const bool real = atomic_type_is_real(u->type);
    const unsigned upper = __BYTE_ORDER == __LITTLE_ENDIAN ? 4 : 0;

    *sum = 0;
    if (u->amo == GSHMEM_AMO_FETCH)
        return true;
    *sum = u->half ? u->operand << 32 : u->operand;
    return u->amo == GSHMEM_AMO_ADD && !real && (!u->half || u->within == upper);
}

/* The value that was last seen of a word; if another word has its place, what this operation
 * itself has found. Otherwise two words that share a place could make each other's operations try
 * for ever. */
static uint64_t *atomics_seen_of(const struct link *l, uint64_t word, uint64_t found)
{
    const unsigned at = word / 8 % SEEN;

    if (l->updates->seen[at].at != word) {
        l->updates->seen[at].at = word;
        l->updates->seen[at].value = found;
    }
    return &l->updates->seen[at].value;
}

/* ---- The first time ---- */

static void atomics_refuse(struct verbs *v, struct op *op, const char *why)
{
    op->failure = v->config.fail(GSHMEM_ERR_TRANSPORT,
                                 "verbs: PE %d: an update of memory that only NICs update: %s",
                                 op->link->pe, why);
}

bool atomics_make_room(struct verbs *v, struct op *op)
{
    struct link *l = op->link;
    struct updates *a = memory_pages(sizeof *a);

    if (a)
        memset(a, 0, sizeof *a);
    if (a && (a->mr = ibv_reg_mr(l->updater->nic->pd, a->result, sizeof a->result,
                                 IBV_ACCESS_LOCAL_WRITE))) {
        l->updates = a;
        return true;
    }
    free(a);
    atomics_refuse(v, op, "no memory for its result (ulimit -l limits what may be pinned)");
    return false;
}

void atomics_free(struct link *l)
{
    if (!l->updates)
        return;
    ibv_dereg_mr(l->updates->mr);
    free(l->updates);
    l->updates = NULL;
}

/* ---- Posting ---- */

static uint64_t atomics_now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* No other path may be used, as another NIC would make the update. The operation waits for this
 * one, up to GSHMEM_PEER_TIMEOUT. */
bool atomics_wait(struct verbs *v, struct op *op)
{
    const struct path *p = op->link->updater;
    const uint64_t limit_ns = (uint64_t)v->config.number(SETTING_NAME(PEER_TIMEOUT)) * 1000000000u;

    if (!p || p->state == PATH_NONE || p->nic->gone) {
        atomics_refuse(v, op,
                       "there is no way to the one NIC that makes it (GSHMEM_LOG=info says why)");
        return true;
    }
    if (!op->waits_since)
        op->waits_since = atomics_now_ns();
    if (atomics_now_ns() - op->waits_since > limit_ns) {
        atomics_refuse(
            v, op, "the one NIC that makes it cannot be reached any more (GSHMEM_PEER_TIMEOUT)");
        return true;
    }
    v->held_back = true;
    return false;
}

/* What the NIC is to do, and what it is expected to find; *seen becomes what the word will be
 * then. */
static void atomics_choose(struct verbs *v, struct link *l, struct op *op, const struct update *u,
                           struct ibv_send_wr *wr)
{
    uint64_t *seen = atomics_seen_of(l, u->word, op->expected), sum, next;

    op->expected = *seen;
    if (atomics_as_sum(u, &sum)) {
        wr->opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
        wr->wr.atomic.compare_add = sum;
        *seen += sum;
        return;
    }
    if (u->amo == GSHMEM_AMO_COMPARE_SWAP)
        op->expected = atomics_with_object(u, *seen, u->compare);
    next = op->expected;
    v->config.apply(v->config.context, u->amo, u->type, (char *)&next + u->within, u->operand,
                    u->compare);
    wr->opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
    wr->wr.atomic.compare_add = op->expected;
    wr->wr.atomic.swap = next;
    *seen = next;
    if (u->amo == GSHMEM_AMO_COMPARE_SWAP && !u->half)
        return; /* it is done, whatever the NIC finds */
    op_hold(l, op);
}

void atomics_fill_in(struct verbs *v, struct op *op, const struct update *u, uint32_t key,
                     struct ibv_send_wr *wr)
{
    struct link *l = op->link;

    wr->wr.atomic.remote_addr = l->peer.base[u->segment] + u->word;
    wr->wr.atomic.rkey = key;
    *wr->sg_list = (struct ibv_sge){(uintptr_t)&l->updates->result[op_number(l, op) % OPS], 8,
                                    l->updates->mr->lkey};
    atomics_choose(v, l, op, u, wr);
    op->updates = true;
    l->updater->fence.last_read = l->updater->sends; /* its result may come as late as a read's */
}

bool atomics_issue(struct verbs *v, struct link *l, struct op *op)
{
    struct path *p = l->updater;
    uint64_t bytes = 8;
    uint32_t key;

    if (!p || p->state != PATH_ACTIVE)
        return atomics_wait(v, op);
    const struct update u = atomics_update(op);
    if (!order_allows(l, p) || !peer_find_key(v, l, p, u.segment, u.word, &bytes, &key))
        return op->failure != GSHMEM_OK;
    if (!l->updates && !atomics_make_room(v, op))
        return true;
    struct ibv_send_wr *wr = post_next(v, p, WORK_UPDATE, op_number(l, op), 0, 8);
    if (!wr)
        return false;
    atomics_fill_in(v, op, &u, key, wr);
    op_sent_by(op, p);
    return true;
}

/* ---- Results ---- */

/* Whether the update is done: the NIC has found what was expected, or, for a compare-and-swap of
 * half a word, another half than it was to replace. */
static bool atomics_is_enough(const struct update *u, const struct op *op, uint64_t result)
{
    return result == op->expected ||
           (u->amo == GSHMEM_AMO_COMPARE_SWAP &&
            atomics_object_of(u, result) != atomics_object_of(u, op->expected));
}

void atomics_poll(struct verbs *v, struct link *l)
{
    for (uint32_t i = l->done, left = l->held; i != l->issuing && left; i++) {
        struct op *op = op_of(l, i);
        left -= op->held;
        if (!op->held || !op->updates || is_after(op->end[l->updater->index], l->updater->done))
            continue;
        const struct update u = atomics_update(op);
        const uint64_t result = l->updates->result[i % OPS];
        if (atomics_is_enough(&u, op, result)) {
            op->held = false;
            l->held--;
            v->events++;
        } else {
            *atomics_seen_of(l, u.word, result) = op->expected = result;
            op->updates = false; /* it is posted again */
        }
    }
}

void atomics_deliver(struct link *l, const struct op *op)
{
    const struct update u = atomics_update(op);
    const uint64_t result = l->updates->result[op_number(l, op) % OPS];
    uint64_t sum;

    if (GSHMEM_UNLIKELY(op->expected != result)) {
        atomics_as_sum(&u, &sum);
        *atomics_seen_of(l, u.word, 0) = result + sum;
    }
    if (op->request.kind == TRANSPORT_ATOMIC && op->request.old)
        *op->request.old = atomics_object_of(&u, result);
}

/* ---- When a path has failed ---- */

void atomics_lost_result(struct verbs *v, struct link *l, const struct work *w)
{
    struct op *op = op_of(l, w->op);
    const struct update u = atomics_update(op);
    uint64_t sum;

    if (u.amo == GSHMEM_AMO_FETCH) {
        op_issue_again(l, w); /* it changes nothing, and is issued again */
        return;
    }
    if (atomics_as_sum(&u, &sum) && !(op->request.kind == TRANSPORT_ATOMIC && op->request.old))
        return; /* its result is not used */
    l->held -= op->held;
    op->held = op->updates = false;
    op->failure =
        v->config.fail(GSHMEM_ERR_TRANSPORT,
                       "verbs: PE %d: an update of memory that only NICs update was in flight when "
                       "its path failed: its NIC has made it, and its result is lost (a longer "
                       "GSHMEM_IB_TIMEOUT lets a path "
                       "outlast a network that finds a new way: 18 waits for up to 7.5 s)",
                       l->pe);
}
