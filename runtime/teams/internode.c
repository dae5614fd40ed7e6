#include "runtime/teams/internode.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bootstrap/bootstrap.h"
#include "gshmem.h"
#include "runtime/base/log.h"
#include "runtime/job/job.h"
#include "runtime/memory/map.h"
#include "runtime/network/network.h"
#include "runtime/network/wait.h"
#include "runtime/node/node.h"
#include "runtime/teams/group.h"
#include "runtime/teams/internode_parts.h"

bool internode_is_away(const struct group *g, int i)
{
    return g->internode && g->internode->away[i];
}

/* ---- Payload ---- */

size_t internode_most(const struct group *g, enum payload kind)
{
    const struct internode *f = g->internode;
    size_t n = kind == PAYLOAD_NOTES   ? (size_t)g->n
               : kind == PAYLOAD_HOSTS ? (size_t)f->hosts
               : kind == PAYLOAD_PAIRS ? 2 * (size_t)f->pairs /* one half for what is sent */
                                     : 1;
    size_t each = f->inbox[0] ? INBOX_BYTES / n / SYNC_LINE * SYNC_LINE : 0;

    return kind == PAYLOAD_NOTES || kind == PAYLOAD_ONE
               ? each > SYNC_LINE ? each - internode_note_bytes(0) : 0
               : each;
}

void internode_load(struct group *g, enum payload kind, int from, size_t bytes)
{
    g->brought = bytes;
    g->internode->coming = (struct load){.kind = kind, .from = from};
}

/* Whether the payload is sent with the leaders' words. Without an inbox nothing is, not even a slot
 * of 0 bytes. */
static bool internode_fits(const struct group *g, const struct load *l)
{
    const size_t most = internode_most(g, l->kind);

    return most && l->bytes <= most;
}

/* Member i's slot, not in an inbox; full: the number of the full round. */
static struct note *internode_slot(const struct group *g, int i, uint32_t full)
{
    return g->internode->away[i] ? internode_fetched(g, i) : &g->sync[i]->note[full & 1];
}

static struct note *note_of(const struct group *g, int i, uint32_t full, const struct load *l)
{
    const struct internode *f = g->internode;
    size_t place = l->kind == PAYLOAD_ONE ? 0 : (size_t)f->place[i];

    const size_t each = internode_whole_lines(internode_note_bytes(l->bytes));

    if (!internode_fits(g, l))
        return internode_slot(g, i, full);
    return (struct note *)(void *)(f->inbox[full & 1] + place * each);
}

static struct load coming(const struct group *g)
{
    struct load l = g->internode->coming;

    l.bytes = g->brought;
    return l;
}

struct note *internode_note(const struct group *g)
{
    struct load l = coming(g);

    return note_of(g, g->my, g->full + 1, &l);
}

const struct note *internode_signed(const struct group *g, int i)
{
    return internode_slot(g, i, g->full);
}

const struct note *internode_read(const struct group *g, int i)
{
    return note_of(g, i, g->full, &g->internode->last);
}

char *internode_part(const struct group *g, int h)
{
    return g->internode->inbox[(g->full + 1) & 1] + (size_t)h * internode_whole_lines(g->brought);
}

const char *internode_part_read(const struct group *g, int h)
{
    const size_t each = internode_whole_lines(g->internode->last.bytes);

    return g->internode->inbox[g->full & 1] + (size_t)h * each;
}

/* Of PAYLOAD_PAIRS: where node `from`'s data for node `to` begins in the inbox of either, in
 * chunks. The first half has data to send, the second received data. */
static size_t pairs_before(const struct internode *f, int from, int to, bool out)
{
    int ours = out ? from : to, others = out ? to : from;
    size_t members = (size_t)(f->first[ours + 1] - f->first[ours]);
    size_t before = (size_t)f->first[others];

    if (others > ours)
        before -= members;
    return members * before;
}

static size_t pair_of(const struct group *g, int from, int to, bool out)
{
    const struct internode *f = g->internode;
    int there = f->node[to], here = f->node[from];
    size_t row = (size_t)(f->place[from] - f->first[here]),
           column = (size_t)(f->place[to] - f->first[there]);

    return pairs_before(f, here, there, out) +
           row * (size_t)(f->first[there + 1] - f->first[there]) + column;
}

char *internode_out(const struct group *g, int i)
{
    return g->internode->inbox[(g->full + 1) & 1] + pair_of(g, g->my, i, true) * g->brought;
}

const char *internode_in(const struct group *g, int i)
{
    return g->internode->inbox[g->full & 1] + INBOX_BYTES / 2 +
           pair_of(g, i, g->my, false) * g->internode->last.bytes;
}

/* ---- Between nodes ---- */

static uint64_t block_offset(const struct group *g, size_t within)
{
    return g->block + within;
}

