/* One heap in this process: heap.c makes it grow, window.c puts memory of the program's behind it.
 */
#ifndef GSHMEM_CUDA_HEAP_H
#define GSHMEM_CUDA_HEAP_H

#include "device/cuda/memory.h"

struct piece {
    uint64_t offset;
    uint64_t bytes;
};

struct heap {
    bool mine;
    bool remote;       /* of a PE of another node, in the same domain */
    cuda_gpu gpu;    /* where the memory lies; -1: on another node */
    cuda_gpu reader; /* who may load and store: c->gpu or gpu */
    cuda_address base;
    uint64_t reserved; /* addresses, also behind the limit; 0: CUDA IPC's */
    uint64_t limit;
    uint64_t mapped;
    struct piece *piece;
    int pieces;
    struct piece *imported; /* by the program, behind the limit, in no order */
    int lents;
    struct heap *next; /* of c->unreached */
};

/* Maps a piece into it, for who may load and store there; its handle may be let go of then. */
gshmem_status_t cuda_heap_map(struct cuda *c, const struct heap *h, cuda_piece piece,
                              uint64_t offset, uint64_t bytes);

static inline uint64_t heap_round_up(uint64_t bytes, uint64_t step)
{
    return (bytes + step - 1) / step * step;
}

#endif
