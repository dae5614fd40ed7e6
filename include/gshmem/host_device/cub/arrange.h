/* cub::BlockLoad and cub::BlockStore: each thread's items from an array, and to it. The algorithms
 * are one here, but for the striped one: neighbouring items belong to neighbouring threads. */
#ifndef GSHMEM_HOST_DEVICE_CUB_ARRANGE_H
#define GSHMEM_HOST_DEVICE_CUB_ARRANGE_H

#include "threads.h"

#include "gshmem_names_begin.h"

namespace gshmem_host
{

template <int Threads, int Items, bool Striped> inline int cub_place(int item)
{
    const int rank = (int)gshmem_host_thread_rank();

    return Striped ? item * Threads + rank : rank * Items + item;
}

} /* namespace gshmem_host */

namespace cub
{

enum BlockLoadAlgorithm {
    BLOCK_LOAD_DIRECT,
    BLOCK_LOAD_STRIPED,
    BLOCK_LOAD_VECTORIZE,
    BLOCK_LOAD_TRANSPOSE,
    BLOCK_LOAD_WARP_TRANSPOSE,
    BLOCK_LOAD_WARP_TRANSPOSE_TIMESLICED
};
enum BlockStoreAlgorithm {
    BLOCK_STORE_DIRECT,
    BLOCK_STORE_STRIPED,
    BLOCK_STORE_VECTORIZE,
    BLOCK_STORE_TRANSPOSE,
    BLOCK_STORE_WARP_TRANSPOSE,
    BLOCK_STORE_WARP_TRANSPOSE_TIMESLICED
};

} /* namespace cub */

namespace gshmem_host
{

constexpr bool cub_by_warps(::cub::BlockLoadAlgorithm algorithm)
{
    return algorithm == ::cub::BLOCK_LOAD_WARP_TRANSPOSE ||
           algorithm == ::cub::BLOCK_LOAD_WARP_TRANSPOSE_TIMESLICED;
}

constexpr bool cub_by_warps(::cub::BlockStoreAlgorithm algorithm)
{
    return algorithm == ::cub::BLOCK_STORE_WARP_TRANSPOSE ||
           algorithm == ::cub::BLOCK_STORE_WARP_TRANSPOSE_TIMESLICED;
}

} /* namespace gshmem_host */

namespace cub
{

template <class T, int X, int Items, BlockLoadAlgorithm Algorithm = BLOCK_LOAD_DIRECT, int Y = 1,
          int Z = 1, int LegacyArchitecture = 0>
class BlockLoad
{
    static_assert(!gshmem_host::cub_by_warps(Algorithm) || X * Y * Z % 32 == 0,
                  "the algorithms of warps need whole warps");

    gshmem_host::cub_block<X, Y, Z> threads;

    static int place(int item)
    {
        return gshmem_host::cub_place<X * Y * Z, Items, Algorithm == BLOCK_LOAD_STRIPED>(item);
    }

  public:
    struct TempStorage {
    };

    explicit BlockLoad(GSHMEM_HOST_PLACE) : threads(file, line)
    {
    }
    explicit BlockLoad(TempStorage &, GSHMEM_HOST_PLACE) : threads(file, line)
    {
    }
    template <class Iterator> void Load(Iterator from, T (&items)[Items])
    {
        Load(from, items, X * Y * Z * Items);
    }
    /* Of the first elements alone; the items beyond them stay as they are. */
    template <class Iterator> void Load(Iterator from, T (&items)[Items], int valid)
    {
        threads.require("BlockLoad");
        for (int i = 0; i < Items; i++) {
            if (place(i) < valid)
                items[i] = from[place(i)];
        }
    }
    template <class Iterator, class Other>
    void Load(Iterator from, T (&items)[Items], int valid, Other beyond)
    {
        for (int i = 0; i < Items; i++)
            items[i] = beyond;
        Load(from, items, valid);
    }
};

template <class T, int X, int Items, BlockStoreAlgorithm Algorithm = BLOCK_STORE_DIRECT, int Y = 1,
          int Z = 1, int LegacyArchitecture = 0>
class BlockStore
{
    static_assert(!gshmem_host::cub_by_warps(Algorithm) || X * Y * Z % 32 == 0,
                  "the algorithms of warps need whole warps");

    gshmem_host::cub_block<X, Y, Z> threads;

    static int place(int item)
    {
        return gshmem_host::cub_place<X * Y * Z, Items, Algorithm == BLOCK_STORE_STRIPED>(item);
    }

  public:
    struct TempStorage {
    };

    explicit BlockStore(GSHMEM_HOST_PLACE) : threads(file, line)
    {
    }
    explicit BlockStore(TempStorage &, GSHMEM_HOST_PLACE) : threads(file, line)
    {
    }
    template <class Iterator> void Store(Iterator to, T (&items)[Items])
    {
        Store(to, items, X * Y * Z * Items);
    }
    template <class Iterator> void Store(Iterator to, T (&items)[Items], int valid)
    {
        threads.require("BlockStore");
        for (int i = 0; i < Items; i++) {
            if (place(i) < valid)
                to[place(i)] = items[i];
        }
    }
};

} /* namespace cub */

#include "gshmem_names_end.h"

#endif
