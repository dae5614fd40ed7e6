/* What the files of gshmem-perf-device share: the memory that kernels use, and what a benchmark is.
 */
#ifndef GSHMEM_PERF_DEVICE_H
#define GSHMEM_PERF_DEVICE_H

#include <gshmem.h>
#include <stddef.h>

enum { BURST = 256, TRIPS = 200, SIDE_BY_SIDE = 4, LARGE_BYTES = 1 << 20 };

/* Symmetric; each on lines of its own. */
struct board {
    alignas(64) long value[SIDE_BY_SIDE][8];
    alignas(64) uint64_t arrived;
    alignas(64) uint64_t signalled;
    alignas(64) long source;
    alignas(64) char from[LARGE_BYTES];
    alignas(64) char to[LARGE_BYTES];
};

/* Where the tokens of a layer of experts go. */
struct layer {
    char *token;      /* this PE's */
    char *dispatched; /* [n_pes], each with a place for all tokens of that PE */
    char *combined;   /* the results of this PE's tokens */
    uint64_t *come;   /* [n_pes + 1]: how many tokens of each PE have come, and how many results */
};

struct job {
    struct board *board;
    int peer;
    size_t bytes;  /* of the benchmark's operation */
    uint64_t turn; /* turns of ping-pong before this round; of a layer, rounds with this one */
    struct layer layer;
    unsigned *ready;                 /* blocks that are about to begin */
    long *sum;                       /* [threads] of rates: of what was fetched */
    unsigned long long *begin, *end; /* [SIDE_BY_SIDE], ns */
};

/* PE 0 runs it; PEs 0 and 1; all PEs, and PE 0's time counts; or the same with a layer's memory. */
enum who { ALONE, PAIR, ALL, LAYER };
enum unit { NS, MILLIONS, MEGABYTES }; /* ns each; or millions, or MB, a second of all producers */

struct benchmark {
    const char *name;
    void (*kernel)(struct job);
    int producers, operations; /* of each */
    enum who who;
    enum unit unit;
    int threads;                                 /* of a block */
    size_t bytes;                                /* of each operation, where the kernel asks */
    gshmem_status_t (*host)(const struct job &); /* instead of a kernel: the host's own calls */
    int blocks; /* each with a channel of its own; 0: `producers`, which share one */
};

static __device__ inline unsigned long long now()
{
#ifdef __CUDA_ARCH__
    unsigned long long ns;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns)::"memory");
    return ns;
#else
    return (unsigned long long)clock64();
#endif
}

#endif