/* A part of an inbox on its way to another inbox: where it is here, and where it belongs there. */
struct piece {
    size_t from, to, bytes;
};

/* Sends the word that announces that this node has arrived, behind a part of the payload. parity:
 * of the full round; flags: how it may be sent. */
static gshmem_status_t internode_tell(struct group *g, int leader, int step, size_t parity,
                                      uint64_t word, struct piece p, unsigned flags,
                                      const char *call)
{
    uint64_t offset =
        block_offset(g, offsetof(struct team_sync, step) +
                            (size_t)step * sizeof g->sync[0]->step[0] + parity * 8);
    struct transport_request signal = {
        .kind = TRANSPORT_PUT,
        .flags = TRANSPORT_UNASKED | flags,
        .pe = g->pe[leader],
        .segment = SEGMENT_SYSTEM,
        .offset = p.bytes ? internode_inbox_offset(g->team, parity) + p.to : offset,
        .local = p.bytes ? g->internode->inbox[parity] + p.from : NULL,
        .bytes = p.bytes,
        .signal_op = GSHMEM_SIGNAL_SET,
        .signal_segment = SEGMENT_SYSTEM,
        .signal_offset = offset,
        .signal_value = word,
    };

    return network_post(job->network, &g->internode->pending, &signal, call);
}

static gshmem_status_t give(struct group *g, int leader, struct piece p, const char *call)
{
    unsigned int parity = g->full & 1;
    struct transport_request put = {
        .kind = TRANSPORT_PUT,
        .flags = TRANSPORT_UNASKED,
        .pe = g->pe[leader],
        .segment = SEGMENT_SYSTEM,
        .offset = internode_inbox_offset(g->team, parity) + p.to,
        .local = g->internode->inbox[parity] + p.from,
        .bytes = p.bytes,
    };

    return p.bytes ? network_post(job->network, &g->internode->pending, &put, call) : GSHMEM_OK;
}

/* The payload of `count` nodes from `first` on, which follow each other. */
static struct piece payload_of(const struct group *g, int first, int count)
{
    const struct internode *f = g->internode;
    const struct load *l = &f->last;
    size_t note = internode_whole_lines(internode_note_bytes(l->bytes));
    size_t part = internode_whole_lines(l->bytes), at, bytes;

    if (l->kind == PAYLOAD_ONE) {
        bool ours = f->node[l->from] >= first && f->node[l->from] < first + count;
        return (struct piece){.bytes = ours ? internode_note_bytes(l->bytes) : 0};
    }
    if (l->kind == PAYLOAD_HOSTS) {
        at = (size_t)first * part;
        bytes = (size_t)count * part;
    } else {
        at = (size_t)f->first[first] * note;
        bytes = (size_t)(f->first[first + count] - f->first[first]) * note;
    }
    return (struct piece){at, at, bytes};
}

/* Sends the payload of `count` nodes up to this one, around the beginning if need be, and the
 * word. */
static gshmem_status_t tell_of_hosts(struct group *g, int to, int step, uint64_t word, int count,
                                     bool carries, const char *call)
{
    struct internode *f = g->internode;
    int first = f->my_host - count + 1, around = first < 0 ? -first : 0;
    struct piece none = {0, 0, 0};
    gshmem_status_t status = GSHMEM_OK;

    if (!carries || f->last.kind == PAYLOAD_PAIRS)
        return internode_tell(g, to, step, g->full & 1, word, none, TRANSPORT_UNORDERED, call);
    if (around)
        status = give(g, to, payload_of(g, f->hosts - around, around), call);
    return status ? status
                  : internode_tell(g, to, step, g->full & 1, word,
                                   payload_of(g, first + around, count - around),
                                   around ? 0 : TRANSPORT_UNORDERED, call);
}

bool internode_has_sent(const struct group *g)
{
    return !pending_any(&g->internode->pending);
}

/* For good: no member of this node arrives at another round. All leaders that would wait for this
 * one are notified, whatever they wait for, and notify the others: some may never communicate with
 * the failed PE. A round that has ended here has ended: members that are still in it have
 * everything from this leader. */
gshmem_status_t internode_break_off(struct group *g, gshmem_status_t status, const char *call)
{
    struct internode *f = g->internode;
    const uint32_t rounds = group_under_way(g) && group_awaited(g) < 0 ? 2 : 1; /* full ones */
    const uint32_t word =
        (uint32_t)status << BROKEN_BITS | BROKEN | (f->differed ? BROKEN_DIFFERED : 0);
    char why[256];

    snprintf(why, sizeof why, "%s", last_error_text());
    g->broken = status;
    for (int step = 0, distance = 1; f->local->my == 0 && distance < f->hosts;
         step++, distance *= 2) {
        int to = f->leader[(f->my_host + distance) % f->hosts];
        for (uint32_t i = 0; i < rounds && !network_lost(job->network, g->pe[to]); i++)
            internode_tell(g, to, step, (g->full + 1 - i) & 1,
                           (uint64_t)(g->round + 1 - i) << 32 | word, (struct piece){0, 0, 0},
                           TRANSPORT_UNORDERED, call); /* or the PE itself has gone */
    }
    return fail_silently(status, "%s", why);
}

