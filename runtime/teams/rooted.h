/* Rooted rounds: one member, the root, brings data, and the others wait for the root alone.
 *
 * The root does not wait, so that it may be some rounds ahead of the others; they may be ahead of
 * each other, too. Every round whose number is a multiple of ROOTED_EVERY is a full one (group.h).
 * So nobody is ahead by more, and the root's slots are free when their turn comes again.
 *
 * What a member knows of a mismatch:
 *
 * - A member whose call is not the root's fails, as in a full round. The root does not notice.
 * - The next full round's signature has a hash of the rooted rounds before it. If they differed
 *   between members, that round fails on all of them.
 * - Where a member arrives at a full round, and another one at a rooted one of the same number, the
 *   full one cannot end. Who waits in it for long looks whether a member has arrived at a rooted
 *   round instead, fails, and counts its own round as a rooted one. So does each member in that
 *   full round, and all members continue to agree which slots the next full round uses.
 *
 * Where members are on several nodes (internode_rooted.c), the root also puts its data, and the
 * word behind it, into the slot of each other node's leader, from which the members of that node
 * take it, and returns once these puts are sent. */
#ifndef GSHMEM_RUNTIME_TEAMS_ROOTED_H
#define GSHMEM_RUNTIME_TEAMS_ROOTED_H

#include "runtime/teams/group.h"

/* Whether the group's coming round can be rooted, with so many bytes: the same on all members that
 * make the same call. */
static inline bool rooted_can_come(const struct group *g, size_t bytes)
{
    return rooted_is_allowed(g->round + 1) &&
           (g->internode ? g->remote->can_be_rooted(g, bytes) : bytes <= ROOTED_BYTES);
}

/* One round, on its root and on the other members, if rooted_can_come. Members whose
 * call is not the root's get GSHMEM_ERR_MISMATCH, and the group continues; after any other failure
 * it is broken. */
gshmem_status_t rooted_give(struct group *g, uint32_t signature, const void *data, size_t bytes,
                            const char *call);
gshmem_status_t rooted_take(struct group *g, int root, uint32_t signature, void *dest,
                            size_t bytes, const char *call);

/* The full round that is under way, whose signature that is, counts as a rooted one on this
 * member. */
void rooted_count(struct group *g, uint32_t signature);

#endif
