/* cub::BlockScan: each thread gets the values of the threads before it, and in the inclusive forms
 * its own, combined in their order, whatever the algorithm. */
#ifndef GSHMEM_HOST_DEVICE_CUB_SCAN_H
#define GSHMEM_HOST_DEVICE_CUB_SCAN_H

#include "operators.h"
#include "threads.h"

#include "gshmem_names_begin.h"

namespace cub
{

enum BlockScanAlgorithm { BLOCK_SCAN_RAKING, BLOCK_SCAN_RAKING_MEMOIZE, BLOCK_SCAN_WARP_SCANS };

template <class T, int X, BlockScanAlgorithm Algorithm = BLOCK_SCAN_RAKING, int Y = 1, int Z = 1,
          int LegacyArchitecture = 0>
class BlockScan
{
    typedef gshmem_host::cub_block<X, Y, Z> block;

  public:
    /* And one for what a program's function says comes before the first. */
    struct TempStorage : gshmem_host::cub_room<T, X * Y * Z + 1> {
    };

  private:
    block threads;
    T *values;

    /* values[i] becomes what threads 0 … i have. */
    template <class Operator> void publish(const T &own, Operator &combine)
    {
        T *const all = values;
        auto work = [all, &combine] {
            for (int i = 1; i < block::threads; i++)
                all[i] = combine(all[i - 1], all[i]);
        };

        threads.require("BlockScan");
        new ((void *)&values[block::rank()]) T(own);
        threads.once(work);
    }
    const T &aggregate() const
    {
        return values[block::threads - 1];
    }
    template <class Operator>
    static void write(const T *in, T *out, int items, Operator &combine, bool inclusive,
                      const T *before)
    {
        int i = 0;

        if (!before) { /* the first has nothing before it: undefined in the exclusive form */
            const T value = in[0];
            if (inclusive)
                out[0] = value;
            if (items > 1)
                write(in + 1, out + 1, items - 1, combine, inclusive, &value);
            return;
        }
        for (T running = *before; i < items; i++) {
            const T next = combine(running, in[i]);
            out[i] = inclusive ? next : running;
            running = next;
        }
    }
    /* seed comes before the first thread's; nullptr: nothing does. */
    template <class Operator>
    void finish(const T *in, T *out, int items, Operator &combine, bool inclusive, const T *seed)
    {
        const int rank = block::rank();

        if (rank == 0) {
            write(in, out, items, combine, inclusive, seed);
        } else if (seed) {
            const T before = combine(*seed, values[rank - 1]);
            write(in, out, items, combine, inclusive, &before);
        } else {
            write(in, out, items, combine, inclusive, &values[rank - 1]);
        }
    }
    template <class Operator>
    void scan(const T *in, T *out, int items, Operator &combine, bool inclusive, const T *seed,
              T *total)
    {
        T own = in[0];

        for (int i = 1; i < items; i++)
            own = combine(own, in[i]);
        publish(own, combine);
        finish(in, out, items, combine, inclusive, seed);
        if (total)
            *total = aggregate();
    }
    /* The first warp calls the program's function with the aggregate; what thread 0 gets comes
     * before the first thread's. */
    template <class Operator, class Prefix>
    void scan_after(const T *in, T *out, int items, Operator &combine, bool inclusive,
                    Prefix &prefix)
    {
        T own = in[0];

        for (int i = 1; i < items; i++)
            own = combine(own, in[i]);
        publish(own, combine);
        if (block::rank() < warpSize) {
            const T before = prefix(aggregate());
            if (block::rank() == 0)
                new ((void *)&values[block::threads]) T(before);
        }
        threads.sync();
        finish(in, out, items, combine, inclusive, &values[block::threads]);
    }

