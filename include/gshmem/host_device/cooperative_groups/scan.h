/* Scans by a tile or by threads that run together: each member gets the values of the members up to
 * itself, combined in their order; exclusive: of those before it, and for the first T(). */
#ifndef GSHMEM_HOST_DEVICE_COOPERATIVE_GROUPS_SCAN_H
#define GSHMEM_HOST_DEVICE_COOPERATIVE_GROUPS_SCAN_H

#include "../cooperative_groups.h"
#include "operators.h"

#include "gshmem_names_begin.h"

namespace cooperative_groups
{

template <class Group, class T, class Operator>
static inline T gshmem_scan(const Group &group, T value, Operator combine, unsigned members,
                            const char *file, int line)
{
    T all = group.shfl(value, 0, file, line);

    for (unsigned i = 1; i < group.num_threads(); i++) {
        const T next = group.shfl(value, (int)i, file, line);
        if (i < members)
            all = combine(all, next);
    }
    return members ? all : T();
}

template <class Group, class T, class Operator>
static inline T inclusive_scan(const Group &group, T value, Operator combine, GSHMEM_HOST_PLACE)
{
    return gshmem_scan(group, value, combine, group.thread_rank() + 1, file, line);
}

template <class Group, class T, class Operator>
static inline T exclusive_scan(const Group &group, T value, Operator combine, GSHMEM_HOST_PLACE)
{
    return gshmem_scan(group, value, combine, group.thread_rank(), file, line);
}

template <class Group, class T>
static inline T inclusive_scan(const Group &group, T value, GSHMEM_HOST_PLACE)
{
    return inclusive_scan(group, value, plus<T>(), file, line);
}

template <class Group, class T>
static inline T exclusive_scan(const Group &group, T value, GSHMEM_HOST_PLACE)
{
    return exclusive_scan(group, value, plus<T>(), file, line);
}

} /* namespace cooperative_groups */

#include "gshmem_names_end.h"

#endif
