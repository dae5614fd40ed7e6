/* What reductions and scans of groups combine by; a program's own function will do as well. */
#ifndef GSHMEM_HOST_DEVICE_COOPERATIVE_GROUPS_OPERATORS_H
#define GSHMEM_HOST_DEVICE_COOPERATIVE_GROUPS_OPERATORS_H

#include "gshmem_names_begin.h"

namespace cooperative_groups
{

#define GSHMEM_OPERATOR(name, result)                                                              \
    template <class T> struct name {                                                               \
        T operator()(const T &x, const T &y) const                                                 \
        {                                                                                          \
            return result;                                                                         \
        }                                                                                          \
    };
GSHMEM_OPERATOR(plus, x + y)
GSHMEM_OPERATOR(less, y < x ? y : x)
GSHMEM_OPERATOR(greater, x < y ? y : x)
GSHMEM_OPERATOR(bit_and, x &y)
GSHMEM_OPERATOR(bit_xor, x ^ y)
GSHMEM_OPERATOR(bit_or, x | y)
#undef GSHMEM_OPERATOR

} /* namespace cooperative_groups */

#include "gshmem_names_end.h"

#endif