/* Each node sends its data for another node directly to it. Between two nodes the data goes before
 * the word. With more nodes the word may take another way, and waits until the others have their
 * data. */
static gshmem_status_t send_pairs(struct group *g, struct piece *last, const char *call)
{
    struct internode *f = g->internode;
    size_t members = (size_t)(f->first[f->my_host + 1] - f->first[f->my_host]);
    gshmem_status_t status = GSHMEM_OK;

    for (int step = 1; step < f->hosts && !status; step++) {
        int h = (f->my_host + step) % f->hosts;
        size_t pairs = members * (size_t)(f->first[h + 1] - f->first[h]);
        *last =
            (struct piece){pairs_before(f, f->my_host, h, true) * f->last.bytes,
                           INBOX_BYTES / 2 + pairs_before(f, f->my_host, h, false) * f->last.bytes,
                           pairs * f->last.bytes};
        if (f->hosts > 2)
            status = give(g, f->leader[h], *last, call);
    }
    if (f->hosts > 2 && !status)
        status = network_quiet(&f->pending, call);
    if (f->hosts > 2)
        last->bytes = 0;
    return status;
}

/* Dissemination as in group.c, among leaders. The words arrive as signals, behind the part of the
 * payload that the sender has and the receiver has not. */
static gshmem_status_t meet_leaders(struct group *g, uint32_t *received, bool carries,
                                    const char *call)
{
    struct internode *f = g->internode;
    struct leaders_round r = {
        .received = received, .carries = carries, .asked_after = ROOTED_ASK_NS};
    struct piece pairs = {0, 0, 0};
    gshmem_status_t status = GSHMEM_OK;

    if (carries && f->last.kind == PAYLOAD_PAIRS)
        status = send_pairs(g, &pairs, call);
    wait_begin(&r.w, call, g->team);
    for (int step = 0, distance = 1; distance < f->hosts && !status; step++, distance *= 2) {
        int to = f->leader[(f->my_host + distance) % f->hosts];
        int count = distance < f->hosts - distance ? distance : f->hosts - distance;
        uint64_t word = (uint64_t)g->round << 32 | *received;

        status = network_lost(job->network, g->pe[to]) ? GSHMEM_OK /* it needs no word */
                 : pairs.bytes ? internode_tell(g, to, step, g->full & 1, word, pairs,
                                                TRANSPORT_UNORDERED, call)
                             : tell_of_hosts(g, to, step, word, count, carries, call);
        if (status && network_lost(job->network, g->pe[to]))
            status = GSHMEM_OK;
        if (!status)
            status = internode_receive(g, step, distance, &r, call);
    }
    wait_end(&r.w);
    atomic_store_explicit(&f->awaited, -1, memory_order_relaxed);
    return status;
}

/* Whether this round carries anything. The next round carries slots, about which nothing is known
 * yet. */
static bool unload(struct group *g, uint32_t signature)
{
    struct internode *f = g->internode;

    internode_forget_fetched(f);
    f->last = coming(g);
    f->coming = (struct load){.kind = PAYLOAD_NOTES};
    g->brought = NOTE_BYTES;
    switch ((enum collective)(signature >> 1 & 15)) {
    case COLLECTIVE_SYNC:
    case COLLECTIVE_DESTROY:
    case COLLECTIVE_REFUSED:
    case COLLECTIVE_FINALIZE:
        return false; /* not even which member wrote it */
    default:
        return true;
    }
}

/* ---- One round ---- */

/* The members of this node; nothing to do where there is one. */
static gshmem_status_t meet_local(struct group *g, uint32_t signature, const char *call)
{
    return g->internode->local->n > 1 ? group_meet(g->internode->local, signature, call)
                                      : GSHMEM_OK;
}

/* The members of this node enter that round. */
static gshmem_status_t internode_enter(struct group *g, uint32_t round, uint32_t signature,
                                       const char *call)
{
    struct outer *outer = &g->internode->local->outer;

    outer->round = round;
    /* a PE that leaves waits for the others, whatever they call: departures.c */
    outer->entering = rooted_is_allowed(round) && signature != GROUP_FINALIZE;
    outer->turned = false;
    const gshmem_status_t status = meet_local(g, signature, call);
    outer->entering = false;
    return status;
}

