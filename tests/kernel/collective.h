/* For tests of collectives in kernels: the calls by scope, who makes them, and data that tells what
 * it is. */
#ifndef GSHMEM_TESTS_KERNEL_COLLECTIVE_H
#define GSHMEM_TESTS_KERNEL_COLLECTIVE_H

#include "kernel/kernel.h"
#include "collectives/groups.h"

enum scope { THREAD, WARP, BLOCK };
static const char *const scope_names[] = {"a thread", "a warp", "a block"};

/* Kernels have several blocks of a warp and a half, or more; one of them makes the calls, and of it
 * one thread, its last warp or all. */
enum { BLOCKS = 3, THREADS = 80, CALLER = 1 };

static __device__ inline bool calls(int scope)
{
    if (blockIdx.x != CALLER)
        return false;
    return scope == BLOCK || (scope == WARP ? threadIdx.x >= 64 : threadIdx.x == 70);
}

/* The caller's number among the threads that call, and how many they are. */
static __device__ inline unsigned rank_of(int scope)
{
    return scope == BLOCK ? threadIdx.x : scope == WARP ? threadIdx.x - 64 : 0;
}

static __device__ inline unsigned callers(int scope)
{
    return scope == BLOCK ? THREADS : scope == WARP ? THREADS - 64 : 1;
}

static __device__ inline void together(int scope)
{
    if (scope == BLOCK)
        __syncthreads();
    else if (scope == WARP)
        __syncwarp(0xffff);
}

/* ---- The calls, by scope ------------------------------------------------------------------------
 */

#define BY_SCOPE(name, arguments)                                                                  \
    (scope == BLOCK  ? name##_block arguments                                                      \
     : scope == WARP ? name##_warp arguments                                                       \
                     : name arguments)

template <int scope> static __device__ gshmem_status_t sync_team(gshmem_team_t team)
{
    return BY_SCOPE(gshmem_team_sync, (team));
}

template <int scope> static __device__ gshmem_status_t barrier(gshmem_team_t team)
{
    return BY_SCOPE(gshmem_barrier, (team));
}

template <int scope>
static __device__ gshmem_status_t broadcast(gshmem_team_t team, void *dest, const void *source,
                                            size_t bytes, int root)
{
    return BY_SCOPE(gshmem_broadcastmem, (team, dest, source, bytes, root));
}

template <int scope>
static __device__ gshmem_status_t fcollect(gshmem_team_t team, void *dest, const void *source,
                                           size_t bytes)
{
    return BY_SCOPE(gshmem_fcollectmem, (team, dest, source, bytes));
}

template <int scope>
static __device__ gshmem_status_t alltoall(gshmem_team_t team, void *dest, const void *source,
                                           size_t bytes)
{
    return BY_SCOPE(gshmem_alltoallmem, (team, dest, source, bytes));
}

/* ---- Now and then some PE comes late
 * -------------------------------------------------------------- */

static __device__ inline void late(uint64_t call)
{
    uint64_t draw = mixed2(call, (uint64_t)gshmem_my_pe());

    if (draw % 16 == 0)
        __nanosleep((unsigned)(draw >> 32) % 100000);
}

/* Launches a kernel with a scope for each scope, and checks what it found. */
#define FOR_EACH_SCOPE(found, kernel, ...)                                                         \
    do {                                                                                           \
        kernel<THREAD><<<BLOCKS, THREADS>>>(__VA_ARGS__);                                          \
        CHECK_FOUND(found);                                                                        \
        kernel<WARP><<<BLOCKS, THREADS>>>(__VA_ARGS__);                                            \
        CHECK_FOUND(found);                                                                        \
        kernel<BLOCK><<<BLOCKS, THREADS>>>(__VA_ARGS__);                                           \
        CHECK_FOUND(found);                                                                        \
    } while (0)

#endif
