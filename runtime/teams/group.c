/* How the members of a group synchronize. group.h has the rules, sync.h the memory. */
#include "runtime/teams/group.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gshmem.h"
#include "runtime/base/clock.h"
#include "runtime/base/count.h"
#include "runtime/base/log.h"
#include "runtime/job/job.h"
#include "runtime/network/network.h"
#include "runtime/network/wait.h"
#include "runtime/node/node.h"
#include "runtime/trace/trace.h"

static const char *const collective_name[COLLECTIVE_COUNT] = {
    [COLLECTIVE_REFUSED] = "a call with bad arguments",
    [COLLECTIVE_SYNC] = "sync or barrier",
    [COLLECTIVE_BROADCAST] = "broadcast",
    [COLLECTIVE_COLLECT] = "collect",
    [COLLECTIVE_FCOLLECT] = "fcollect",
    [COLLECTIVE_ALLTOALL] = "alltoall",
    [COLLECTIVE_ALLTOALLS] = "alltoalls",
    [COLLECTIVE_REDUCE] = "reduce",
    [COLLECTIVE_REDUCESCATTER] = "reducescatter",
    [COLLECTIVE_INSCAN] = "inscan",
    [COLLECTIVE_EXSCAN] = "exscan",
    [COLLECTIVE_SPLIT] = "team split",
    [COLLECTIVE_DESTROY] = "team destroy",
    [COLLECTIVE_AGREE] = "malloc, free or another call on the heap",
    [COLLECTIVE_FINALIZE] = "finalize",
};

static_assert((int)TEAM_MAX <= (int)TRACE_TEAMS, "a round has an id of its own");

struct group *group_create(int n, int my, const int *pe, int cpus)
{
    struct group *g = calloc(1, sizeof *g + (size_t)n * sizeof g->sync[0]);

    if (!g)
        return NULL;
    g->node = job->node;
    g->n = n;
    g->my = my;
    g->oversubscribed = cpus > 0;
    g->cpus = cpus;
    g->pe = pe;
    g->brought = NOTE_BYTES;
    g->round = g->full = count_first();
    atomic_init(&g->awaited, -1);
    /* Where members share CPUs, the number of switches between them decides. Beyond 8 lines to
     * read, dissemination reads fewer (docs/decisions/0006). */
    g->meet = g->oversubscribed ? meet_central : n <= 8 ? meet_flat : meet_dissemination;
    return g;
}

/* A round has a number and a team. Teams may have the same handle: those of other members at the
 * same time, which the first member tells apart, or one after the other, which `made` does. */
static gshmem_status_t group_meet_traced(struct group *g, uint32_t signature, const char *call)
{
    const uint64_t round = trace_round(g->team, g->pe[0], g->round);

    trace_event(TRACE_ROUND, TRACE_NO_OP, -1, round, trace_name(call), g->made);
    const gshmem_status_t status = g->traced(g, signature, call);
    trace_event(TRACE_MET, TRACE_NO_OP, -1, round, (uint64_t)status, 0);
    return status;
}

void group_trace(struct group *g)
{
    g->traced = g->meet;
    g->meet = group_meet_traced;
}

void group_destroy(struct group *g)
{
    if (g && g->internode)
        g->remote->free(g->internode);
    free(g);
}

/* ---- Calls that differ between members ---- */

static const char *group_name_of(uint32_t signature)
{
    unsigned int what = signature >> 1 & 15;

    return what < COLLECTIVE_COUNT ? collective_name[what] : "something else";
}

/* Whether signatures of that call differ only by the rooted rounds before it. */
static bool has_no_arguments(uint32_t signature)
{
    const enum collective what = (enum collective)(signature >> 1 & 15);

    return what == COLLECTIVE_SYNC || what == COLLECTIVE_DESTROY || what == COLLECTIVE_AGREE;
}