/* All local members have arrived: their leader exchanges words with the other nodes, and passes the
 * result on. */
static gshmem_status_t ask_others(struct group *g, uint32_t *received, bool carries,
                                  const char *call)
{
    struct group *local = g->internode->local;
    gshmem_status_t status = GSHMEM_OK, met;

    if (local->n == 1)
        return meet_leaders(g, received, carries, call);
    if (local->my == 0) {
        status = meet_leaders(g, received, carries, call);
        group_note(local)->value = (uint64_t)status << 32 | *received;
    }
    met = group_meet(local, signature_make(COLLECTIVE_SYNC, 0), call);
    if (met && !internode_leader_has_ended(g, met, call))
        return met;
    uint64_t answer = group_read(local, 0)->value;
    *received = (uint32_t)answer;
    if (answer >> 32 && !status)
        status = fail_silently((gshmem_status_t)(answer >> 32),
                               "%s on team %d: PE %d could not meet the other nodes", call, g->team,
                               local->pe[0]);
    return status;
}

/* Publishes this member's signature for members of other nodes that want to know which member
 * differs. release: a member that fetches this slot does so after it was notified, in the end by a
 * later store of this node, that this PE has arrived. */
static void show_signature(struct group *g, uint32_t full, uint32_t round, uint32_t signature)
{
    atomic_store_explicit(&g->sync[g->my]->note[full & 1].word, (uint64_t)round << 32 | signature,
                          memory_order_release);
}

/* The rest of a round, after the local members have synchronized with the result `local`. */
static gshmem_status_t meet_hosts(struct group *g, uint32_t signature, gshmem_status_t local,
                                  const char *call)
{
    bool wanted = unload(g, signature), carries = wanted && internode_fits(g, &g->internode->last);
    uint32_t received = signature;
    gshmem_status_t status;

    if (g->internode->local->outer.turned)
        return internode_turn(g, signature, call);
    if (local && local != GSHMEM_ERR_MISMATCH)
        return internode_break_off(g, local, call);
    if (local)
        received = MIXED;
    status = ask_others(g, &received, carries && !local, call);
    if (status == GSHMEM_ERR_MISMATCH)
        return internode_turn(g, signature, call);
    if (status)
        return internode_break_off(g, status, call);
    g->internode->differed = local || received != signature;
    if (!g->internode->differed && (!wanted || carries)) {
        g->internode->gave = false;
        return GSHMEM_OK;
    }
    /* Where members differ, what a root has sent may be on its way to members that do not wait for
     * it. It has arrived before this member begins another round. */
    const bool gave = g->internode->gave;
    g->internode->gave = false;
    if (gave && g->internode->differed && (status = network_quiet(&g->internode->pending, call)))
        return internode_break_off(g, status, call);
    if (local)
        return local; /* the mismatch has been explained */
    const struct load *last = &g->internode->last;
    const bool one = last->kind == PAYLOAD_ONE && received == signature;
    const size_t bytes = received == signature ? last->bytes : 0; /* 0: the words alone */
    if ((status = internode_fetch(g, one, last->from, bytes, call)))
        return internode_break_off(g, status, call);
    return received == signature ? GSHMEM_OK : group_explain_mismatch(g, signature, call);
}

gshmem_status_t internode_meet(struct group *g, uint32_t signature, const char *call)
{
    show_signature(g, g->full, g->round, signature);
    return meet_hosts(g, signature, internode_enter(g, g->round, signature, call), call);
}

gshmem_status_t internode_enter_neighbours(struct group *g, uint32_t signature, const char *call)
{
    gshmem_status_t local;

    show_signature(g, g->full + 1, g->round + 1, signature);
    local = internode_enter(g, g->round + 1, signature, call);
    if (!local)
        return GSHMEM_OK;
    group_begin_round(g, call);
    signature = group_sign(g, signature);
    return group_end_round(g, meet_hosts(g, signature, local, call));
}

gshmem_status_t internode_meet_neighbours(struct group *g, uint32_t signature, const char *call)
{
    gshmem_status_t status = meet_local(g, signature, call);

    return status && status != GSHMEM_ERR_MISMATCH ? internode_break_off(g, status, call) : status;
}

/* When all have completed one more round, each has fetched what it needed from the others' blocks.
 * The words that this member sent have arrived by then, but may not be acknowledged: their requests
 * still use the group. */
gshmem_status_t internode_farewell(struct group *g, const char *call)
{
    gshmem_status_t status, local;

    g->internode->ends = true;
    if ((status = group_meet(g, signature_make(COLLECTIVE_SYNC, 0), call)))
        return status;
    status = network_quiet(&g->internode->pending, call);
    /* also after a failure, since local members wait for this one */
    local = group_farewell(g->internode->local, call);
    return status ? status : local;
}
