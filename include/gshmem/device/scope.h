/* Which threads perform an operation: one thread, a warp, or a block; and where code is running. */
#ifndef GSHMEM_DEVICE_SCOPE_H
#define GSHMEM_DEVICE_SCOPE_H

#include "gshmem/base.h"

#define GSHMEM_KERNEL static __device__ __forceinline__
/* Rare cases are kept out of the caller's code. */
#define GSHMEM_KERNEL_RARE static __device__ __noinline__ __attribute__((unused))
#define GSHMEM_EITHER      static __host__ __device__ __forceinline__

/* The body of a function that host code and kernels call by one name. */
#if defined(__CUDA_ARCH__)
#define GSHMEM_RETURN(in_kernel, on_host) return in_kernel
#elif defined(GSHMEM_HOST_DEVICE)
#define GSHMEM_RETURN(in_kernel, on_host) return gshmem_host_in_kernel() ? in_kernel : on_host
#else
#define GSHMEM_RETURN(in_kernel, on_host) return on_host
#endif

enum gshmem_scope { GSHMEM_SCOPE_THREAD, GSHMEM_SCOPE_WARP, GSHMEM_SCOPE_BLOCK };

GSHMEM_KERNEL unsigned gshmem_kernel_thread(void)
{
#ifdef GSHMEM_HOST_DEVICE
    return gshmem_host_thread_rank();
#else
    return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
#endif
}

GSHMEM_KERNEL unsigned gshmem_kernel_block(void)
{
    return blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
}

/* The caller's number among the threads that perform the operation, and how many these are. The
 * last warp of a block may have fewer threads. */
template <int scope> GSHMEM_KERNEL unsigned gshmem_kernel_rank(void)
{
    if (scope == GSHMEM_SCOPE_THREAD)
        return 0;
    unsigned thread = gshmem_kernel_thread();
    return scope == GSHMEM_SCOPE_WARP ? thread & 31 : thread;
}

template <int scope> GSHMEM_KERNEL unsigned gshmem_kernel_size(void)
{
    if (scope == GSHMEM_SCOPE_THREAD)
        return 1;
    unsigned threads = blockDim.x * blockDim.y * blockDim.z;
    if (scope == GSHMEM_SCOPE_BLOCK)
        return threads;
    unsigned left = threads - (gshmem_kernel_thread() & ~31u);
    return left < 32 ? left : 32;
}

/* The lanes of the caller's warp. */
GSHMEM_KERNEL unsigned gshmem_kernel_lanes(void)
{
    return 0xffffffffu >> (32 - gshmem_kernel_size<GSHMEM_SCOPE_WARP>());
}

/* All have arrived, and see what each wrote before. */
template <int scope> GSHMEM_KERNEL void gshmem_kernel_sync(void)
{
    if (scope == GSHMEM_SCOPE_WARP)
        __syncwarp(gshmem_kernel_lanes());
    else if (scope == GSHMEM_SCOPE_BLOCK)
        __syncthreads();
}

/* Whether `mine` is true in any thread; also a sync. */
template <int scope> GSHMEM_KERNEL bool gshmem_kernel_any(bool mine)
{
    gshmem_kernel_sync<scope == GSHMEM_SCOPE_WARP ? GSHMEM_SCOPE_WARP : GSHMEM_SCOPE_THREAD>();
    if (scope == GSHMEM_SCOPE_WARP)
        return __any_sync(gshmem_kernel_lanes(), mine);
    return scope == GSHMEM_SCOPE_BLOCK ? __syncthreads_or(mine) : mine;
}

/* Returns the highest status of any thread to all threads; also a sync. If a status is not
 * GSHMEM_OK, the threads vote on one bit after another, which needs no shared memory of the
 * program. */
template <int scope> GSHMEM_KERNEL gshmem_status_t gshmem_kernel_agree(gshmem_status_t mine)
{
    int highest = 0;

    if (!gshmem_kernel_any<scope>(mine != GSHMEM_OK))
        return GSHMEM_OK;
    for (int bit = 8; bit; bit >>= 1) {
        bool candidate = ((int)mine & ~(bit - 1)) == (highest | bit);
        if (gshmem_kernel_any<scope>(candidate))
            highest |= bit;
    }
    return (gshmem_status_t)highest;
}

/* On the host device the threads of a block take turns on one CPU. There one thread does the work
 * that all would share on a GPU: it calls work() when all have arrived, while the others wait, and
 * all get its result. With GSHMEM_ALL_TAKE_PART, for tests, the threads share the work as on a GPU.
 */
#if defined(GSHMEM_HOST_DEVICE) && !defined(GSHMEM_ALL_TAKE_PART)
template <class Work> static int gshmem_kernel_do(void *work)
{
    return (int)(*(Work *)work)();
}

template <int scope, class Work> GSHMEM_KERNEL gshmem_status_t gshmem_kernel_once(Work work)
{
    int (*run)(void *) = gshmem_kernel_do<Work>;

    return (gshmem_status_t)(scope == GSHMEM_SCOPE_BLOCK
                                 ? gshmem_host_once_block(run, &work, __FILE__, __LINE__)
                                 : gshmem_host_once_warp(gshmem_kernel_lanes(), run, &work,
                                                         __FILE__, __LINE__));
}

/* Comes first in a function, which then returns what `call`, made by one thread, returns. */
#define GSHMEM_ONE_FOR_ALL(scope, call)                                                            \
    do {                                                                                           \
        if (scope != GSHMEM_SCOPE_THREAD)                                                          \
            return gshmem_kernel_once<scope>([&] { return call; });                                \
    } while (0)
#else
#define GSHMEM_ONE_FOR_ALL(scope, call)                                                            \
    do {                                                                                           \
    } while (0)
#endif

#endif