__attribute__((cold)) gshmem_status_t group_explain_difference(struct group *g, uint32_t signature,
                                                               int i, uint32_t theirs,
                                                               uint32_t noted, const char *call)
{
    if (signature == COLLECTIVE_REFUSED) /* that member has logged the reason */
        return GSHMEM_ERR_MISMATCH;
    if (theirs == GROUP_FINALIZE)
        return job->waits->left(call, g->pe[i], g->sync[i] ? (uint64_t)group_left(g, i) : noted);
    if (signature == GROUP_FINALIZE) /* the other member logs it */
        return fail_silently(GSHMEM_ERR_MISMATCH, "%s: PE %d is still in %s", call, g->pe[i],
                             group_name_of(theirs));
    if (theirs == COLLECTIVE_REFUSED)
        return fail(GSHMEM_ERR_MISMATCH,
                    "%s on team %d: PE %d made %s, so this collective did not take place", call,
                    g->team, g->pe[i], group_name_of(theirs));
    if (((theirs ^ signature) & 31) == 0 && g->mixed && has_no_arguments(signature))
        return fail(GSHMEM_ERR_MISMATCH,
                    "%s on team %d: an earlier broadcast of PE %d was not that of this PE", call,
                    g->team, g->pe[i]);
    if (((theirs ^ signature) & 31) == 0)
        return fail(GSHMEM_ERR_MISMATCH,
                    "%s on team %d: PE %d made the same call with other arguments, or on other "
                    "objects%s",
                    call, g->team, g->pe[i], g->mixed ? ", or after another broadcast" : "");
    return fail(GSHMEM_ERR_MISMATCH,
                "%s on team %d: PE %d called %s: all members must make the same calls in the "
                "same order",
                call, g->team, g->pe[i], group_name_of(theirs));
}

/* All members have arrived with their words, and their slots stay until this one begins another
 * round. Logs which member differs from this one. */
__attribute__((cold)) gshmem_status_t group_explain_mismatch(struct group *g, uint32_t signature,
                                                             const char *call)
{
    for (int i = 0; i < g->n; i++) {
        const struct note *note =
            g->internode ? g->remote->signed_by(g, i) : &g->sync[i]->note[g->full & 1];
        /* acquire: as in meet_flat; the word was stored before the member arrived */
        uint32_t theirs = (uint32_t)atomic_load_explicit(&note->word, memory_order_acquire);
        if (theirs != signature)
            return group_explain_difference(g, signature, i, theirs, (uint32_t)note->value, call);
    }
    return GSHMEM_ERR_MISMATCH;
}

gshmem_status_t group_refuse(struct group *g, const char *call, gshmem_status_t status)
{
    if (!g->broken)
        group_meet(g, COLLECTIVE_REFUSED, call);
    return status;
}

static gshmem_status_t refuse_broken(const struct group *g, const char *call)
{
    return fail(g->broken,
                "%s on team %d: an earlier collective of it failed (%s), and its members can meet "
                "no more",
                call, g->team, gshmem_status_text(g->broken));
}

gshmem_status_t group_check(struct group *g, const char *call)
{
    const uint32_t losses = node_losses(g->node);

    if (g->broken)
        return refuse_broken(g, call);
    if (losses == g->losses)
        return GSHMEM_OK;
    for (int i = 0; i < g->n; i++) {
        if (!network_lost(job->network, g->pe[i]))
            continue;
        g->broken = fail(GSHMEM_ERR_PEER_DEAD, "%s on team %d: PE %d has died or cannot be reached",
                         call, g->team, g->pe[i]);
        return g->internode ? g->remote->break_off(g, g->broken, call) : g->broken;
    }
    g->losses = losses;
    return GSHMEM_OK;
}

static inline uint64_t word_make(const struct group *g, uint32_t signature)
{
    return (uint64_t)g->round << 32 | signature;
}

/* Where members make different calls, some may have arrived at a rooted round instead, and end this
 * one. A member that waits for other reasons need not ask soon: asking takes a line of each. */
static inline bool is_rooted_elsewhere(const struct group *g, const struct wait *w)
{
    enum { LONG_NS = 1000 * 1000 };

    return GSHMEM_UNLIKELY(wait_has_taken(w, LONG_NS)) && rooted_instead(g);
}

/* ---- Flat: each member writes one line and reads the lines of all others ----
 *
 * One cache line travels between each pair, all at the same time. That is the least possible where
 * each member has a CPU and there are few members.
 *
 * A failure is followed by one more poll: if a member dies after a round that all have reached, the
 * round has succeeded. */

