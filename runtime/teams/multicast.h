/* Which teams have multicast addresses. Such an address stands for an object's copies on all
 * members at once. Teams have them where the device offers it and each member has a GPU of its own
 * on one node.
 *
 * A team of all PEs of the node shares the node's object. Other teams have one of their own, which
 * is made and released with the team. It covers all of the heap, and follows as the heap grows;
 * where it cannot, the team continues without. */
#ifndef GSHMEM_RUNTIME_TEAMS_MULTICAST_H
#define GSHMEM_RUNTIME_TEAMS_MULTICAST_H

#include <stdint.h>

struct job;
struct multicast;
struct team;

/* Collective over a team's members, once all of them have installed it. */
void multicast_begin(struct job *j, struct team *t);
/* When the team is destroyed. */
void multicast_stop(struct job *j); /* of all teams */
void multicast_end(struct job *j, struct team *t);

/* The heap has grown, or no object is beyond `end` any more, on all PEs, which all call this. */
void multicast_follow(struct job *j, const char *call);
void multicast_cut(struct job *j, uint64_t end);

/* The address that stands for the beginning of the members' heaps for objects, and how much of them
 * it covers; 0: nothing. */
uintptr_t multicast_base(const struct team *t);
uint64_t multicast_bytes(const struct team *t);

#endif
