/* Index gather in a kernel: the threads of a block read random places of a table that is spread
 * over all PEs, by one call for all of them. */
#include "irregular.h"

enum { TABLE = 1000, READS = 4096, BLOCKS = 2, THREADS = 64 };

FOR_ALL long value_of(uint64_t i)
{
    return (long)(mixed(i) >> 1);
}

__global__ void fill(long *table, size_t *index, int *pes)
{
    const int first = blockIdx.x * THREADS + threadIdx.x;

    for (int i = first; i < TABLE; i += BLOCKS * THREADS)
        table[i] = value_of((uint64_t)(i * gshmem_n_pes() + gshmem_my_pe()));
    for (int i = first; i < READS; i += BLOCKS * THREADS) {
        const uint64_t at = mixed((uint64_t)gshmem_my_pe() << 32 | (uint64_t)i) %
                            (uint64_t)(TABLE * gshmem_n_pes());
        index[i] = place(at);
        pes[i] = home(at);
    }
}

__global__ void gather(long *got, const long *table, const size_t *index, const int *pes)
{
    const int part = READS / BLOCKS, from = blockIdx.x * part;

    gshmem_long_ixget_pes_block(got + from, table, index + from, pes + from, part);
}

int main()
{
    static long result[READS];

    if (begin())
        return 1;
    long *table = (long *)gshmem_malloc(TABLE * sizeof *table);
    long *got = (long *)gshmem_malloc(READS * sizeof *got);
    size_t *index = (size_t *)gshmem_malloc(READS * sizeof *index);
    int *pes = (int *)gshmem_malloc(READS * sizeof *pes);
    fill<<<BLOCKS, THREADS>>>(table, index, pes);
    long wrong = cudaDeviceSynchronize() != cudaSuccess;
    barrier();
    gather<<<BLOCKS, THREADS>>>(got, table, index, pes);
    wrong += cudaDeviceSynchronize() != cudaSuccess;
    barrier();

    wrong += cudaMemcpy(result, got, sizeof result, cudaMemcpyDefault) != cudaSuccess;
    for (int i = 0; i < READS; i++)
        wrong += result[i] !=
                 value_of(mixed((uint64_t)me << 32 | (uint64_t)i) % (uint64_t)(TABLE * n));
    gshmem_raise(gshmem_free(pes));
    gshmem_raise(gshmem_free(index));
    gshmem_raise(gshmem_free(got));
    gshmem_raise(gshmem_free(table));
    return end("gather", READS, "reads of kernels", wrong);
}
