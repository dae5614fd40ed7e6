/* The part of CUDA's cooperative groups that small programs use: the grid, the block, tiles of a
 * warp, and the threads of a warp that run together. */
#ifndef GSHMEM_HOST_DEVICE_COOPERATIVE_GROUPS_H
#define GSHMEM_HOST_DEVICE_COOPERATIVE_GROUPS_H

#include "gshmem_names_begin.h"

#include "cuda_runtime.h"

namespace cooperative_groups
{

/* All blocks of a launch by cudaLaunchCooperativeKernel. */
class grid_group
{
  public:
    bool is_valid() const
    {
        return gshmem_host_grid_is_cooperative();
    }
    void sync(GSHMEM_HOST_PLACE) const
    {
        gshmem_host_barrier_grid(file, line);
    }
    unsigned long long size() const
    {
        return (unsigned long long)gridDim.x * gridDim.y * gridDim.z * blockDim.x * blockDim.y *
               blockDim.z;
    }
    unsigned long long num_threads() const
    {
        return size();
    }
    unsigned long long num_blocks() const
    {
        return (unsigned long long)gridDim.x * gridDim.y * gridDim.z;
    }
    unsigned long long block_rank() const
    {
        return blockIdx.x + (unsigned long long)gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    }
    unsigned long long thread_rank() const
    {
        return block_rank() * blockDim.x * blockDim.y * blockDim.z + gshmem_host_thread_rank();
    }
    dim3 group_dim() const
    {
        return gridDim;
    }
};

class thread_block
{
  public:
    void sync(GSHMEM_HOST_PLACE) const
    {
        __syncthreads(file, line);
    }
    unsigned size() const
    {
        return blockDim.x * blockDim.y * blockDim.z;
    }
    unsigned num_threads() const
    {
        return size();
    }
    unsigned thread_rank() const
    {
        return gshmem_host_thread_rank();
    }
    dim3 group_index() const
    {
        return blockIdx;
    }
    dim3 thread_index() const
    {
        return threadIdx;
    }
    dim3 dim_threads() const
    {
        return blockDim;
    }
};

/* A group of threads of one warp, given by their mask. */
class warp_group
{
  protected:
    unsigned mask, first, width;

    warp_group(unsigned mask, unsigned first, unsigned width)
        : mask(mask), first(first), width(width)
    {
    }

  public:
    void sync(GSHMEM_HOST_PLACE) const
    {
        __syncwarp(mask, file, line);
    }
    int any(int predicate, GSHMEM_HOST_PLACE) const
    {
        return __any_sync(mask, predicate, file, line);
    }
    int all(int predicate, GSHMEM_HOST_PLACE) const
    {
        return __all_sync(mask, predicate, file, line);
    }
    unsigned size() const
    {
        return (unsigned)__popc(mask);
    }
    unsigned num_threads() const
    {
        return size();
    }
    unsigned thread_rank() const
    {
        return (unsigned)__popc(mask & ((1u << gshmem_host_lane()) - 1));
    }
};

/* A tile: Size neighbouring threads of a warp. Size is a power of two. */
template <unsigned Size, class Parent = void> class thread_block_tile : public warp_group
{
    static_assert(Size && Size <= 32 && (Size & (Size - 1)) == 0, "tiles are powers of two to 32");

    template <unsigned, class> friend class thread_block_tile;
    unsigned rank, count; /* of this tile, and of tiles in the parent */

  public:
    thread_block_tile(unsigned threads_before, unsigned threads)
        : warp_group((Size == 32 ? 0xffffffffu : (1u << Size) - 1)
                         << (gshmem_host_lane() & ~(Size - 1)),
                     gshmem_host_lane() & ~(Size - 1), Size),
          rank(threads_before / Size), count((threads + Size - 1) / Size)
    {
    }
    /* Only the type says of which parent the tile is a part. */
    template <class Other>
    thread_block_tile(const thread_block_tile<Size, Other> &other)
        : warp_group(other), rank(other.rank), count(other.count)
    {
    }
    unsigned ballot(int predicate, GSHMEM_HOST_PLACE) const
    {
        return __ballot_sync(mask, predicate, file, line) >> first;
    }
    template <class T> T shfl(T value, int source, GSHMEM_HOST_PLACE) const
    {
        return __shfl_sync(mask, value, source, (int)Size, file, line);
    }
    template <class T> T shfl_up(T value, unsigned delta, GSHMEM_HOST_PLACE) const
    {
        return __shfl_up_sync(mask, value, delta, (int)Size, file, line);
    }
    template <class T> T shfl_down(T value, unsigned delta, GSHMEM_HOST_PLACE) const
    {
        return __shfl_down_sync(mask, value, delta, (int)Size, file, line);
    }
    template <class T> T shfl_xor(T value, unsigned lanes, GSHMEM_HOST_PLACE) const
    {
        return __shfl_xor_sync(mask, value, (int)lanes, (int)Size, file, line);
    }
    unsigned meta_group_rank() const
    {
        return rank;
    }
    unsigned meta_group_size() const
    {
        return count;
    }
};

class coalesced_group : public warp_group
{
  public:
    explicit coalesced_group(unsigned mask) : warp_group(mask, 0, 32)
    {
    }
    /* source is the number of a member, not of a lane. */
    template <class T> T shfl(T value, int source, GSHMEM_HOST_PLACE) const
    {
        unsigned rest = mask;

        while (source-- > 0)
            rest &= rest - 1;
        return __shfl_sync(mask, value, __ffs((int)rest) - 1, 32, file, line);
    }
};

static inline grid_group this_grid()
{
    return grid_group();
}

static inline thread_block this_thread_block()
{
    return thread_block();
}

template <unsigned Size, class Parent>
static inline thread_block_tile<Size, Parent> tiled_partition(const Parent &parent)
{
    return thread_block_tile<Size, Parent>(parent.thread_rank(), parent.num_threads());
}

static inline coalesced_group coalesced_threads(GSHMEM_HOST_PLACE)
{
    return coalesced_group(__activemask(file, line));
}

template <class Group> static inline void sync(const Group &group, GSHMEM_HOST_PLACE)
{
    group.sync(file, line);
}

} /* namespace cooperative_groups */

#include "gshmem_names_end.h"

#endif
