/* Groups whose members are on several hosts: how they meet over the network.
 *
 * The members on one node are a group of their own, which meets in memory; the first of each, the
 * leaders, tell each other who has arrived; then each lets its neighbours go.
 *
 * What a round carries travels with what leaders tell each other, one message for a pair of hosts:
 * it lies in the leader's inbox, where its neighbours have written theirs and find the others'.
 * Where a team has no inbox, or a round's payload does not fit, notes of members on other hosts are
 * fetched when all have arrived, into copies; what reads notes need not know where they are from.
 */
#ifndef GSHMEM_RUNTIME_FAR_H
#define GSHMEM_RUNTIME_FAR_H

#include <stdbool.h>

#include "runtime/collectives/group.h"

struct job;
struct internode;

/* What a round carries; `brought` of the group is how much of each. Rounds alternate between the
 * halves of an inbox, as they do between notes, and for the same reason (sync.h). */
enum payload {
    PAYLOAD_NOTES, /* every member's note, to all */
    PAYLOAD_ONE,   /* the note of one */
    PAYLOAD_HOSTS, /* a part of each node's, to all, which its members make together */
    PAYLOAD_PAIRS, /* a part of each member's for each member on another node */
};

/* Makes g internode if its members are not all on this node. False: out of memory. */
bool internode_prepare(struct group *g, const struct job *j);
void internode_free(struct internode *f);

/* Of each PE's system memory, behind the blocks of all teams: their inboxes. */
size_t internode_system_bytes(void);
/* Gives g and its inner group their blocks; `slot` is the team's. */
void internode_install(struct group *g, const struct job *j, int slot);

/* The way to meet, and to part, of internode groups. */
gshmem_status_t internode_meet(struct group *g, uint32_t signature, const char *call);
gshmem_status_t internode_farewell(struct group *g, const char *call);
/* Whether all that this member has told others in rounds has arrived, or never will. */
bool internode_has_told(const struct group *g);
/* Breaks an internode group, with that failure, which has been logged, and tells the other hosts' leaders. */
gshmem_status_t internode_break_off(struct group *g, gshmem_status_t status, const char *call);

/* Whether member i is on another node: it has no memory here. */
bool internode_is_away(const struct group *g, int i);

/* How much of a payload fits into a round; the same on all members. 0: the team has no inbox. */
size_t internode_most(const struct group *g, enum payload kind);
/* What the coming round carries if it is not notes, `bytes` of each; from: whose, of PAYLOAD_ONE. */
void internode_load(struct group *g, enum payload kind, int from, size_t bytes);

/* Of PAYLOAD_HOSTS: node h's part in the coming round; and in the last. */
char *internode_part(const struct group *g, int h);
const char *internode_part_read(const struct group *g, int h);
/* Of PAYLOAD_PAIRS: where mine for member i goes; where i's for me is. */
char *internode_out(const struct group *g, int i);
const char *internode_in(const struct group *g, int i);

/* The context of the group's own puts and gets, by PE of the job: what the program has under way in its
 * contexts, and how that fared, is none of a collective's business. */
gshmem_ctx_t internode_context(const struct group *g);

int internode_hosts(const struct group *g);
int internode_my_host(const struct group *g);
/* The members on this node, and the way in which they alone meet. */
const struct group *internode_neighbours(const struct group *g);
/* The members on this node by their numbers in g, in order. */
const int *internode_local(const struct group *g);
gshmem_status_t internode_meet_neighbours(struct group *g, uint32_t signature, const char *call);
/* The first meeting of a call, where neighbours work on each other's memory before they meet other hosts.
 * A neighbour that makes another call has come to a round of all: if there is one, this becomes that round,
 * so that nobody meets more often than the others, and fails. */
gshmem_status_t internode_enter_neighbours(struct group *g, uint32_t signature, const char *call);

#endif
