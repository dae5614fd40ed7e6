/* gshmem-perf-device: collectives called in kernels, by a thread, a warp and blocks of several
 * sizes, beside the same calls of the host; and __syncthreads, without which no block does
 * anything. */
#ifndef GSHMEM_PERF_DEVICE_COLLECTIVES_H
#define GSHMEM_PERF_DEVICE_COLLECTIVES_H

#include "device.h"

enum scope { THREAD, WARP, BLOCK };
enum { LARGE_TRIPS = 10, LARGE_THREADS = 128 };

/* A kernel that makes a call `trips` times, and the host's function that does. */
#define COLLECTIVE(what, trips, function, arguments)                                               \
    template <int scope> static __global__ void what(struct job j)                                 \
    {                                                                                              \
        gshmem_status_t status = GSHMEM_OK;                                                        \
                                                                                                   \
        if (threadIdx.x == 0)                                                                      \
            j.begin[0] = now();                                                                    \
        for (int i = 0; i < trips && !status; i++)                                                 \
            status = scope == BLOCK  ? function##_block arguments                                  \
                     : scope == WARP ? function##_warp arguments                                   \
                                     : function arguments;                                         \
        if (threadIdx.x == 0)                                                                      \
            j.end[0] = status ? 0 : now();                                                         \
    }                                                                                              \
    static gshmem_status_t what##_host([[maybe_unused]] const struct job &j)                       \
    {                                                                                              \
        gshmem_status_t status = GSHMEM_OK;                                                        \
                                                                                                   \
        for (int i = 0; i < trips && !status; i++)                                                 \
            status = function arguments;                                                           \
        return status;                                                                             \
    }

#define LONGS (long *)j.board->to, (long *)j.board->from, j.bytes / sizeof(long)

COLLECTIVE(sync_all, TRIPS, gshmem_sync_all, ())
COLLECTIVE(barrier_all, TRIPS, gshmem_barrier_all, ())
COLLECTIVE(broadcast, TRIPS, gshmem_broadcastmem,
           (GSHMEM_TEAM_WORLD, j.board->to, j.board->from, j.bytes, 0))
COLLECTIVE(reduce, TRIPS, gshmem_long_sum_reduce, (GSHMEM_TEAM_WORLD, LONGS))
COLLECTIVE(large_broadcast, LARGE_TRIPS, gshmem_broadcastmem,
           (GSHMEM_TEAM_WORLD, j.board->to, j.board->from, j.bytes, 0))
COLLECTIVE(large_fcollect, LARGE_TRIPS, gshmem_fcollectmem,
           (GSHMEM_TEAM_WORLD, j.board->to, j.board->from, j.bytes / gshmem_n_pes()))
COLLECTIVE(large_reduce, LARGE_TRIPS, gshmem_long_sum_reduce, (GSHMEM_TEAM_WORLD, LONGS))

static __global__ void syncthreads(struct job j)
{
    if (threadIdx.x == 0)
        j.begin[0] = now();
    for (int i = 0; i < TRIPS; i++)
        __syncthreads();
    if (threadIdx.x == 0)
        j.end[0] = now();
}

#define SMALL(what, bytes)                                                                         \
    {#what "_host", NULL, 1, TRIPS, ALL, NS, 1, bytes, what##_host, 0},                            \
        {#what, what<THREAD>, 1, TRIPS, ALL, NS, 1, bytes, NULL, 0},                               \
        {#what "_warp", what<WARP>, 1, TRIPS, ALL, NS, 32, bytes, NULL, 0},                        \
        {#what "_block_32", what<BLOCK>, 1, TRIPS, ALL, NS, 32, bytes, NULL, 0},                   \
        {#what "_block_128", what<BLOCK>, 1, TRIPS, ALL, NS, 128, bytes, NULL, 0},                 \
    {                                                                                              \
#what "_block_256", what < BLOCK>, 1, TRIPS, ALL, NS, 256, bytes, NULL, 0                  \
    }

#define LARGE(what)                                                                                \
    {#what "_host", NULL, 1, LARGE_TRIPS, ALL, MEGABYTES, 1, LARGE_BYTES, what##_host, 0},         \
        {#what, what<THREAD>, 1, LARGE_TRIPS, ALL, MEGABYTES, 1, LARGE_BYTES, NULL, 0},            \
    {                                                                                              \
#what "_block", what < BLOCK>, 1, LARGE_TRIPS, ALL, MEGABYTES, LARGE_THREADS, LARGE_BYTES, \
            NULL, 0                                                                                \
    }

static const struct benchmark collective_benchmarks[] = {
    {"syncthreads_32", syncthreads, 1, TRIPS, ALONE, NS, 32, 0, NULL, 0},
    {"syncthreads_128", syncthreads, 1, TRIPS, ALONE, NS, 128, 0, NULL, 0},
    {"syncthreads_256", syncthreads, 1, TRIPS, ALONE, NS, 256, 0, NULL, 0},
    SMALL(sync_all, 0),
    SMALL(barrier_all, 0),
    SMALL(broadcast, 8),
    SMALL(reduce, 8),
    LARGE(large_broadcast),
    LARGE(large_fcollect),
    LARGE(large_reduce),
};

#endif
