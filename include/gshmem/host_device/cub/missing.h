/* The part of CUB that the host device has not: a use does not compile, and the message says so. */
#ifndef GSHMEM_HOST_DEVICE_CUB_MISSING_H
#define GSHMEM_HOST_DEVICE_CUB_MISSING_H

#include <stddef.h>

#include "gshmem_names_begin.h"

#define GSHMEM_HOST_CUB_INSTEAD                                                                    \
    " is not there for the host device, which has BlockReduce, BlockScan, BlockLoad, BlockStore, " \
    "WarpReduce and WarpScan; --device=ptx takes NVIDIA's CUB"

namespace cub
{

#define GSHMEM_HOST_CUB_MISSING(name)                                                              \
    template <class T, int X, int... More> class name                                              \
    {                                                                                              \
        static_assert(sizeof(T) == (size_t)-1, "cub::" #name GSHMEM_HOST_CUB_INSTEAD);             \
    };
GSHMEM_HOST_CUB_MISSING(BlockAdjacentDifference)
GSHMEM_HOST_CUB_MISSING(BlockDiscontinuity)
GSHMEM_HOST_CUB_MISSING(BlockExchange)
GSHMEM_HOST_CUB_MISSING(BlockHistogram)
GSHMEM_HOST_CUB_MISSING(WarpExchange)
GSHMEM_HOST_CUB_MISSING(WarpLoad)
GSHMEM_HOST_CUB_MISSING(WarpStore)
#undef GSHMEM_HOST_CUB_MISSING

#define GSHMEM_HOST_CUB_MISSING(name)                                                              \
    template <class T, int X, int Items, class... More> class name                                 \
    {                                                                                              \
        static_assert(sizeof(T) == (size_t)-1, "cub::" #name GSHMEM_HOST_CUB_INSTEAD);             \
    };
GSHMEM_HOST_CUB_MISSING(BlockMergeSort)
GSHMEM_HOST_CUB_MISSING(BlockRadixSort)
#undef GSHMEM_HOST_CUB_MISSING

/* Their functions are called by the host. */
#define GSHMEM_HOST_CUB_MISSING(name, function)                                                    \
    template <class... Argument> static int function(Argument &&...)                               \
    {                                                                                              \
        static_assert(sizeof...(Argument) == (size_t)-1,                                           \
                      "cub::" #name "::" #function GSHMEM_HOST_CUB_INSTEAD);                       \
        return 0;                                                                                  \
    }
struct DeviceReduce {
    GSHMEM_HOST_CUB_MISSING(DeviceReduce, Reduce)
    GSHMEM_HOST_CUB_MISSING(DeviceReduce, Sum)
    GSHMEM_HOST_CUB_MISSING(DeviceReduce, Min)
    GSHMEM_HOST_CUB_MISSING(DeviceReduce, Max)
    GSHMEM_HOST_CUB_MISSING(DeviceReduce, ArgMin)
    GSHMEM_HOST_CUB_MISSING(DeviceReduce, ArgMax)
};
struct DeviceScan {
    GSHMEM_HOST_CUB_MISSING(DeviceScan, InclusiveSum)
    GSHMEM_HOST_CUB_MISSING(DeviceScan, ExclusiveSum)
    GSHMEM_HOST_CUB_MISSING(DeviceScan, InclusiveScan)
    GSHMEM_HOST_CUB_MISSING(DeviceScan, ExclusiveScan)
};
struct DeviceRadixSort {
    GSHMEM_HOST_CUB_MISSING(DeviceRadixSort, SortKeys)
    GSHMEM_HOST_CUB_MISSING(DeviceRadixSort, SortPairs)
    GSHMEM_HOST_CUB_MISSING(DeviceRadixSort, SortKeysDescending)
    GSHMEM_HOST_CUB_MISSING(DeviceRadixSort, SortPairsDescending)
};
struct DeviceSelect {
    GSHMEM_HOST_CUB_MISSING(DeviceSelect, Flagged)
    GSHMEM_HOST_CUB_MISSING(DeviceSelect, If)
    GSHMEM_HOST_CUB_MISSING(DeviceSelect, Unique)
};
#undef GSHMEM_HOST_CUB_MISSING
#undef GSHMEM_HOST_CUB_INSTEAD

} /* namespace cub */

#include "gshmem_names_end.h"

#endif
