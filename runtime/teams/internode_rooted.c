/* Rooted rounds of groups whose members are on several nodes. rooted.h has the rules.
 *
 * The root writes into its own slot, for the members of its node, and puts the same into the slot
 * of each other node's leader, one message for each. Teams that have an inbox have room for larger
 * data beside the slots; the word is in the slot whatever the size.
 *
 * A round of these groups has parts in which the members of a node synchronize (internode.h). A
 * rooted round counts as one such part, in which nobody waits, so that the numbers of both groups
 * stay the same on all members of a node.
 *
 * Where members arrive at a full round, and others at a rooted one of the same number:
 *
 * - The rooted rounds at which members of a node have arrived are in their leader's block. A member
 *   of the same node that waits for long in the first part of a full round sees them there.
 * - If all members of a node have arrived at the full round, their leader waits for other leaders,
 *   and asks these blocks now and then. They keep what was there: a member that is in a rooted
 *   round arrives at the next full one within ROOTED_EVERY rounds, and waits there.
 * - gshmem_finalize does not turn: it waits until all others leave, too.
 * - A member that waits for a root on another node asks that root's own slot now and then. It says
 *   if the root has made another call. */
#include <assert.h>
#include <stddef.h>

#include "gshmem.h"
#include "runtime/base/log.h"
#include "runtime/job/job.h"
#include "runtime/job/thread.h"
#include "runtime/memory/map.h"
#include "runtime/network/network.h"
#include "runtime/network/wait.h"
#include "runtime/teams/internode.h"
#include "runtime/teams/internode_parts.h"
#include "runtime/teams/rooted.h"

enum {
    LONG_NS = 1000 * 1000,           /* a wait in which more is looked at than the root's slot */
    ASK_MOST_NS = 400 * 1000 * 1000, /* between two questions */
};

static _Atomic uint64_t *arrived_here(const struct group *g)
{
    return &g->sync[g->leader]->rooted[g->round & (ROOTED_EVERY - 1)];
}

/* How long a wait is that has taken so long and asks now, when it asks again. */
static uint64_t ask_again(uint64_t taken)
{
    return taken < ASK_MOST_NS ? 2 * taken : taken + ASK_MOST_NS;
}

/* The word at that offset in another member's memory; 0: it cannot be had, which is no failure
 * here. */
static uint64_t ask_for_word(const struct group *g, int member, size_t at, const char *call)
{
    struct transport_request get = {
        .pe = g->pe[member],
        .segment = SEGMENT_SYSTEM,
        .offset = at,
        .bytes = sizeof(uint64_t),
    };
    uint64_t word = 0;

    this_thread.unheeded = true;
    if (network_fetch(job->network, &get, &word, call))
        word = 0;
    this_thread.unheeded = false;
    return word;
}

/* ---- The round ---- */

/* After a full round in which members differed the next round is a full one, too. Before it begins,
 * what roots have sent to members that have not waited for it has arrived (internode.c). */
bool internode_can_be_rooted(const struct group *g, size_t bytes)
{
    const struct internode *f = g->internode;

    return f->hosts <= ROOTED_NODES && !f->differed &&
           bytes <= (f->inbox[0] ? (size_t)NOTE_BYTES : ROOTED_BYTES);
}

char *internode_rooted_data(const struct group *g, int i)
{
    char *block = (char *)g->sync[g->sync[i] ? i : g->leader];

    return block - g->block + internode_rooted_offset(g->team, g->round);
}

void internode_arrive_rooted(struct group *g, uint32_t signature)
{
    _Atomic uint64_t *word = arrived_here(g);
    const uint64_t mine = (uint64_t)g->round << 32 | signature;

    g->internode->local->round++;
    /* relaxed, both: a member that reads it concludes only that one of this node has arrived */
    if (atomic_load_explicit(word, memory_order_relaxed) != mine)
        atomic_store_explicit(word, mine, memory_order_relaxed);
}

/* The transport copies what is so small. A leader that has failed needs nothing. */
static_assert((int)NOTE_BYTES <= (int)TRANSPORT_COPIED, "the source may be used again");
static_assert((int)NOTE_BYTES <= (int)ROOTED_ROOM, "what is not in a slot has a place");

