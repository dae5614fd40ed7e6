/* Groups whose members are on several hosts: how they meet over the network.
 *
 * The members on one host are a group of their own, which meets in memory; the first of each, the
 * leaders, tell each other who has arrived; then each lets its neighbours go.
 *
 * What a round carries travels with what leaders tell each other, one message for a pair of hosts:
 * it lies in the leader's inbox, where its neighbours have written theirs and find the others'.
 * Where a team has no inbox, or a round's cargo does not fit, notes of members on other hosts are
 * fetched when all have arrived, into copies; what reads notes need not know where they are from.
 */
#ifndef GSHMEM_RUNTIME_FAR_H
#define GSHMEM_RUNTIME_FAR_H

#include <stdbool.h>

#include "runtime/collectives/group.h"

struct job;
struct far;

/* What a round carries; `brought` of the group is how much of each. Rounds alternate between the
 * halves of an inbox, as they do between notes, and for the same reason (sync.h). */
enum cargo {
    CARGO_NOTES, /* every member's note, to all */
    CARGO_ONE,   /* the note of one */
    CARGO_HOSTS, /* a part of each host's, to all, which its members make together */
    CARGO_PAIRS, /* a part of each member's for each member on another host */
};

/* Makes g far if its members are not all on this host. False: out of memory. */
bool far_prepare(struct group *g, const struct job *j);
void far_free(struct far *f);

/* Of each PE's system memory, behind the blocks of all teams: their inboxes. */
size_t far_system_bytes(void);
/* Gives g and its inner group their blocks; `slot` is the team's. */
void far_install(struct group *g, const struct job *j, int slot);

/* The way to meet, and to part, of far groups. */
gshmem_status_t meet_far(struct group *g, uint32_t signature, const char *call);
gshmem_status_t far_farewell(struct group *g, const char *call);
/* Whether all that this member has told others in rounds has arrived, or never will. */
bool far_has_told(const struct group *g);
/* Breaks a far group, with that failure, which has been logged, and tells the other hosts' leaders. */
gshmem_status_t far_break_off(struct group *g, gshmem_status_t status, const char *call);

/* Whether member i is on another host: it has no memory here. */
bool far_is_away(const struct group *g, int i);

/* How much of a cargo fits into a round; the same on all members. 0: the team has no inbox. */
size_t far_most(const struct group *g, enum cargo kind);
/* What the coming round carries if it is not notes, `bytes` of each; from: whose, of CARGO_ONE. */
void far_load(struct group *g, enum cargo kind, int from, size_t bytes);

/* Of CARGO_HOSTS: host h's part in the coming round; and in the last. */
char *far_part(const struct group *g, int h);
const char *far_part_read(const struct group *g, int h);
/* Of CARGO_PAIRS: where mine for member i goes; where i's for me is. */
char *far_out(const struct group *g, int i);
const char *far_in(const struct group *g, int i);

/* The context of the group's own puts and gets, by PE of the job: what the program has under way in its
 * contexts, and how that fared, is none of a collective's business. */
gshmem_ctx_t far_context(const struct group *g);

int far_hosts(const struct group *g);
int far_my_host(const struct group *g);
/* The members on this host, and the way in which they alone meet. */
const struct group *far_neighbours(const struct group *g);
/* The members on this host by their numbers in g, in order. */
const int *far_local(const struct group *g);
gshmem_status_t far_meet_neighbours(struct group *g, uint32_t signature, const char *call);
/* The first meeting of a call, where neighbours work on each other's memory before they meet other hosts.
 * A neighbour that makes another call has come to a round of all: if there is one, this becomes that round,
 * so that nobody meets more often than the others, and fails. */
gshmem_status_t far_enter_neighbours(struct group *g, uint32_t signature, const char *call);

#endif