  public:
    explicit BlockScan(GSHMEM_HOST_PLACE)
        : threads(file, line), values(gshmem_host::shared<TempStorage>().values())
    {
    }
    explicit BlockScan(TempStorage &storage, GSHMEM_HOST_PLACE)
        : threads(file, line), values(storage.values())
    {
    }

/* A form for one item of each thread, and one for several. */
#define GSHMEM_HOST_CUB_FORMS(name, more, ...)                                                     \
    void name(T input, T &output GSHMEM_HOST_CUB_##more)                                           \
    {                                                                                              \
        const T *in = &input;                                                                      \
        T *out = &output;                                                                          \
        constexpr int items = 1;                                                                   \
        __VA_ARGS__;                                                                               \
    }                                                                                              \
    template <int Items> void name(T(&inputs)[Items], T(&outputs)[Items] GSHMEM_HOST_CUB_##more)   \
    {                                                                                              \
        const T *in = inputs;                                                                      \
        T *out = outputs;                                                                          \
        constexpr int items = Items;                                                               \
        __VA_ARGS__;                                                                               \
    }
#define GSHMEM_HOST_CUB_NOTHING
#define GSHMEM_HOST_CUB_TOTAL , T &total
    GSHMEM_HOST_CUB_FORMS(InclusiveSum, NOTHING, ::std::plus<> combine;
                          scan(in, out, items, combine, true, nullptr, nullptr))
    GSHMEM_HOST_CUB_FORMS(InclusiveSum, TOTAL, ::std::plus<> combine;
                          scan(in, out, items, combine, true, nullptr, &total))
    GSHMEM_HOST_CUB_FORMS(ExclusiveSum, NOTHING, ::std::plus<> combine; const T zero = T();
                          scan(in, out, items, combine, false, &zero, nullptr))
    GSHMEM_HOST_CUB_FORMS(ExclusiveSum, TOTAL, ::std::plus<> combine; const T zero = T();
                          scan(in, out, items, combine, false, &zero, &total))
#undef GSHMEM_HOST_CUB_FORMS
#undef GSHMEM_HOST_CUB_NOTHING
#undef GSHMEM_HOST_CUB_TOTAL

    template <class Prefix> void InclusiveSum(T input, T &output, Prefix &prefix)
    {
        ::std::plus<> combine;
        scan_after(&input, &output, 1, combine, true, prefix);
    }
    template <int Items, class Prefix>
    void InclusiveSum(T (&inputs)[Items], T (&outputs)[Items], Prefix &prefix)
    {
        ::std::plus<> combine;
        scan_after(inputs, outputs, Items, combine, true, prefix);
    }
    template <class Prefix> void ExclusiveSum(T input, T &output, Prefix &prefix)
    {
        ::std::plus<> combine;
        scan_after(&input, &output, 1, combine, false, prefix);
    }
    template <int Items, class Prefix>
    void ExclusiveSum(T (&inputs)[Items], T (&outputs)[Items], Prefix &prefix)
    {
        ::std::plus<> combine;
        scan_after(inputs, outputs, Items, combine, false, prefix);
    }

    template <class Operator> void InclusiveScan(T input, T &output, Operator combine)
    {
        scan(&input, &output, 1, combine, true, nullptr, nullptr);
    }
    template <class Operator> void InclusiveScan(T input, T &output, Operator combine, T &total)
    {
        scan(&input, &output, 1, combine, true, nullptr, &total);
    }
    template <class Operator, class Prefix>
    void InclusiveScan(T input, T &output, Operator combine, Prefix &prefix)
    {
        scan_after(&input, &output, 1, combine, true, prefix);
    }
    template <int Items, class Operator>
    void InclusiveScan(T (&inputs)[Items], T (&outputs)[Items], Operator combine)
    {
        scan(inputs, outputs, Items, combine, true, nullptr, nullptr);
    }
    template <int Items, class Operator>
    void InclusiveScan(T (&inputs)[Items], T (&outputs)[Items], Operator combine, T &total)
    {
        scan(inputs, outputs, Items, combine, true, nullptr, &total);
    }
    template <int Items, class Operator, class Prefix>
    void InclusiveScan(T (&inputs)[Items], T (&outputs)[Items], Operator combine, Prefix &prefix)
    {
        scan_after(inputs, outputs, Items, combine, true, prefix);
    }

    /* Without a value for the first, its output is undefined. */
    template <class Operator> void ExclusiveScan(T input, T &output, Operator combine)
    {
        scan(&input, &output, 1, combine, false, nullptr, nullptr);
    }
    template <class Operator> void ExclusiveScan(T input, T &output, Operator combine, T &total)
    {
        scan(&input, &output, 1, combine, false, nullptr, &total);
    }
    template <class Operator> void ExclusiveScan(T input, T &output, T initial, Operator combine)
    {
        scan(&input, &output, 1, combine, false, &initial, nullptr);
    }
    template <class Operator>
    void ExclusiveScan(T input, T &output, T initial, Operator combine, T &total)
    {
        scan(&input, &output, 1, combine, false, &initial, &total);
    }
    template <class Operator, class Prefix>
    void ExclusiveScan(T input, T &output, Operator combine, Prefix &prefix)
    {
        scan_after(&input, &output, 1, combine, false, prefix);
    }
    template <int Items, class Operator>
    void ExclusiveScan(T (&inputs)[Items], T (&outputs)[Items], Operator combine)
    {
        scan(inputs, outputs, Items, combine, false, nullptr, nullptr);
    }
    template <int Items, class Operator>
    void ExclusiveScan(T (&inputs)[Items], T (&outputs)[Items], T initial, Operator combine)
    {
        scan(inputs, outputs, Items, combine, false, &initial, nullptr);
    }
    template <int Items, class Operator>
    void ExclusiveScan(T (&inputs)[Items], T (&outputs)[Items], T initial, Operator combine,
                       T &total)
    {
        scan(inputs, outputs, Items, combine, false, &initial, &total);
    }
    template <int Items, class Operator, class Prefix>
    void ExclusiveScan(T (&inputs)[Items], T (&outputs)[Items], Operator combine, Prefix &prefix)
    {
        scan_after(inputs, outputs, Items, combine, false, prefix);
    }
};

} /* namespace cub */

#include "gshmem_names_end.h"

#endif
