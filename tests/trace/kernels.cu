/* Kernels whose traces are known.
 *
 *     kernels WAY [N] */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <gshmem.h>

#include "check.h"

enum { BLOCKS = 3, THREADS = 2 };

/* Each thread of each block makes n puts, and thread 0 of each block a blocking one, and n puts with
 * a signal, which take two slots of a channel. */
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

/* Not in a wait for anybody. */
__device__ void compute(int ms)
{
    for (int i = 0; i < ms; i++)
        __nanosleep(1000000);
}

enum { LATE_MS = 40 };

/* Thread 0 of block 0 waits for a signal that PE 0 sends late; its other threads at a barrier behind
 * that. Block 1, if there is one, computes all the time. */
__global__ void wait_for_signal(uint64_t *flag, int pe)
{
    if (blockIdx.x == 1) {
        compute(2 * LATE_MS);
        return;
    }
    if (threadIdx.x == 0) {
        gshmem_range_push("in block 0");
        if (pe == 0) {
            compute(LATE_MS);
            gshmem_uint64_p(flag, 1, 1);
            gshmem_quiet();
        } else {
            gshmem_signal_wait_until(flag, GSHMEM_CMP_EQ, 1);
        }
        gshmem_range_pop();
    }
    __syncthreads();
}

/* PE 1 is late for a collective. */
__global__ void meet(int pe)
{
    if (pe == 1)
        compute(LATE_MS);
    gshmem_barrier_all_block();
}

static void compute_on_host(int ms)
{
    const struct timespec time = {0, ms * 1000000};

    nanosleep(&time, NULL);
}

static void check_launch(void)
{
    CHECK(cudaGetLastError() == cudaSuccess);
    CHECK(cudaDeviceSynchronize() == cudaSuccess);
}

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "operations";
    const int n = argc > 2 ? atoi(argv[2]) : 1;

    CHECK_OK(gshmem_init());
    const int me = gshmem_my_pe(), right = (me + 1) % gshmem_n_pes();
    uint64_t *memory = (uint64_t *)gshmem_calloc(32, 8);
    CHECK(memory);
    if (strcmp(way, "operations") == 0) {
        work<<<BLOCKS, THREADS>>>(memory, memory + 16, memory + 12, n, right);
    } else if (strcmp(way, "meet") == 0) {
        meet<<<1, THREADS>>>(me);
    } else {
        wait_for_signal<<<strcmp(way, "beside") == 0 ? 2 : 1, THREADS>>>(memory, me);
        if (strcmp(way, "host") == 0)
            compute_on_host(2 * LATE_MS);
    }
    check_launch();
    CHECK_OK(gshmem_barrier_all());
    if (strcmp(way, "operations") == 0)
        CHECK_EQ(memory[12], (uint64_t)n * BLOCKS);
    return gshmem_finalize();
}
