/* Groups whose members are on several nodes: how they synchronize over the network.
 *
 * 1. The members on one node are a group of their own, the inner group, and synchronize in memory.
 * 2. The first member of each node, the leader, exchanges words with the other leaders: which nodes
 *    have arrived.
 * 3. Each leader lets the members of its node leave.
 *
 * The payload of a round is sent with the words of leaders, one message for a pair of nodes. It is
 * in the leader's inbox, in which its node's members have written their parts and find the others'
 * parts. Where a team has no inbox, or a round's payload does not fit, the slots of members on
 * other nodes are fetched when all have arrived (internode_fetch.c). Code that reads slots need not
 * know where they come from. */
#ifndef GSHMEM_RUNTIME_TEAMS_INTERNODE_H
#define GSHMEM_RUNTIME_TEAMS_INTERNODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gshmem/base.h"
#include "gshmem/status.h"
#include "runtime/teams/group.h"

struct job;
struct internode;

/* Makes g internode if its members are not all on this node. False: out of memory. */
bool internode_prepare(struct group *g, const struct job *j);

/* The bytes in each PE's system memory, behind the blocks of all teams, for inboxes and what roots
 * bring. */
size_t internode_system_bytes(void);
/* Gives g and its inner group their blocks; `slot` is the team's. */
void internode_install(struct group *g, const struct job *j, int slot);

/* As group_note and group_read. */
struct note *internode_note(const struct group *g);
const struct note *internode_read(const struct group *g, int i);

/* The slot with the signature of member i in the last round, whose members differed. */
const struct note *internode_signed(const struct group *g, int i);

/* A round, and the farewell, of internode groups. */
gshmem_status_t internode_meet(struct group *g, uint32_t signature, const char *call);
gshmem_status_t internode_farewell(struct group *g, const char *call);
/* Whether every message that this member has sent in rounds has arrived, or never will. */
bool internode_has_sent(const struct group *g);
/* Breaks an internode group, with that failure, which has been logged, and notifies the other
 * nodes' leaders. */
gshmem_status_t internode_break_off(struct group *g, gshmem_status_t status, const char *call);

/* Whether member i is on another node: it has no memory here. */
bool internode_is_away(const struct group *g, int i);

/* How much of a payload fits into a round; the same on all members. 0: the team has no inbox. */
size_t internode_most(const struct group *g, enum payload kind);
/* Sets the payload of the coming round if it is not slots: `bytes` of each; from: the member, of
 * PAYLOAD_ONE. */
void internode_load(struct group *g, enum payload kind, int from, size_t bytes);

/* Of PAYLOAD_HOSTS: node h's part in the coming round, and in the last one. */
char *internode_part(const struct group *g, int h);
const char *internode_part_read(const struct group *g, int h);
/* Of PAYLOAD_PAIRS: where this member's data for member i goes, and where i's data for this member
 * is. */
char *internode_out(const struct group *g, int i);
const char *internode_in(const struct group *g, int i);

/* The context of the group's own puts and gets, by PE of the job. It is separate from the program's
 * contexts, whose operations and failures do not concern a collective. */
gshmem_ctx_t internode_context(const struct group *g);

/* The PE of another node whose word this leader waits for in the middle of a round; -1: none, or
 * its word has come. */
int internode_awaited(const struct group *g);

/* Whether it is in its farewell, to which all come that live, and behind which its blocks may be
 * another team's: those of other nodes say nothing of it. */
bool internode_ends(const struct group *g);

int internode_hosts(const struct group *g);
int internode_my_host(const struct group *g);
/* The members on this node as a group of their own. */
const struct group *internode_neighbours(const struct group *g);
/* The members on this node by their numbers in g, in order. */
const int *internode_local(const struct group *g);
gshmem_status_t internode_meet_neighbours(struct group *g, uint32_t signature, const char *call);
/* The first round of a call, where local members access each other's memory before they synchronize
 * with other nodes. A local member that makes another call has arrived at a round of all nodes. If
 * there is one, this round becomes one of all nodes, so that all members take part in the same
 * number of rounds, and the call fails. */
gshmem_status_t internode_enter_neighbours(struct group *g, uint32_t signature, const char *call);

#endif
