/* Which algorithm a collective takes. */
#ifndef GSHMEM_RUNTIME_TABLE_H
#define GSHMEM_RUNTIME_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/collectives/call.h"

/* bytes: of one member's data. The same result on all members that make the same call. */
algorithm_fn *table_algorithm(enum collective what, size_t bytes, int n, bool oversubscribed);
/* The same for groups on several nodes. */
algorithm_fn *table_internode_algorithm(enum collective what, size_t bytes);

/* Algorithms whose data is in the slots of one round; in one slot, of a rooted round where that can
 * be. */
algorithm_fn broadcast_noted, broadcast_rooted, collect_noted, alltoall_noted, alltoalls_noted,
    reduce_noted, reducescatter_noted, inscan_noted, exscan_noted;
/* Algorithms that access the members' memory, between two rounds. */
algorithm_fn broadcast_shared, collect_shared, alltoall_shared, alltoalls_shared, reduce_shared,
    reducescatter_shared, inscan_shared, exscan_shared;
/* Algorithms of groups on several nodes, whose data is the payload of rounds where it fits. */
algorithm_fn internode_broadcast, internode_fcollect, internode_alltoall, internode_reduce;
/* Algorithms of groups on several nodes by puts to members on other nodes, and gets from them. */
algorithm_fn broadcast_put, collect_put, alltoall_put, internode_alltoalls, reduce_put,
    internode_reducescatter, internode_inscan, internode_exscan;
/* collect with a different size on each member: by slots, and by one of the others for larger
 * blocks. */
algorithm_fn collect_sized;
gshmem_status_t internode_collect(struct call *c, size_t my_place, size_t largest);
gshmem_status_t collect_put_at(struct call *c, size_t my_place, bool mine);

#endif
