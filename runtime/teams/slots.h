/* Team slots: how the members of a new team agree on one that is free on all of them, and take it.
 *
 * Each offers the set of its free slots, and one that is in every set is chosen. Threads of a PE may make
 * different teams at once and offer the same slot, since none holds anything while it waits for other PEs:
 * otherwise two teams whose members come in different orders would wait for each other. So whoever has
 * chosen claims the slot, which fails where another thread was faster, and all members hear in a second
 * meeting whether all have it. If not they let go of it and try again, with another choice. */
#ifndef GSHMEM_RUNTIME_SLOTS_H
#define GSHMEM_RUNTIME_SLOTS_H

#include "runtime/teams/team.h"

enum { SLOT_WORDS = TEAM_MAX / 64 };

struct slots_offer {
    uint64_t free[SLOT_WORDS];
    uint64_t busy; /* a slot that is not among them may be soon: its claim is not settled */
};

struct slots_offer slots_offer(void);

/* A slot of those that are free on all, the same on all that pass the same: the lowest at the first attempt,
 * later one that depends on `who`, so that two teams do not get into each other's way for ever.
 * GSHMEM_TEAM_INVALID: there is none. */
gshmem_team_t slots_choose(const uint64_t free[SLOT_WORDS], uint64_t who, uint64_t attempt);
int slots_count(const uint64_t free[SLOT_WORDS]);

/* Installs the team, if the slot is still free here. */
bool slots_claim(struct team *t, gshmem_team_t slot);
/* All members have told whether they have claimed it: the team keeps its slot, or lets go of it. Only for
 * those that have. */
void slots_settle(struct team *t, bool keep);

/* For a new team whose members are all in the parent: the whole of it, by two meetings of the parent, after
 * which all members' sync blocks are clean. t: NULL on those that do not become members. It is installed on
 * success; also if the parent broke in the second meeting, since others may use the team by then: then it
 * goes with the job. */
gshmem_status_t slots_install(struct team *parent, struct team *t, uint32_t signature,
                              const char *call);

#endif
