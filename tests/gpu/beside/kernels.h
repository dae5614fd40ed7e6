/* What is measured: one kernel that makes an operation `times` times, for each operation and scope, in
 * NVSHMEM's words; and the operations that streams take. */
#ifndef GSHMEM_TESTS_GPU_KERNELS_H
#define GSHMEM_TESTS_GPU_KERNELS_H

#include <nvshmem.h>
#include <nvshmemx.h>

struct job {
    char *to, *from;    /* symmetric */
    long *word, *words; /* symmetric: one, and one for each thread of a grid */
    uint64_t *signal;   /* symmetric */
    size_t bytes;       /* of an operation */
    int peer;
    uint64_t turn;      /* of ping-pong before this sample */
};

enum scope { THREAD, WARP, BLOCK };
enum operation { /* not by their plain names: NVSHMEM has some of them */
    DO_PUT, DO_GET, DO_P, DO_G, DO_FETCH_ADD, DO_INC, DO_COMPARE_SWAP, DO_PUT_SIGNAL, /* each waited for */
    DO_PUT_NBI, DO_GET_NBI, DO_P_NBI,                                  /* one wait at the end */
    DO_PINGPONG, DO_SYNC_ALL, DO_BARRIER_ALL, DO_BROADCAST, DO_FCOLLECT, DO_ALLTOALL, DO_REDUCE
};

#define BY_SCOPE(name, arguments)                                                                  \
    (scope == BLOCK  ? nvshmemx_##name##_block arguments                                           \
     : scope == WARP ? nvshmemx_##name##_warp arguments                                            \
                     : nvshmem_##name arguments)

template <int what, int scope> static __device__ void once(const struct job &j, uint64_t turn)
{
    /* Blocks share what is to be copied. */
    size_t bytes = j.bytes / gridDim.x, at = bytes * blockIdx.x;
    long *word = j.words + blockIdx.x * blockDim.x + threadIdx.x;
    long *dest = (long *)j.to;
    const long *source = (const long *)j.from;

    switch (what) {
    case DO_PUT:
        BY_SCOPE(putmem, (j.to + at, j.from + at, bytes, j.peer));
        nvshmem_quiet();
        break;
    case DO_GET:
        BY_SCOPE(getmem, (j.to + at, j.from + at, bytes, j.peer));
        break;
    case DO_PUT_NBI:
        BY_SCOPE(putmem_nbi, (j.to + at, j.from + at, bytes, j.peer));
        break;
    case DO_GET_NBI:
        BY_SCOPE(getmem_nbi, (j.to + at, j.from + at, bytes, j.peer));
        break;
    case DO_P:
        nvshmem_long_p(j.word, (long)turn, j.peer);
        nvshmem_quiet();
        break;
    case DO_P_NBI:
        nvshmem_long_p(word, (long)turn, j.peer);
        break;
    case DO_G:
        *word += nvshmem_long_g(j.word, j.peer);
        break;
    case DO_FETCH_ADD:
        *word += nvshmem_long_atomic_fetch_add(j.word, 1, j.peer);
        break;
    case DO_INC:
        nvshmem_long_atomic_inc(j.word, j.peer);
        nvshmem_quiet();
        break;
    case DO_COMPARE_SWAP:
        *word += nvshmem_long_atomic_compare_swap(j.word, 0, 1, j.peer);
        break;
    case DO_PUT_SIGNAL:
        BY_SCOPE(putmem_signal, (j.to + at, j.from + at, bytes, j.signal + 1, 1, NVSHMEM_SIGNAL_ADD, j.peer));
        nvshmem_quiet();
        break;
    case DO_PINGPONG:
        if (nvshmem_my_pe() < j.peer)
            nvshmem_putmem_signal_nbi(j.to, j.from, j.bytes, j.signal, turn, NVSHMEM_SIGNAL_SET, j.peer);
        nvshmem_signal_wait_until(j.signal, NVSHMEM_CMP_GE, turn);
        if (nvshmem_my_pe() > j.peer)
            nvshmem_putmem_signal_nbi(j.to, j.from, j.bytes, j.signal, turn, NVSHMEM_SIGNAL_SET, j.peer);
        break;
    case DO_SYNC_ALL:
        BY_SCOPE(sync_all, ());
        break;
    case DO_BARRIER_ALL:
        BY_SCOPE(barrier_all, ());
        break;
    case DO_BROADCAST:
        BY_SCOPE(long_broadcast, (NVSHMEM_TEAM_WORLD, dest, source, j.bytes / sizeof(long), 0));
        break;
    case DO_FCOLLECT:
        BY_SCOPE(long_fcollect, (NVSHMEM_TEAM_WORLD, dest, source, j.bytes / sizeof(long)));
        break;
    case DO_ALLTOALL:
        BY_SCOPE(long_alltoall, (NVSHMEM_TEAM_WORLD, dest, source, j.bytes / sizeof(long)));
        break;
    default:
        BY_SCOPE(long_sum_reduce, (NVSHMEM_TEAM_WORLD, dest, source, j.bytes / sizeof(long)));
        break;
    }
}

/* Its last operations are waited for: those of this block, where a grid is measured. */
template <int what, int scope> __global__ void repeat(struct job j, long times)
{
    for (long i = 1; i <= times; i++)
        once<what, scope>(j, j.turn + (uint64_t)i);
    if (what == DO_PUT_NBI || what == DO_GET_NBI || what == DO_P_NBI || what == DO_PINGPONG)
        nvshmem_quiet();
}

/* ---- On streams ---- */

static int copy_on_stream(const struct job &j, cudaStream_t stream)
{
    void *there = nvshmem_ptr(j.to, j.peer);

    return !there || cudaMemcpyAsync(there, j.from, j.bytes, cudaMemcpyDeviceToDevice, stream);
}

static int put_on_stream(const struct job &j, cudaStream_t stream)
{
    nvshmemx_putmem_on_stream(j.to, j.from, j.bytes, j.peer, stream);
    return 0;
}

static int get_on_stream(const struct job &j, cudaStream_t stream)
{
    nvshmemx_getmem_on_stream(j.to, j.from, j.bytes, j.peer, stream);
    return 0;
}

static int put_signal_on_stream(const struct job &j, cudaStream_t stream)
{
    nvshmemx_putmem_signal_on_stream(j.to, j.from, j.bytes, j.signal + 1, 1, NVSHMEM_SIGNAL_ADD, j.peer,
                                     stream);
    return 0;
}

static int barrier_on_stream(const struct job &, cudaStream_t stream)
{
    nvshmemx_barrier_all_on_stream(stream);
    return 0;
}

static int reduce_on_stream(const struct job &j, cudaStream_t stream)
{
    return nvshmemx_long_sum_reduce_on_stream(NVSHMEM_TEAM_WORLD, (long *)j.to, (const long *)j.from,
                                              j.bytes / sizeof(long), stream);
}

static int fcollect_on_stream(const struct job &j, cudaStream_t stream)
{
    return nvshmemx_long_fcollect_on_stream(NVSHMEM_TEAM_WORLD, (long *)j.to, (const long *)j.from,
                                            j.bytes / sizeof(long), stream);
}

#endif
