/* A leader receives words, also after a member has failed.
 *
 * All nodes may have come to the round nevertheless. The words of leaders say that their nodes have
 * come, and the slots of members that they have. Both are in memory of others, and are fetched from
 * those that live. If all have come, each leader that lives ends the round, or breaks the group
 * off, so that a wait for its word ends. Members of a node of which one has failed wait for what
 * their leader hears. */
#include <stddef.h>
#include <string.h>

#include "gshmem.h"
#include "runtime/base/log.h"
#include "runtime/job/job.h"
#include "runtime/memory/map.h"
#include "runtime/network/network.h"
#include "runtime/teams/group.h"
#include "runtime/teams/internode_parts.h"

/* The part of a member's block from `at` on; false: the member has failed. */
static bool come_fetch(const struct group *g, int member, size_t at, void *to, size_t bytes,
                       const char *call)
{
    struct transport_request get = {
        .pe = g->pe[member],
        .segment = SEGMENT_SYSTEM,
        .offset = g->block + at,
        .bytes = bytes,
    };

    if (!g->internode->away[member])
        memcpy(to, (const char *)g->sync[member] + at, bytes);
    else if (network_lost(job->network, g->pe[member]) ||
             network_fetch(job->network, &get, to, call) != GSHMEM_OK)
        return false;
    return true;
}

/* What the word of a node that has come says; false: it is of another round, or the group is
 * broken. */
static bool come_take(const struct group *g, uint64_t word, uint32_t *received)
{
    if (word >> 32 != g->round || internode_is_broken(word))
        return false;
    if ((uint32_t)word != *received)
        *received = MIXED;
    return true;
}

/* Of a node with a member that has failed: a word of its leader, at another one. */
static bool come_look_at_words(const struct group *g, int h, uint32_t *received, const char *call)
{
    const struct internode *f = g->internode;
    bool come = false;
    uint64_t word;

    for (int step = 0, distance = 1; distance < f->hosts && !come; step++, distance *= 2) {
        const size_t at = offsetof(struct team_sync, step) +
                          (size_t)step * sizeof g->sync[0]->step[0] + (g->full & 1) * sizeof word;
        come = come_fetch(g, f->leader[(h + distance) % f->hosts], at, &word, sizeof word, call) &&
               come_take(g, word, received);
    }
    return come;
}

/* Of a node whose members live: their slots. */
static bool come_look_at_members(const struct group *g, int h, uint32_t *received, const char *call)
{
    const size_t at = offsetof(struct team_sync, note) + (g->full & 1) * sizeof(struct note);
    bool come = true;
    uint64_t word;

    for (int i = 0; i < g->n && come; i++) {
        if (g->internode->node[i] == h)
            come = come_fetch(g, i, at, &word, sizeof word, call) && come_take(g, word, received);
    }
    return come;
}

static bool come_all_live(const struct group *g, int h)
{
    bool live = true;

    for (int i = 0; i < g->n && live; i++)
        live = g->internode->node[i] != h || !network_lost(job->network, g->pe[i]);
    return live;
}

/* Whether all nodes have come to the round that is under way, as far as can be found out. This one
 * has, or its leader would not send words. Nodes with failed members first: they are few, and
 * mostly have not come. *received: this node's signature, or MIXED; becomes MIXED where a node's
 * differs. */
static bool internode_all_have_come(const struct group *g, uint32_t *received, const char *call)
{
    const struct internode *f = g->internode;
    uint32_t said = *received;
    bool all = true;

    for (int h = 0; h < f->hosts && all; h++)
        all = h == f->my_host || come_all_live(g, h) || come_look_at_words(g, h, &said, call);
    for (int h = 0; h < f->hosts && all; h++)
        all = h == f->my_host || !come_all_live(g, h) || come_look_at_members(g, h, &said, call);
    if (all)
        *received = said;
    return all;
}

/* After a failure of a member; whether the wait goes on. */
static bool leaders_go_on(struct group *g, struct leaders_round *r, int awaited, const char *call)
{
    const bool sender_lives = !network_lost(job->network, g->pe[awaited]);

    if (r->all_come && sender_lives)
        return false; /* something else has failed */
    if ((r->carries && !sender_lives) ||
        (!r->all_come && !internode_all_have_come(g, r->received, call)))
        return false;
    r->all_come = true;
    r->known = !sender_lives;
    r->w.only = g->pe[awaited];
    return true;
}

gshmem_status_t internode_receive(struct group *g, int step, int distance, struct leaders_round *r,
                                  const char *call)
{
    struct internode *f = g->internode;
    _Atomic uint64_t *from = &g->sync[g->my]->step[step].word[g->full & 1];
    gshmem_status_t status = GSHMEM_OK;
    const int awaited = f->leader[(f->my_host + f->hosts - distance) % f->hosts];
    uint64_t word;

    if (r->known)
        return GSHMEM_OK;
    if (r->all_come)
        r->w.only = g->pe[awaited];
    atomic_store_explicit(&f->awaited, awaited, memory_order_relaxed);
    /* acquire: pairs with the release by which the transport stores a signal */
    while ((word = atomic_load_explicit(from, memory_order_acquire)) >> 32 != g->round &&
           !internode_is_broken(word)) {
        if (status) { /* one more poll has found nothing either, as in group.c */
            if (!leaders_go_on(g, r, awaited, call))
                return status;
            if (r->known)
                return GSHMEM_OK;
        }
        status = wait_slowly(&r->w); /* no PE of this node can end the wait: make progress from the
                                    start */
        if (!status && wait_has_taken(&r->w, r->asked_after) &&
            internode_is_rooted_elsewhere(g, r, call))
            return GSHMEM_ERR_MISMATCH;
    }
    /* The sender has broken off a later round, over its word of this one, which it has ended. */
    if (internode_is_broken(word) && (int32_t)((uint32_t)(word >> 32) - g->round) > 0 &&
        !r->carries) {
        if ((uint32_t)word & BROKEN_DIFFERED)
            *r->received = MIXED;
        r->known = true;
        return GSHMEM_OK;
    }
    if (internode_is_broken(word))
        return fail((gshmem_status_t)((uint32_t)word >> BROKEN_BITS & BROKEN_STATUS),
                    "%s on team %d: PE %d, on another node, cannot reach all of its members", call,
                    g->team, g->pe[awaited]);
    if ((uint32_t)word != *r->received)
        *r->received = MIXED;
    return GSHMEM_OK;
}

/* In the second meeting of a node's members one of them has failed. All had come to the round, and
 * it ends as the leader says. Its slot says so once it has heard from the other nodes. */
bool internode_leader_has_ended(const struct group *g, gshmem_status_t met, const char *call)
{
    const struct group *local = g->internode->local;
    const struct note *leader = group_read(local, 0);
    gshmem_status_t status = GSHMEM_OK;
    struct wait w;
    bool ended;

    if (met != GSHMEM_ERR_PEER_DEAD)
        return false;
    wait_begin(&w, call, g->team);
    w.only = local->pe[0];
    /* acquire: pairs with the release with which the leader has stored the word, behind the
     * value. A failure is followed by one more poll. */
    while (!(ended = atomic_load_explicit(&leader->word, memory_order_acquire) >> 32 ==
                     local->round) &&
           !status)
        status = wait_step(&w);
    wait_end(&w);
    return ended;
}