gshmem_status_t meet_flat(struct group *g, uint32_t signature, const char *call)
{
    uint64_t mine = word_make(g, signature), differences = 0;
    unsigned int parity = g->full & 1;
    gshmem_status_t status = GSHMEM_OK;
    struct wait w;

    /* release: pairs with the acquire below in the others; they may then read this member's slot,
     * and whatever it stored before */
    atomic_store_explicit(&g->sync[g->my]->note[parity].word, mine, memory_order_release);
    wait_begin(&w, call, g->team);
    for (int i = 0; i < g->n; i++) {
        _Atomic uint64_t *theirs = &g->sync[i]->note[parity].word;
        uint64_t word;

        /* a load from the line just written delays the loads behind it (docs/decisions/0006) */
        if (i == g->my)
            continue;
        /* acquire: pairs with the release above */
        while ((word = atomic_load_explicit(theirs, memory_order_acquire)) >> 32 != g->round) {
            if (status) {
                wait_end(&w);
                return g->broken = status;
            }
            status = wait_step(&w);
            if (is_rooted_elsewhere(g, &w)) {
                wait_end(&w);
                return rooted_turn(g, signature, call);
            }
        }
        differences |= word ^ mine;
    }
    wait_end(&w);
    return differences ? group_explain_mismatch(g, signature, call) : GSHMEM_OK;
}

/* ---- Dissemination: in step s each member notifies the one 2^s after it ----
 *
 * The latency is that of log2(n) lines one after another, instead of n at once. A notification
 * contains the signature, or GROUP_MIXED if the sender has received two different ones.
 *
 * If a member dies after all have reached the round, the notifications that others wait for may not
 * have come yet. Therefore a failure is followed by a look at all slots: if all members have
 * arrived, they say what the notifications would say. Leaders of nodes ask (internode_come.c). */

/* Whether all members have arrived, by their slots; *received: their signature, or GROUP_MIXED. */
static bool group_all_have_come(const struct group *g, uint32_t signature, uint32_t *received)
{
    *received = signature;
    for (int i = 0; i < g->n; i++) {
        /* acquire: pairs with the release in meet_dissemination, for the rest of the slot */
        const uint64_t word =
            atomic_load_explicit(&g->sync[i]->note[g->full & 1].word, memory_order_acquire);
        if (word >> 32 != g->round)
            return false;
        if ((uint32_t)word != signature)
            *received = GROUP_MIXED;
    }
    return true;
}

gshmem_status_t meet_dissemination(struct group *g, uint32_t signature, const char *call)
{
    unsigned int parity = g->full & 1;
    uint32_t received = signature;
    gshmem_status_t status = GSHMEM_OK;
    bool known = false; /* the slots have said it */
    struct wait w;

    /* release: pairs with the acquire in group_all_have_come */
    atomic_store_explicit(&g->sync[g->my]->note[parity].word, word_make(g, signature),
                          memory_order_release);
    wait_begin(&w, call, g->team);
    for (int step = 0, distance = 1; distance < g->n; step++, distance *= 2) {
        int to = g->my + distance < g->n ? g->my + distance : g->my + distance - g->n;
        _Atomic uint64_t *from = &g->sync[g->my]->step[step].word[parity];
        uint64_t word = 0;

        /* release: pairs with the acquire below in `to`. Together with the steps before it, it
         * publishes all slots of which this member was notified, so that at the end every slot is
         * visible to all. */
        atomic_store_explicit(&g->sync[to]->step[step].word[parity], word_make(g, received),
                              memory_order_release);
        /* acquire: pairs with the release above */
        while (!known &&
               (word = atomic_load_explicit(from, memory_order_acquire)) >> 32 != g->round) {
            if (is_rooted_elsewhere(g, &w)) {
                wait_end(&w);
                return rooted_turn(g, signature, call);
            }
            if (!status) {
                status = wait_step(&w);
            } else if (!(known = group_all_have_come(g, signature, &received))) {
                wait_end(&w);
                return g->broken = status;
            }
        }
        if (!known && (uint32_t)word != received)
            received = GROUP_MIXED;
    }
    wait_end(&w);
    return received != signature ? group_explain_mismatch(g, signature, call) : GSHMEM_OK;
}

