/* cub::BlockReduce: thread 0 gets the values of all threads, combined in their order, whatever the
 * algorithm. What others get is theirs: undefined, as in CUB. */
#ifndef GSHMEM_HOST_DEVICE_CUB_REDUCE_H
#define GSHMEM_HOST_DEVICE_CUB_REDUCE_H

#include "operators.h"
#include "threads.h"

#include "gshmem_names_begin.h"

namespace cub
{

enum BlockReduceAlgorithm {
    BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY,
    BLOCK_REDUCE_RAKING,
    BLOCK_REDUCE_WARP_REDUCTIONS
};

template <class T, int X, BlockReduceAlgorithm Algorithm = BLOCK_REDUCE_WARP_REDUCTIONS, int Y = 1,
          int Z = 1, int LegacyArchitecture = 0>
class BlockReduce
{
    typedef gshmem_host::cub_block<X, Y, Z> block;

  public:
    struct TempStorage : gshmem_host::cub_room<T, X * Y * Z> {
    };

  private:
    block threads;
    T *values;

    template <class Operator> T combine_all(T input, Operator combine, int valid)
    {
        const int rank = block::rank();

        if (rank < valid)
            new ((void *)&values[rank]) T(input);
        threads.sync();
        if (rank == 0) {
            for (int i = 1; i < valid; i++)
                input = combine(input, values[i]);
        }
        return input;
    }

  public:
    explicit BlockReduce(GSHMEM_HOST_PLACE)
        : threads(file, line), values(gshmem_host::shared<TempStorage>().values())
    {
    }
    explicit BlockReduce(TempStorage &storage, GSHMEM_HOST_PLACE)
        : threads(file, line), values(storage.values())
    {
    }

    template <class Operator> T Reduce(T input, Operator combine)
    {
        threads.require("BlockReduce");
        return combine_all(input, combine, block::threads);
    }
    /* Of the first threads alone. */
    template <class Operator> T Reduce(T input, Operator combine, int valid)
    {
        valid = valid < block::threads ? valid : block::threads;
        threads.require("BlockReduce", valid);
        return combine_all(input, combine, valid);
    }
    template <int Items, class Operator> T Reduce(T (&inputs)[Items], Operator combine)
    {
        T own = inputs[0];

        for (int i = 1; i < Items; i++)
            own = combine(own, inputs[i]);
        return Reduce(own, combine);
    }
    T Sum(T input)
    {
        return Reduce(input, ::std::plus<>());
    }
    T Sum(T input, int valid)
    {
        return Reduce(input, ::std::plus<>(), valid);
    }
    template <int Items> T Sum(T (&inputs)[Items])
    {
        return Reduce(inputs, ::std::plus<>());
    }
};

} /* namespace cub */

#include "gshmem_names_end.h"

#endif