gshmem_status_t internode_give_rooted(struct group *g, uint64_t word, const void *data,
                                      size_t bytes, const char *call)
{
    struct internode *f = g->internode;
    const uint64_t at = rooted_word_offset(g);

    f->gave = true;
    for (int h = 0; h < f->hosts; h++) {
        const int pe = g->pe[f->leader[h]];
        struct transport_request put = {
            .kind = TRANSPORT_PUT,
            .flags = TRANSPORT_UNASKED | TRANSPORT_UNORDERED,
            .pe = pe,
            .segment = SEGMENT_SYSTEM,
            .offset = bytes > ROOTED_BYTES ? internode_rooted_offset(g->team, g->round)
                                           : at + (bytes ? offsetof(struct root_slot, data) : 0),
            .local = bytes ? (void *)(uintptr_t)data : NULL,
            .bytes = bytes,
            .signal_op = GSHMEM_SIGNAL_SET,
            .signal_segment = SEGMENT_SYSTEM,
            .signal_offset = at,
            .signal_value = word,
        };
        if (h == f->my_host || network_lost(job->network, pe))
            continue;
        const gshmem_status_t status = network_post(job->network, &f->pending, &put, call);
        if (status && !network_lost(job->network, pe))
            return internode_break_off(g, status, call);
    }
    return GSHMEM_OK;
}

/* A leader that breaks the group off tells other leaders so where they would wait for its next full
 * round. */
static gshmem_status_t look_for_breaks(const struct group *g, const char *call)
{
    const struct internode *f = g->internode;

    for (int step = 0, distance = 1; distance < f->hosts; step++, distance *= 2) {
        /* relaxed: the word itself says all */
        const uint64_t word = atomic_load_explicit(
            &g->sync[g->leader]->step[step].word[(g->full + 1) & 1], memory_order_relaxed);
        if (internode_is_broken(word))
            return fail((gshmem_status_t)((uint32_t)word >> BROKEN_BITS & BROKEN_STATUS),
                        "%s on team %d: PE %d, on another node, cannot reach all of its members",
                        call, g->team,
                        g->pe[f->leader[(f->my_host + f->hosts - distance) % f->hosts]]);
    }
    return GSHMEM_OK;
}

/* Members of a node begin to ask one after the other, the leader first. */
gshmem_status_t internode_look_rooted(struct group *g, int root, struct rooted_look *l,
                                      const char *call)
{
    const struct wait *w = l->wait;
    uint64_t word;

    if (!wait_has_taken(w, LONG_NS))
        return GSHMEM_OK;
    if (!l->next_ns)
        l->next_ns = ROOTED_ASK_NS * (1 + (uint64_t)g->internode->local->my);
    if (g->internode->away[root] && wait_has_taken(w, l->next_ns)) {
        l->next_ns = ask_again(w->stepped - w->since);
        word = ask_for_word(g, root, rooted_word_offset(g), call);
        if (word >> 32 == g->round && word != l->mine)
            l->found = word;
    }
    return look_for_breaks(g, call);
}

/* ---- A full round of some members, and a rooted one of others ---- */

bool internode_is_rooted_elsewhere(const struct group *g, struct leaders_round *r, const char *call)
{
    const struct internode *f = g->internode;
    const size_t at = g->block + offsetof(struct team_sync, rooted) +
                      (g->round & (ROOTED_EVERY - 1)) * sizeof(uint64_t);
    bool found = false;

    r->asked_after = ask_again(r->w.stepped - r->w.since);
    if (*r->received == GROUP_FINALIZE || !rooted_is_allowed(g->round) ||
        !internode_can_be_rooted(g, 0) || r->all_come || f->ends)
        return false;
    for (int h = 0; h < f->hosts && !found; h++)
        found = h != f->my_host && !network_lost(job->network, g->pe[f->leader[h]]) &&
                ask_for_word(g, f->leader[h], at, call) >> 32 == g->round;
    return found;
}

static gshmem_status_t internode_explain_turn(const struct group *g, uint32_t signature,
                                              const char *call)
{
    if (signature == COLLECTIVE_REFUSED) /* this member has logged the reason */
        return GSHMEM_ERR_MISMATCH;
    return fail(GSHMEM_ERR_MISMATCH,
                "%s on team %d: other PEs called broadcast: all members must make the same calls "
                "in the same order",
                call, g->team);
}

/* The words that this leader has sent for the round have arrived before it sends any for the next
 * full one, to the same places. */
__attribute__((cold)) gshmem_status_t internode_turn(struct group *g, uint32_t signature,
                                                     const char *call)
{
    gshmem_status_t status;

    g->internode->local->outer.turned = false;
    rooted_count(g, signature);
    if ((status = network_quiet(&g->internode->pending, call)))
        return internode_break_off(g, status, call);
    return internode_explain_turn(g, signature, call);
}