/* ---- Central: one counter of arrivals; the last member to arrive wakes the others ----
 *
 * Where members share CPUs, the cost is not in cache lines but in switching between members: here
 * all poll one word, and can sleep on it. */

enum { COUNT_BITS = 20 };
#define COUNT_MASK (((uint64_t)1 << COUNT_BITS) - 1)

static void spin_for(const struct team_sync *central, uint32_t over, uint32_t steps)
{
    /* relaxed: a member that waits polls again */
    while (steps-- > 0 &&
           (atomic_load_explicit(&central->generation, memory_order_relaxed) & ~1u) != over)
        clock_pause();
}

/* What is left in the counters of rounds that ended as rooted ones (rooted.h), the last member to
 * arrive at a round that cannot clears. */
static void clear_arrivals(struct team_sync *central)
{
    /* relaxed: as the caller's store */
    for (int i = 1; i < ROOTED_EVERY; i++) {
        if (atomic_load_explicit(&central->arrivals[i], memory_order_relaxed))
            atomic_store_explicit(&central->arrivals[i], 0, memory_order_relaxed);
    }
}

gshmem_status_t meet_central(struct group *g, uint32_t signature, const char *call)
{
    struct team_sync *central = g->sync[0];
    _Atomic uint64_t *arrivals = &central->arrivals[g->round & (ROOTED_EVERY - 1)];
    uint64_t arrival = (uint64_t)signature << COUNT_BITS | 1;
    uint32_t over = g->round << 1, now;
    gshmem_status_t status = GSHMEM_OK;
    struct wait w;

    /* release: pairs with the acquire in internode_leader_has_ended; others need the addition */
    atomic_store_explicit(&g->sync[g->my]->note[g->full & 1].word, word_make(g, signature),
                          memory_order_release);
    /* acq_rel: release pairs with the acquire of the last member to arrive, which passes all slots
     * on by its release of the generation */
    uint64_t sum =
        atomic_fetch_add_explicit(arrivals, arrival, memory_order_acq_rel) + arrival;
    if ((sum & COUNT_MASK) == (uint64_t)g->n) {
        /* If all signatures are the same, their sum is n times this one (modulo 2^44, which is the
         * whole sum unless there are thousands of members). Different ones have the same sum with a
         * probability of 2^-27. */
        now = over | (sum != arrival * (uint64_t)g->n);
        /* relaxed: no member arrives again before it sees the generation */
        atomic_store_explicit(arrivals, 0, memory_order_relaxed);
        if (!rooted_is_allowed(g->round))
            clear_arrivals(central);
        /* release: pairs with the acquire below */
        atomic_store_explicit(&central->generation, now, memory_order_release);
        wait_wake(&central->generation, &central->sleepers);
    } else {
        wait_begin(&w, call, g->team);
        /* The members that are missing are too many to be running all at the same time: some need
         * this CPU. Fewer may be, and are worth a wait of a microsecond, since a yield in vain
         * costs two switches (docs/decisions/0006). */
        if (g->n - (int)(sum & COUNT_MASK) >= g->cpus)
            wait_without_spin(&w);
        else
            spin_for(central, over, 3 * wait_spins);
        /* acquire: pairs with the release above */
        while (((now = atomic_load_explicit(&central->generation, memory_order_acquire)) & ~1u) !=
               over) {
            if (status) {
                wait_end(&w);
                return g->broken = status;
            }
            status = wait_step_on(&w, &central->generation, now, &central->sleepers);
            if (is_rooted_elsewhere(g, &w)) {
                wait_end(&w);
                /* relaxed: the counter is used again only after a later round of all */
                if (g->outer.group)
                    atomic_fetch_sub_explicit(arrivals, arrival, memory_order_relaxed);
                return rooted_turn(g, signature, call);
            }
        }
        wait_end(&w);
    }
    return now & 1 ? group_explain_mismatch(g, signature, call) : GSHMEM_OK;
}

