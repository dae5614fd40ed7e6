/* Team slots; slots.h describes the agreement. */
#include "runtime/teams/slots.h"

#include <string.h>

#include "gshmem.h"
#include "runtime/base/log.h"
#include "runtime/job/job.h"
#include "runtime/teams/group.h"
#include "runtime/teams/observer.h"

static_assert(sizeof(struct slots_offer) <= NOTE_BYTES, "an offer fits into a note");

struct slots_offer slots_offer(void)
{
    struct slots_offer o = {{0}, 0};

    pthread_mutex_lock(&job->lock);
    o.busy = job->claims > 0;
    for (int i = 0; i < TEAM_MAX; i++)
        o.free[i / 64] |= (uint64_t)!job->team[i] << i % 64;
    pthread_mutex_unlock(&job->lock);
    return o;
}

int slots_count(const uint64_t free[SLOT_WORDS])
{
    int n = 0;

    for (int w = 0; w < SLOT_WORDS; w++)
        n += __builtin_popcountll(free[w]);
    return n;
}

gshmem_team_t slots_choose(const uint64_t free[SLOT_WORDS], uint64_t who, uint64_t attempt)
{
    uint64_t n = (uint64_t)slots_count(free), before = 0;

    if (n && attempt)
        before = signature_mix(signature_mix(0, who), attempt) % n;
    for (int w = 0; w < SLOT_WORDS; w++) {
        for (uint64_t left = free[w]; left; left &= left - 1) {
            if (before-- == 0)
                return w * 64 + __builtin_ctzll(left);
        }
    }
    return GSHMEM_TEAM_INVALID;
}

bool slots_claim(struct team *t, gshmem_team_t slot)
{
    pthread_mutex_lock(&job->lock);
    bool mine = !job->team[slot];
    if (mine) {
        team_install(job, t, slot);
        job->claims++;
    }
    pthread_mutex_unlock(&job->lock);
    return mine;
}

void slots_settle(struct team *t, bool keep)
{
    pthread_mutex_lock(&job->lock);
    job->claims--;
    if (!keep) {
        job->observer->hide_team(job, t->id);
        job->team[t->id] = NULL;
        t->id = GSHMEM_TEAM_INVALID;
    }
    pthread_mutex_unlock(&job->lock);
}

/* ---- Within a parent ---- */

/* The offers of all members of the parent, combined. */
static gshmem_status_t exchange_offers(struct group *g, const struct slots_offer *mine,
                                       uint32_t signature, const char *call,
                                       struct slots_offer *all)
{
    struct slots_offer one;
    gshmem_status_t status;

    g->brought = sizeof *mine;
    memcpy(group_note(g)->data, mine, sizeof *mine);
    if ((status = group_meet(g, signature, call)))
        return status;
    *all = *mine;
    for (int i = 0; i < g->n; i++) {
        memcpy(&one, group_read(g, i)->data, sizeof one);
        for (int w = 0; w < SLOT_WORDS; w++)
            all->free[w] &= one.free[w];
        all->busy |= one.busy;
    }
    return GSHMEM_OK;
}

/* Whether all members of the parent have claimed it, or need no slot. */
static gshmem_status_t slots_compare_claims(struct group *g, bool mine, uint32_t signature,
                                            const char *call, bool *all)
{
    gshmem_status_t status;

    g->brought = 0;
    group_note(g)->value = mine;
    if ((status = group_meet(g, signature, call)))
        return status;
    *all = true;
    for (int i = 0; i < g->n; i++)
        *all &= group_read(g, i)->value != 0;
    return GSHMEM_OK;
}

gshmem_status_t slots_install(struct team *parent, struct team *t, uint32_t signature,
                              const char *call)
{
    struct group *g = parent->group;
    gshmem_status_t status;

    for (uint64_t attempt = 0;; attempt++) {
        struct slots_offer mine, all;
        /* a PE that does not become a member agrees to any slot */
        memset(&mine.free, 0xff, sizeof mine.free);
        mine.busy = 0;
        if (t)
            mine = slots_offer();
        if ((status = exchange_offers(g, &mine, signature, call, &all)))
            return status;
        gshmem_team_t slot = slots_choose(all.free, (uint64_t)parent->id, attempt);
        if (slot == GSHMEM_TEAM_INVALID && all.busy)
            continue;
        if (slot == GSHMEM_TEAM_INVALID)
            return fail(
                GSHMEM_ERR_MEMORY,
                "%s: no team slot is free on all members: a PE can be in %d teams at a time, "
                "%d of them its own, and %u are kept for active sets; destroy those no longer "
                "needed",
                call, TEAM_MAX, TEAM_MAX - TEAM_FIRST_OWN,
                __atomic_load_n(&job->active_sets->n, __ATOMIC_RELAXED));

        bool claimed = t && slots_claim(t, slot), agreed = true;
        if (claimed) /* in no other round does this parent make a team */
            t->group->made = (uint32_t)signature_mix(signature_mix(0, g->made), g->round);
        status = slots_compare_claims(g, claimed || !t, signature, call, &agreed);
        if (claimed)
            slots_settle(t, agreed);
        if (status || agreed)
            return status;
    }
}
