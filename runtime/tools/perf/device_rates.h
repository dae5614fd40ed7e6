/* gshmem-perf-device: what kernels with many threads reach.
 *
 * Four blocks of 256 threads on each PE; each thread makes its operations on a word of its own of
 * the next PE, one after the other. rate_p and rate_add end with a quiet. rate_g and
 * rate_fetch_add, _swap and _compare_swap wait for each value, so that a PE has at most as many in
 * flight as it has threads. */
#ifndef GSHMEM_PERF_DEVICE_RATES_H
#define GSHMEM_PERF_DEVICE_RATES_H

#include "device.h"

enum {
    RATE_BLOCKS = 4,
    RATE_THREADS = 256,
    RATE_EACH = 64,
    RATE_ALL = RATE_BLOCKS * RATE_THREADS * RATE_EACH,
};

enum rated { RATED_P, RATED_ADD, RATED_G, RATED_FETCH_ADD, RATED_SWAP, RATED_COMPARE_SWAP };

template <int what> static __global__ void rated(struct job j)
{
    const int me = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    long *word = (long *)j.board->to + me, was = 0;

    for (int i = 0; i < RATE_EACH; i++) {
        switch (what) {
        case RATED_P:
            gshmem_long_p(word, i, j.peer);
            break;
        case RATED_ADD:
            gshmem_long_atomic_add(word, 1, j.peer);
            break;
        case RATED_G:
            was += gshmem_long_g(word, j.peer);
            break;
        case RATED_FETCH_ADD:
            was += gshmem_long_atomic_fetch_add(word, 1, j.peer);
            break;
        case RATED_SWAP:
            was += gshmem_long_atomic_swap(word, i, j.peer);
            break;
        case RATED_COMPARE_SWAP:
            was += gshmem_long_atomic_compare_swap(word, i, i + 1, j.peer);
            break;
        }
    }
    if (what == RATED_P || what == RATED_ADD)
        gshmem_quiet();
    j.sum[me] = was; /* so that no compiler leaves the gets out */
}

/* Timed by the host, since no thread of a kernel knows when the last one ends: the launch is less
 * than one part in a hundred. */
template <int what> static gshmem_status_t rate_host(const struct job &j)
{
    rated<what><<<RATE_BLOCKS, RATE_THREADS>>>(j);
    return cudaDeviceSynchronize() ? GSHMEM_ERR_DEVICE : GSHMEM_OK;
}

#define RATE(name, what)                                                                           \
    {                                                                                              \
        "rate_" name, NULL, 1, RATE_ALL, ALL, MILLIONS, RATE_THREADS, 8, rate_host<what>, 0        \
    }
static const struct benchmark rate_benchmarks[] = {
    RATE("p", RATED_P),
    RATE("add", RATED_ADD),
    RATE("g", RATED_G),
    RATE("fetch_add", RATED_FETCH_ADD),
    RATE("swap", RATED_SWAP),
    RATE("compare_swap", RATED_COMPARE_SWAP),
};
#undef RATE

#endif
