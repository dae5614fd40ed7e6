/* How do many threads update memory of all PEs at random places? Each draws places in a table that
 * lies on all PEs, and changes them by atomic exclusive-or, as the RandomAccess benchmark does.
 * Done twice, the same updates undo each other: then every value is what it was. */
#include <gshmem.h>
#include <stdio.h>
#include <stdlib.h>

enum { VALUES = 1 << 12, BLOCKS = 4, THREADS = 64, UPDATES = 32 }; /* of each PE; of each thread */

static __device__ uint64_t draw(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    return *state ^= *state << 17;
}

__global__ void start(uint64_t *table)
{
    for (int i = blockIdx.x * THREADS + threadIdx.x; i < VALUES; i += BLOCKS * THREADS)
        table[i] = (uint64_t)i;
}

__global__ void update(uint64_t *table)
{
    int n = gshmem_n_pes(), thread = blockIdx.x * THREADS + threadIdx.x;
    uint64_t state = 88172645463325252u + 7919u * (gshmem_my_pe() * BLOCKS * THREADS + thread);

    for (int i = 0; i < UPDATES; i++) {
        uint64_t value = draw(&state), place = value >> 20;
        gshmem_uint64_atomic_xor(&table[place / n % VALUES], value, (int)(place % n));
    }
}

int main()
{
    static int wrong, all_wrong, untouched;
    static uint64_t result[VALUES];

    if (gshmem_init())
        return 1;
    int me = gshmem_my_pe(), n = gshmem_n_pes();
    uint64_t *table = (uint64_t *)gshmem_malloc(VALUES * sizeof *table);
    cudaEvent_t begin, end;
    float ms = 0;
    if (!table || cudaEventCreate(&begin) || cudaEventCreate(&end))
        return 1;

    start<<<BLOCKS, THREADS>>>(table);
    for (int round = 0; round < 2; round++) {
        cudaDeviceSynchronize();
        gshmem_barrier_all(); /* completes what kernels of all PEs have issued */
        if (round == 1) {     /* halfway: have they done anything at all? */
            cudaMemcpy(result, table, sizeof result, cudaMemcpyDefault);
            for (int i = 0; i < VALUES; i++)
                untouched += result[i] == (uint64_t)i;
            gshmem_barrier_all();
        }
        cudaEventRecord(begin);
        update<<<BLOCKS, THREADS>>>(table);
        cudaEventRecord(end);
    }
    wrong = cudaDeviceSynchronize() != cudaSuccess || untouched == VALUES;
    gshmem_barrier_all();
    cudaEventElapsedTime(&ms, begin, end);

    wrong += cudaMemcpy(result, table, sizeof result, cudaMemcpyDefault) != cudaSuccess;
    for (int i = 0; i < VALUES; i++)
        wrong += result[i] != (uint64_t)i;
    gshmem_int_sum_reduce(GSHMEM_TEAM_WORLD, &all_wrong, &wrong, 1);
    if (me == 0)
        printf("gups: %d PEs made %.3f million updates a second each: %s\n", n,
               BLOCKS * THREADS * UPDATES / (1e3 * ms), all_wrong ? "wrong" : "right");
    cudaEventDestroy(end);
    cudaEventDestroy(begin);
    gshmem_raise(gshmem_free(table));
    return gshmem_finalize() || all_wrong;
}
