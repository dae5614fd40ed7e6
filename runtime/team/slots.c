/* Team slots: how the members of a new team agree on one that is free on all of them.
 *
 * Each offers the set of its free slots, and all take the lowest that is in every set. Two threads
 * of a PE may split different teams at once; they must not offer the same slot. So only one offers
 * at a time: the others say that they are busy, and their team tries again. It is the turn of the
 * parent with the lowest slot; since that is the same slot on all its PEs, some team always gets
 * through. */
#include "runtime/team/slots.h"

#include <string.h>

#include "runtime/collectives/group.h"

enum { WORDS = TEAM_MAX / 64 };

struct offer {
    uint64_t free[WORDS];
    uint64_t busy;
};
static_assert(sizeof(struct offer) <= NOTE_BYTES, "an offer fits into a note");

static bool is_lowest(const uint64_t *set, gshmem_team_t id)
{
    int w = id / 64;

    for (int i = 0; i < w; i++) {
        if (set[i])
            return false;
    }
    return (set[w] & (((uint64_t)1 << id % 64) - 1)) == 0;
}

/* What this PE offers to the children of parent; lays hold of the right to offer, if it can. */
static struct offer make_offer(const struct team *parent)
{
    struct offer o = {.busy = 1};

    pthread_mutex_lock(&job->lock);
    job->splitting[parent->id / 64] |= (uint64_t)1 << parent->id % 64;
    if (!job->offering && is_lowest(job->splitting, parent->id)) {
        job->offering = true;
        o.busy = 0;
        for (int i = 0; i < TEAM_MAX; i++)
            o.free[i / 64] |= (uint64_t)!job->team[i] << i % 64;
    }
    pthread_mutex_unlock(&job->lock);
    return o;
}

/* Takes the slot, if there is one, and lets others offer. */
static void end_offer(const struct team *parent, const struct offer *mine, struct team *t,
                      gshmem_team_t slot, bool again)
{
    pthread_mutex_lock(&job->lock);
    if (slot >= 0)
        team_install(job, t, slot);
    if (!mine->busy)
        job->offering = false;
    if (!again)
        job->splitting[parent->id / 64] &= ~((uint64_t)1 << parent->id % 64);
    pthread_mutex_unlock(&job->lock);
}

static struct offer combine_offers(const struct group *g)
{
    struct offer all, one;

    memset(&all.free, 0xff, sizeof all.free);
    all.busy = 0;
    for (int i = 0; i < g->n; i++) {
        memcpy(&one, group_read(g, i)->data, sizeof one);
        for (int w = 0; w < WORDS; w++)
            all.free[w] &= one.free[w];
        all.busy |= one.busy;
    }
    return all;
}

static gshmem_team_t lowest(const struct offer *o)
{
    for (int w = 0; w < WORDS; w++) {
        if (o->free[w])
            return w * 64 + __builtin_ctzll(o->free[w]);
    }
    return GSHMEM_TEAM_INVALID;
}

gshmem_status_t slots_install(struct team *parent, struct team *t, uint32_t signature,
                              const char *call)
{
    gshmem_team_t slot = GSHMEM_TEAM_INVALID;
    gshmem_status_t status;
    struct offer mine, all;

    do {
        memset(&mine, 0xff, sizeof mine);
        mine.busy = 0; /* who does not become a member agrees to any slot */
        if (t)
            mine = make_offer(parent);
        memcpy(group_note(parent->group)->data, &mine, sizeof mine);
        status = group_meet(parent->group, signature, call);
        all = (struct offer){.busy = 0};
        if (!status)
            all = combine_offers(parent->group);
        if (!status && !all.busy)
            slot = lowest(&all);
        if (t)
            end_offer(parent, &mine, t, slot, all.busy);
    } while (all.busy);

    if (!status && slot < 0)
        return fail(GSHMEM_ERR_MEMORY,
                    "%s: no team slot is free on all members: a PE can be in %d teams at a time, "
                    "%d of them its own; destroy those no longer needed",
                    call, TEAM_MAX, TEAM_MAX - GSHMEM_TEAM_HOST - 1);
    return status;
}
