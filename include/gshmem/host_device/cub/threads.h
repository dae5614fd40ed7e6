/* What CUB's collectives have in common: which threads take part, and how values get from one to
 * another. What is offered is in reduce.h, scan.h, warp.h and arrange.h; missing.h names what is
 * not. */
#ifndef GSHMEM_HOST_DEVICE_CUB_THREADS_H
#define GSHMEM_HOST_DEVICE_CUB_THREADS_H

#include <stdio.h>

#include <iterator>
#include <new>

#include "gshmem_names_begin.h"

#include "../cuda_runtime.h"

#define CUB_VERSION          200000
#define CUB_MAJOR_VERSION    2
#define CUB_MINOR_VERSION    0
#define CUB_SUBMINOR_VERSION 0

namespace gshmem_host
{

/* Room for values in shared memory, which is made without a constructor. */
template <class T, int Count> struct cub_room {
    alignas(T) unsigned char gshmem_bytes[sizeof(T) * Count];

    T *values()
    {
        return reinterpret_cast<T *>(gshmem_bytes);
    }
};

/* The threads of a block of X by Y by Z of a collective's type, and the caller's place. */
template <int X, int Y, int Z> class cub_block
{
    const char *file;
    int line;

  public:
    static constexpr int threads = X * Y * Z;

    cub_block(const char *file, int line) : file(file), line(line)
    {
    }
    static int rank()
    {
        return (int)gshmem_host_thread_rank();
    }
    static int here()
    {
        return (int)(blockDim.x * blockDim.y * blockDim.z);
    }
    void sync() const
    {
        __syncthreads(file, line);
    }
    template <class Work> void once(Work &work) const
    {
        gshmem_host_once_block(
            [](void *argument) {
                (*static_cast<Work *>(argument))();
                return 0;
            },
            &work, file, line);
    }
    /* On a GPU a block of other dimensions gives wrong results. valid: of how many threads the
     * values count; then the last ones may be missing in a block of one dimension. */
    void require(const char *collective, int valid = threads) const
    {
        char text[160];

        if (blockDim.x == X && blockDim.y == Y && blockDim.z == Z)
            return;
        if (Y == 1 && Z == 1 && here() == (int)blockDim.x && valid <= here() && here() <= X)
            return;
        snprintf(text, sizeof text, "cub::%s of %dx%dx%d threads in a block of %ux%ux%u",
                 collective, X, Y, Z, blockDim.x, blockDim.y, blockDim.z);
        gshmem_host_trap(text, file, line);
    }
};

/* Size neighbouring lanes, which show each other values on their stacks. */
template <class T, int Size> class cub_lanes
{
    static_assert(Size > 0 && Size <= 32 && (Size & (Size - 1)) == 0,
                  "logical warps of the host device are powers of two to 32");

    /* A lane's value, and the lane before it. */
    struct link {
        const T *value;
        const link *before;
    };

    const char *file;
    int line;
    link own;

  public:
    cub_lanes(const char *file, int line) : file(file), line(line), own()
    {
    }
    static int rank()
    {
        return (int)gshmem_host_lane() & (Size - 1);
    }
    static int first()
    {
        return (int)gshmem_host_lane() & ~(Size - 1);
    }
    static unsigned mask()
    {
        return (Size == 32 ? 0xffffffffu : (1u << (Size & 31)) - 1) << first();
    }
    /* Lanes that exist: the last warp of a block may be shorter. */
    static int here()
    {
        const int lane = (int)gshmem_host_lane();
        const int after = (int)(blockDim.x * blockDim.y * blockDim.z) -
                          ((int)gshmem_host_thread_rank() - lane) - first();

        return after < Size ? after : Size;
    }
    void require(const char *collective, int lanes) const
    {
        char text[160];

        if (lanes <= here())
            return;
        snprintf(text, sizeof text, "cub::%s of %d threads, of which the block has %d", collective,
                 lanes, here());
        gshmem_host_trap(text, file, line);
    }
    /* All lanes show a value. It stays until they have all called close. */
    void show(const T &value)
    {
        const uint64_t before =
            gshmem_host_warp(GSHMEM_HOST_WARP_SHUFFLE, mask(), (uint64_t)&own,
                             (unsigned)(first() + (rank() ? rank() - 1 : 0)), file, line);

        own.value = &value;
        own.before = rank() ? (const link *)before : nullptr;
        __syncwarp(mask(), file, line);
    }
    void close() const
    {
        __syncwarp(mask(), file, line);
    }
    /* The values of lanes 0 … last, combined in their order. All lanes name the same last. */
    template <class Operator> T upto(int last, Operator &combine) const
    {
        return walk((const link *)gshmem_host_warp(GSHMEM_HOST_WARP_SHUFFLE, mask(), (uint64_t)&own,
                                                   (unsigned)(first() + last), file, line),
                    combine);
    }
    /* Those of the lanes before this one, which is not the first. */
    template <class Operator> T before(Operator &combine) const
    {
        return walk(own.before, combine);
    }

  private:
    template <class Operator> static T walk(const link *from, Operator &combine)
    {
        T all = *from->value;

        for (const link *l = from->before; l; l = l->before)
            all = combine(*l->value, all);
        return all;
    }
};

} /* namespace gshmem_host */

#include "gshmem_names_end.h"

#endif
