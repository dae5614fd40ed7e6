/* Updates that a NIC makes: atomics and signals in memory that no CPU updates
 * (transport_segment.by_nic).
 *
 * All PEs ask the same NIC of the owner's (rails_updater), by that path of their links which leads
 * there; the owner itself and the PEs of its host have links for nothing else. NICs add 64-bit
 * words and compare and swap them. What is neither is a swap for what it makes of the word as it
 * was seen last, which is tried again with what the NIC has found there instead: one round trip if
 * nobody came between, two if nothing was known of the word. Until it is done the request is held,
 * so that nothing behind a fence overtakes it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/base/atomic_type.h"
#include "runtime/base/settings.h"
#include "transport/verbs/post.h"

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

/* An object within a word, as it lies there. */
static uint64_t atomics_object_of(const struct update *u, uint64_t word)
{
    uint32_t half;

    if (!u->half)
        return word;
    memcpy(&half, (char *)&word + u->within, 4);
    return half;
}

static uint64_t with_object(const struct update *u, uint64_t word, uint64_t object)
{
    const uint32_t half = (uint32_t)object;

    if (!u->half)
        return object;
    memcpy((char *)&word + u->within, &half, 4);
    return word;
}

/* What a NIC adds to the word, where that is all there is to do: a carry goes nowhere from a whole
 * word, nor from its upper half. */
static bool as_sum(const struct update *u, uint64_t *sum)
{
    const bool real = atomic_type_is_real(u->type);
    const unsigned upper = __BYTE_ORDER == __LITTLE_ENDIAN ? 4 : 0;

    *sum = 0;
    if (u->amo == GSHMEM_AMO_FETCH)
        return true;
    *sum = u->half ? u->operand << 32 : u->operand;
    return u->amo == GSHMEM_AMO_ADD && !real && (!u->half || u->within == upper);
}

/* What is known of a word, or else what a request has found there itself: two words that share a
 * place must not make each other's requests begin anew for ever. */
static uint64_t *seen_of(const struct link *l, uint64_t word, uint64_t found)
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
                                 "verbs: PE %d: an update of memory that NICs alone update: %s",
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

/* No other path will do, as another NIC would make the update. It may come back; for as long as a PE
 * may be silent it is waited for. */
bool atomics_wait(struct verbs *v, struct op *op)
{
    const struct path *p = op->link->updater;
    const uint64_t patience = (uint64_t)v->config.number(SETTING_PEER_TIMEOUT) * 1000000000u;

    if (!p || p->state == PATH_NONE || p->nic->gone) {
        atomics_refuse(v, op,
                       "there is no way to the one NIC that makes it (GSHMEM_LOG=info says why)");
        return true;
    }
    if (!op->waits_since)
        op->waits_since = atomics_now_ns();
    if (atomics_now_ns() - op->waits_since > patience) {
        atomics_refuse(
            v, op, "the one NIC that makes it cannot be reached any more (GSHMEM_PEER_TIMEOUT)");
        return true;
    }
    v->held_back = true;
    return false;
}

/* What the NIC is to do, and what it is expected to find. Behind what is posted here the
 * word has, as far as is known, what this makes of it. */
static void choose_update(struct verbs *v, struct link *l, struct op *op, const struct update *u,
                          struct ibv_send_wr *wr)
{
    uint64_t *seen = seen_of(l, u->word, op->expected), sum, next;

    op->expected = *seen;
    if (as_sum(u, &sum)) {
        wr->opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
        wr->wr.atomic.compare_add = sum;
        *seen += sum;
        return;
    }
    if (u->amo == GSHMEM_AMO_COMPARE_SWAP)
        op->expected = with_object(u, *seen, u->compare);
    next = op->expected;
    v->config.apply(v->config.context, u->amo, u->type, (char *)&next + u->within, u->operand,
                    u->compare);
    wr->opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
    wr->wr.atomic.compare_add = op->expected;
    wr->wr.atomic.swap = next;
    *seen = next;
    if (u->amo == GSHMEM_AMO_COMPARE_SWAP && !u->half)
        return; /* whatever was found, that is all */
    op->held = true;
    l->held++;
}

GSHMEM_HOT void atomics_fill_in(struct verbs *v, struct op *op, const struct update *u,
                                uint32_t key, struct ibv_send_wr *wr)
{
    struct link *l = op->link;

    wr->wr.atomic.remote_addr = l->base[u->segment] + u->word;
    wr->wr.atomic.rkey = key;
    *wr->sg_list =
        (struct ibv_sge){(uintptr_t)&l->updates->result[issue_number(l, op) % OPS], 8, l->updates->mr->lkey};
    choose_update(v, l, op, u, wr);
    op->updates = true;
    l->updater->last_read = l->updater->sends; /* it answers as late as a read */
}

/* ---- Results ---- */

/* Whether it is over with what the NIC has found: what was expected, or, for a compare-and-swap of
 * half a word, another half than it was to replace. */
static bool is_enough(const struct update *u, const struct op *op, uint64_t result)
{
    return result == op->expected ||
           (u->amo == GSHMEM_AMO_COMPARE_SWAP &&
            atomics_object_of(u, result) != atomics_object_of(u, op->expected));
}

void atomics_look(struct verbs *v, struct link *l)
{
    for (uint32_t i = l->done, left = l->held; i != l->issuing && left; i++) {
        struct op *op = op_of(l, i);
        left -= op->held;
        if (!op->held || !op->updates || is_after(op->end[l->updater->index], l->updater->done))
            continue;
        const struct update u = atomics_update(op);
        const uint64_t result = l->updates->result[i % OPS];
        if (is_enough(&u, op, result)) {
            op->held = false;
            l->held--;
            v->events++;
        } else {
            *seen_of(l, u.word, result) = op->expected = result;
            op->updates = false; /* and so it is posted again */
        }
    }
}

GSHMEM_HOT void atomics_deliver(struct link *l, const struct op *op)
{
    const struct update u = atomics_update(op);
    const uint64_t result = l->updates->result[issue_number(l, op) % OPS];
    uint64_t sum;

    if (GSHMEM_UNLIKELY(op->expected != result)) {
        as_sum(&u, &sum);
        *seen_of(l, u.word, 0) = result + sum;
    }
    if (op->request.kind == TRANSPORT_ATOMIC && op->request.old)
        *op->request.old = atomics_object_of(&u, result);
}

/* ---- When a path has broken ---- */

void atomics_unanswered(struct verbs *v, struct link *l, const struct work *w)
{
    struct op *op = op_of(l, w->op);
    const struct update u = atomics_update(op);
    uint64_t sum;

    if (u.amo == GSHMEM_AMO_FETCH) {
        issue_again(l, w); /* it has changed nothing */
        return;
    }
    if (as_sum(&u, &sum) && !(op->request.kind == TRANSPORT_ATOMIC && op->request.old))
        return; /* nobody waits for what the NIC has found */
    l->held -= op->held;
    op->held = op->updates = false;
    op->failure = v->config.fail(
        GSHMEM_ERR_TRANSPORT,
        "verbs: PE %d: an update of memory that NICs alone update was on its way when "
        "its path broke: its NIC has taken it, and what it found there is lost (a longer GSHMEM_IB_TIMEOUT lets a path "
        "outlast a network that finds a new way: 18 waits for up to 7.5 s)",
        l->pe);
}