/* ---- Farewell ---- */

/* After a round a slow member may still be reading another's block. Here each member notifies all
 * others, each in that member's own block, that it has ended its reads of that block. So a member
 * waits for all by polling its own block alone. */
gshmem_status_t group_farewell(struct group *g, const char *call)
{
    _Atomic uint32_t *received = &g->sync[g->my]->farewells;
    gshmem_status_t status = GSHMEM_OK;
    struct wait w;

    if (g->internode)
        return g->remote->farewell(g, call);
    for (int i = 0; i < g->n; i++) {
        if (i != g->my) /* release: pairs with the acquire below; this member's reads of i's block
                           have ended */
            atomic_fetch_add_explicit(&g->sync[i]->farewells, 1, memory_order_release);
    }
    wait_begin(&w, call, g->team);
    /* acquire: pairs with the release above */
    while (atomic_load_explicit(received, memory_order_acquire) != (uint32_t)g->n - 1) {
        if (status) { /* one more poll has found nothing either */
            wait_end(&w);
            return g->broken = status;
        }
        status = wait_step(&w);
    }
    wait_end(&w);
    return GSHMEM_OK;
}

/* ---- Members that have left the job ---- */

int group_left(const struct group *g, int i)
{
    for (int parity = 0; parity < 2; parity++) {
        const struct note *note = &g->sync[i]->note[parity];
        /* acquire: pairs with the release of the word, or of what is stored after it */
        if ((uint32_t)atomic_load_explicit(&note->word, memory_order_acquire) == GROUP_FINALIZE)
            return (int)note->value;
    }
    return 0;
}

size_t group_word_offset(const struct group *g)
{
    if (group_awaited(g) >= 0)
        return rooted_word_offset(g);
    return g->block + offsetof(struct team_sync, note) +
           (g->full & 1) * sizeof(struct note) + offsetof(struct note, word);
}

uint64_t group_word(const struct group *g, int i)
{
    return atomic_load_explicit(&g->sync[i]->note[g->full & 1].word, memory_order_relaxed);
}

bool group_has_come(const struct group *g, int i)
{
    return group_word(g, i) >> 32 == g->round;
}

/* A member that has left has arrived at one more round of the job's own group, where it is alone,
 * and arrives at no later round of other groups. A root leaves the word of what it has brought. */
bool group_cannot_come(const struct group *g, uint64_t word)
{
    /* of an earlier number, where rooted rounds came since */
    if (group_awaited(g) < 0 && g->team == GSHMEM_TEAM_WORLD)
        return (uint32_t)word == GROUP_FINALIZE &&
               (int32_t)((uint32_t)(word >> 32) - g->round) <= 0;
    return word >> 32 != g->round;
}

void group_missing(const struct group *g, char *text, size_t size)
{
    /* relaxed: read by another thread, for people; g->round may change meanwhile */
    const uint32_t round = g->round, full = g->full;
    const int awaited = group_awaited(g);
    uint64_t mine =
        atomic_load_explicit(&g->sync[g->my]->note[full & 1].word, memory_order_relaxed);
    int missing = 0, shown = 0;
    size_t used = 0;

    text[0] = 0;
    if (awaited >= 0) {
        snprintf(text, size, "waiting for PE %d at %s", g->pe[awaited],
                 collective_name[COLLECTIVE_BROADCAST]);
        return;
    }
    for (int i = 0; i < g->n; i++) {
        /* nothing is known about members on other nodes */
        if (g->internode && g->remote->is_away(g, i))
            continue;
        uint64_t word =
            atomic_load_explicit(&g->sync[i]->note[full & 1].word, memory_order_relaxed);
        if (word >> 32 == round)
            continue;
        missing++;
        if (used + 48 >= size)
            continue;
        used += (size_t)snprintf(text + used, size - used, shown ? ", %d" : "waiting for PE %d",
                                 g->pe[i]);
        shown++;
    }
    if (missing > shown && used < size)
        used += (size_t)snprintf(text + used, size - used, " and %d more", missing - shown);
    if (missing && used < size)
        snprintf(text + used, size - used, " at %s", group_name_of((uint32_t)mine));
}
