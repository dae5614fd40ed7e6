/* A kernel whose operations are known: each thread of each block makes N puts, and thread 0 of each
 * block a blocking one, and N puts with a signal, which take two slots of a channel. */
#include <stdlib.h>

#include <gshmem.h>

#include "check.h"

enum { BLOCKS = 3, THREADS = 2 };

__global__ void work(uint64_t *memory, uint64_t *own, uint64_t *flag, int n, int right)
{
    if (threadIdx.x == 0) /* waits until its source may be reused */
        gshmem_putmem(memory + 20, own, 16, right);
    for (int i = 0; i < n; i++) {
        gshmem_uint64_p(memory + threadIdx.x, i, right);
        if (threadIdx.x == 0)
            gshmem_putmem_signal_nbi(memory + 8, own, 16, flag, 1, GSHMEM_SIGNAL_ADD, right);
    }
    gshmem_fence();
    gshmem_quiet();
}

int main(int argc, char **argv)
{
    const int n = argc > 2 ? atoi(argv[2]) : 1;

    CHECK_OK(gshmem_init());
    const int right = (gshmem_my_pe() + 1) % gshmem_n_pes();
    uint64_t *memory = (uint64_t *)gshmem_calloc(32, 8);
    CHECK(memory);
    work<<<BLOCKS, THREADS>>>(memory, memory + 16, memory + 12, n, right);
    CHECK(cudaDeviceSynchronize() == cudaSuccess);
    CHECK_OK(gshmem_barrier_all());
    CHECK_EQ(memory[12], (uint64_t)n * BLOCKS);
    return gshmem_finalize();
}
