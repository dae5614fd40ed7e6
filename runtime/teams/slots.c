/* Team slots; slots.h describes the agreement. */
#include "runtime/teams/slots.h"

#include <string.h>

#include "gshmem.h"
#include "runtime/base/log.h"
#include "runtime/job/job.h"
#include "runtime/teams/group.h"
#include "runtime/teams/observer.h"

static_assert(sizeof(struct slots_offer) <= NOTE_BYTES, "an offer fits into a note");

int slots_count(const uint64_t free[SLOT_WORDS])
{
    int n = 0;

    for (int w = 0; w < SLOT_WORDS; w++)
        n += __builtin_popcountll(free[w]);
    return n;
}

static const uint64_t kept_bits = ((UINT64_C(1) << SLOTS_KEPT) - 1) << (64 - SLOTS_KEPT);

void slots_leave_kept(uint64_t free[SLOT_WORDS], int range)
{
    if (range == 0)
        free[SLOT_WORDS - 1] &= ~kept_bits;
}

/* Of this PE, in a range. */
static void slots_read(uint64_t free[SLOT_WORDS], int range)
{
    for (int w = 0; w < SLOT_WORDS; w++)
        free[w] = ~atomic_load_explicit(&job->teams[range * SLOT_WORDS + w], memory_order_relaxed);
}

struct slots_offer slots_offer(int range)
{
    struct slots_offer o = {{0}, 0, 0};

    pthread_mutex_lock(&job->lock);
    o.busy = job->claims > 0;
    for (int r = 0; r < TEAM_RANGES; r++) {
        uint64_t free[SLOT_WORDS];
        slots_read(free, r);
        slots_leave_kept(free, r);
        o.full |= (uint32_t)(slots_count(free) == 0) << r;
    }
    slots_read(o.free, range);
    pthread_mutex_unlock(&job->lock);
    return o;
}

int slots_next_range(uint32_t full, uint32_t tried)
{
    const int next = __builtin_ctz(~(full | tried));

    return next < TEAM_RANGES ? next : -1;
}

gshmem_team_t slots_choose(const uint64_t free[SLOT_WORDS], int range, uint64_t who,
                           uint64_t attempt)
{
    uint64_t n = (uint64_t)slots_count(free), before = 0;

    if (n && attempt)
        before = signature_mix(signature_mix(0, who), attempt) % n;
    for (int w = 0; w < SLOT_WORDS; w++) {
        for (uint64_t left = free[w]; left; left &= left - 1) {
            if (before-- == 0)
                return range * TEAM_RANGE + w * 64 + __builtin_ctzll(left);
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
        team_remove(job, t->id);
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
        all->full |= one.full;
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

/* The one error of all members, which have seen the same offers. */
gshmem_status_t slots_none(const char *call)
{
    return fail(GSHMEM_ERR_MEMORY,
                "%s: no team slot is free on all members: a PE can be in %d teams at a time, %d of "
                "them its own and %d kept for active sets; destroy those no longer needed",
                call, TEAM_MAX, TEAM_MAX - TEAM_FIRST_OWN - SLOTS_KEPT, SLOTS_KEPT);
}

gshmem_status_t slots_install(struct team *parent, struct team *t, uint32_t signature,
                              const char *call)
{
    struct group *g = parent->group;
    gshmem_status_t status;
    uint32_t tried = 0, busy = 0; /* ranges; whether a member was busy when they were tried */

    for (uint64_t attempt = 0;; attempt++) {
        struct slots_offer mine = {.busy = 0}, all;
        /* a PE that does not become a member agrees to any slot */
        memset(&mine.free, 0xff, sizeof mine.free);
        if (t)
            mine = slots_offer(g->range);
        if ((status = exchange_offers(g, &mine, signature, call, &all)))
            return status;
        slots_leave_kept(all.free, g->range);
        const gshmem_team_t slot = slots_choose(all.free, g->range, (uint64_t)parent->id, attempt);
        busy |= all.busy;
        if (slot == GSHMEM_TEAM_INVALID) {
            tried |= UINT32_C(1) << g->range;
            const int next = slots_next_range(all.full, tried);
            const bool none = next < 0 && !busy;
            if (next < 0) /* all again, now or in the next call */
                tried = busy = 0;
            g->range = next < 0 ? 0 : next;
            if (none)
                return slots_none(call);
            continue;
        }

        bool claimed = t && slots_claim(t, slot), agreed = true;
        if (claimed) /* in no other round does this parent make a team */
            t->group->made = (uint32_t)signature_mix(signature_mix(0, g->made), g->round);
        status = slots_compare_claims(g, claimed || !t, signature, call, &agreed);
        if (claimed)
            slots_settle(t, agreed);
        if (!status && agreed) /* lower slots may have become free */
            g->range = slots_next_range(all.full, 0);
        if (status || agreed)
            return status;
    }
}
