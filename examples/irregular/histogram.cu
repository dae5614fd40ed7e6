/* Histogram in a kernel: each thread adds to random places of a table that is spread over all
 * PEs. */
#include "irregular.h"

enum { TABLE = 1000, UPDATES = 8192, BLOCKS = 2, THREADS = 64 };

FOR_ALL uint64_t drawn(int pe, int i)
{
    return mixed((uint64_t)pe << 32 | (uint64_t)i) % (uint64_t)(TABLE * gshmem_n_pes());
}

__global__ void update(long *table)
{
    for (int i = blockIdx.x * THREADS + threadIdx.x; i < UPDATES; i += BLOCKS * THREADS) {
        const uint64_t at = drawn(gshmem_my_pe(), i);
        gshmem_long_atomic_add(&table[place(at)], 1, home(at));
    }
}

int main()
{
    static long expected[TABLE], result[TABLE];

    if (begin())
        return 1;
    long *table = (long *)gshmem_calloc(TABLE, sizeof *table);
    update<<<BLOCKS, THREADS>>>(table);
    long wrong = !table || cudaDeviceSynchronize() != cudaSuccess;
    barrier(); /* completes what kernels of all PEs have issued */

    wrong += cudaMemcpy(result, table, sizeof result, cudaMemcpyDefault) != cudaSuccess;
    for (int pe = 0; pe < n; pe++)
        for (int i = 0; i < UPDATES; i++)
            if (home(drawn(pe, i)) == me)
                expected[place(drawn(pe, i))]++;
    for (int i = 0; i < TABLE; i++)
        wrong += result[i] != expected[i];
    gshmem_raise(gshmem_free(table));
    return end("histogram", UPDATES, "updates of kernels", wrong);
}
