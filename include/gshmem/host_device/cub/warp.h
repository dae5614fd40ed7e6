/* cub::WarpReduce and cub::WarpScan: the same by the lanes of a warp, or of parts of a warp. They
 * need no storage. All lanes of the (logical) warp call that exist. */
#ifndef GSHMEM_HOST_DEVICE_CUB_WARP_H
#define GSHMEM_HOST_DEVICE_CUB_WARP_H

#include "operators.h"
#include "threads.h"

#include "gshmem_names_begin.h"

namespace cub
{

/* Lane 0 gets the result; what others get is theirs: undefined, as in CUB. */
template <class T, int Size = 32, int LegacyArchitecture = 0> class WarpReduce
{
    const char *file;
    int line;

  public:
    struct TempStorage {
    };

    explicit WarpReduce(TempStorage &, GSHMEM_HOST_PLACE) : file(file), line(line)
    {
    }
    template <class Operator> T Reduce(T input, Operator combine)
    {
        return Reduce(input, combine, Size);
    }
    /* Of the first lanes alone; the others may be missing at the end of the block. */
    template <class Operator> T Reduce(T input, Operator combine, int valid)
    {
        gshmem_host::cub_lanes<T, Size> lanes(file, line);

        valid = valid < 1 ? 1 : valid < Size ? valid : Size;
        lanes.require("WarpReduce", valid);
        lanes.show(input);
        const T all = lanes.upto(valid - 1, combine);
        lanes.close();
        return lanes.rank() == 0 ? all : input;
    }
    T Sum(T input)
    {
        return Reduce(input, ::std::plus<>());
    }
    T Sum(T input, int valid)
    {
        return Reduce(input, ::std::plus<>(), valid);
    }

#define GSHMEM_HOST_CUB_MISSING(name)                                                              \
    template <class... Argument> T name(Argument &&...)                                            \
    {                                                                                              \
        static_assert(sizeof...(Argument) == (size_t)-1,                                           \
                      "cub::WarpReduce::" #name " is not there for the host device");              \
        return T();                                                                                \
    }
    GSHMEM_HOST_CUB_MISSING(HeadSegmentedReduce)
    GSHMEM_HOST_CUB_MISSING(HeadSegmentedSum)
    GSHMEM_HOST_CUB_MISSING(TailSegmentedReduce)
    GSHMEM_HOST_CUB_MISSING(TailSegmentedSum)
#undef GSHMEM_HOST_CUB_MISSING
};

template <class T, int Size = 32, int LegacyArchitecture = 0> class WarpScan
{
    const char *file;
    int line;

    template <class Operator>
    void scan(const T input, T &output, Operator &combine, bool inclusive, const T *initial,
              T *total)
    {
        gshmem_host::cub_lanes<T, Size> lanes(file, line);

        if (total)
            lanes.require("WarpScan with an aggregate", Size);
        lanes.show(input);
        if (lanes.rank() > 0) {
            T all = lanes.before(combine);
            if (initial)
                all = combine(*initial, all);
            output = inclusive ? combine(all, input) : all;
        } else if (inclusive) {
            output = initial ? combine(*initial, input) : input;
        } else if (initial) { /* else undefined */
            output = *initial;
        }
        if (total)
            *total = lanes.upto(Size - 1, combine);
        lanes.close();
    }

  public:
    struct TempStorage {
    };

    explicit WarpScan(TempStorage &, GSHMEM_HOST_PLACE) : file(file), line(line)
    {
    }
    void InclusiveSum(T input, T &output)
    {
        ::std::plus<> combine;
        scan(input, output, combine, true, nullptr, nullptr);
    }
    void InclusiveSum(T input, T &output, T &total)
    {
        ::std::plus<> combine;
        scan(input, output, combine, true, nullptr, &total);
    }
    void ExclusiveSum(T input, T &output)
    {
        ::std::plus<> combine;
        const T zero = T();
        scan(input, output, combine, false, &zero, nullptr);
    }
    void ExclusiveSum(T input, T &output, T &total)
    {
        ::std::plus<> combine;
        const T zero = T();
        scan(input, output, combine, false, &zero, &total);
    }
    template <class Operator> void InclusiveScan(T input, T &output, Operator combine)
    {
        scan(input, output, combine, true, nullptr, nullptr);
    }
    template <class Operator> void InclusiveScan(T input, T &output, Operator combine, T &total)
    {
        scan(input, output, combine, true, nullptr, &total);
    }
    template <class Operator> void ExclusiveScan(T input, T &output, Operator combine)
    {
        scan(input, output, combine, false, nullptr, nullptr);
    }
    template <class Operator> void ExclusiveScan(T input, T &output, Operator combine, T &total)
    {
        scan(input, output, combine, false, nullptr, &total);
    }
    template <class Operator> void ExclusiveScan(T input, T &output, T initial, Operator combine)
    {
        scan(input, output, combine, false, &initial, nullptr);
    }
    template <class Operator>
    void ExclusiveScan(T input, T &output, T initial, Operator combine, T &total)
    {
        scan(input, output, combine, false, &initial, &total);
    }
    T Broadcast(T input, unsigned source)
    {
        gshmem_host::cub_lanes<T, Size> lanes(file, line);
        auto last = [](const T &, const T &later) { return later; };

        lanes.require("WarpScan::Broadcast", (int)source + 1);
        lanes.show(input);
        const T value = lanes.upto((int)source, last);
        lanes.close();
        return value;
    }
};

} /* namespace cub */

#include "gshmem_names_end.h"

#endif
