/* Team slots: how the members of a new team agree on one that is free on all of them, and take it.
 *
 * Threads of a PE may make different teams at once and offer the same slot, because no PE holds a
 * lock or a slot while it waits for other PEs: otherwise two teams whose members arrive in
 * different orders would wait for each other.
 *
 * 1. Each member offers the set of its free slots in one range, and says which ranges have none.
 *    All choose the same slot, one that is in every set. If there is none, all go on to the same
 *    next range.
 * 2. Each member claims the slot. That fails where another thread was faster.
 * 3. In a second round all members learn whether all have claimed it. If not, they release it and
 *    begin again, with another choice. */
#ifndef GSHMEM_RUNTIME_TEAMS_SLOTS_H
#define GSHMEM_RUNTIME_TEAMS_SLOTS_H

#include <assert.h>

#include "runtime/teams/team.h"

enum {
    SLOT_WORDS = TEAM_RANGE / 64,
    SLOTS_KEPT = 16, /* the last ones of the first range are for active sets alone */
};
static_assert(TEAM_RANGES < 32, "a bit for each range");

/* PEs of the job that have made the team of an active set: operations/active.c. */
struct active_set {
    int start, log_stride, size;
    gshmem_team_t team;
};

/* Active sets of this PE whose teams stay. */
struct active_sets {
    uint32_t n; /* incremented when one is complete */
    struct active_set set[TEAM_RANGE];
};

struct slots_offer {
    uint64_t free[SLOT_WORDS]; /* of one range */
    uint32_t busy; /* slots that may become free soon: their claims are not settled */
    uint32_t full; /* a bit for each range without a free slot, but for those kept */
};

struct slots_offer slots_offer(int range);
/* Takes out the slots that are kept for active sets, which are offered, too. */
void slots_leave_kept(uint64_t free[SLOT_WORDS], int range);

/* A slot that is free on all members, the same on all members that pass the same arguments: the
 * lowest at the first attempt, later one that depends on `who`, so that two teams do not collide
 * for ever. GSHMEM_TEAM_INVALID: there is none. */
gshmem_team_t slots_choose(const uint64_t free[SLOT_WORDS], int range, uint64_t who,
                           uint64_t attempt);
/* The first range that is in neither set; -1: there is none. */
int slots_next_range(uint32_t full, uint32_t tried);
/* Logs that there is no slot. */
gshmem_status_t slots_none(const char *call);
int slots_count(const uint64_t free[SLOT_WORDS]);

/* Installs the team, if the slot is still free here. */
bool slots_claim(struct team *t, gshmem_team_t slot);
/* After all members have said whether they have claimed it: the team keeps its slot, or releases
 * it. Only members that have claimed it call this. */
void slots_settle(struct team *t, bool keep);

/* All steps for a new team whose members are all in the parent, in two rounds of the parent, after
 * which all members' sync blocks are clean. t: NULL on PEs that do not become members. On success
 * the team is installed. It is, too, if the parent failed in the second round, since others may use
 * the team already; then it is freed with the job. */
gshmem_status_t slots_install(struct team *parent, struct team *t, uint32_t signature,
                              const char *call);

#endif
