/* Which teams have multicast addresses: one that stands for an object's copies on all members at
 * once, where the device offers it and the members are on units of their own on one node.
 *
 * A team of all PEs of the node shares the node's; others have one of their own, which comes and
 * goes with the team. It covers all of the heap, and follows as that grows; where it cannot, the
 * team goes on without. */
#ifndef GSHMEM_RUNTIME_MULTICAST_H
#define GSHMEM_RUNTIME_MULTICAST_H

#include <stdint.h>

struct job;
struct multicast;
struct team;

/* Once a team's members have all installed it; collective over them. */
void multicast_begin(struct job *j, struct team *t);
/* With the team. */
void multicast_end(struct job *j, struct team *t);

/* The heap has grown, on all PEs, which all call it; or no object is beyond `end` any more. */
void multicast_follow(struct job *j, const char *call);
void multicast_cut(struct job *j, uint64_t end);

/* What stands for the beginning of the members' heaps for objects, and how much of them; 0:
 * nothing. */
uintptr_t multicast_base(const struct team *t);
uint64_t multicast_bytes(const struct team *t);

#endif
