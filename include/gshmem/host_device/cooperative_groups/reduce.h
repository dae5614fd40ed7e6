/* Reductions by a tile or by threads that run together: all members call, and all get the result.
 * Values are combined in the order of the members. */
#ifndef GSHMEM_HOST_DEVICE_COOPERATIVE_GROUPS_REDUCE_H
#define GSHMEM_HOST_DEVICE_COOPERATIVE_GROUPS_REDUCE_H

#include "../cooperative_groups.h"
#include "operators.h"

#include "gshmem_names_begin.h"

namespace cooperative_groups
{

template <class Group, class T, class Operator>
static inline T reduce(const Group &group, T value, Operator combine, GSHMEM_HOST_PLACE)
{
    T all = group.shfl(value, 0, file, line);

    for (unsigned i = 1; i < group.num_threads(); i++)
        all = combine(all, group.shfl(value, (int)i, file, line));
    return all;
}

} /* namespace cooperative_groups */

#include "gshmem_names_end.h"

#endif
