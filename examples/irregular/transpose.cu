/* The transpose of a sparse matrix in kernels. Each thread counts nonzeros of columns, takes a
 * place in its column for each, and puts its row there. */
#include <stdlib.h>
#include <string.h>

#include "irregular.h"

enum { ROWS = 100, NONZEROS = 8, ROOM = ROWS * NONZEROS * 4, BLOCKS = 2, THREADS = 64 };

FOR_ALL uint64_t column(uint64_t r, int k) /* where the kth nonzero of a row is */
{
    return mixed(r * NONZEROS + (uint64_t)k) % (uint64_t)(ROWS * gshmem_n_pes());
}

FOR_ALL uint64_t row_of(int i, int pe) /* the row of nonzero i of a PE */
{
    return (uint64_t)(i / NONZEROS * gshmem_n_pes() + pe);
}

__global__ void count_columns(long *count)
{
    for (int i = blockIdx.x * THREADS + threadIdx.x; i < ROWS * NONZEROS; i += BLOCKS * THREADS) {
        const uint64_t c = column(row_of(i, gshmem_my_pe()), i % NONZEROS);
        gshmem_long_atomic_inc(&count[place(c)], home(c));
    }
}

__global__ void put_rows(const long *first, long *taken, long *row)
{
    for (int i = blockIdx.x * THREADS + threadIdx.x; i < ROWS * NONZEROS; i += BLOCKS * THREADS) {
        const uint64_t r = row_of(i, gshmem_my_pe()), c = column(r, i % NONZEROS);
        const long at = gshmem_long_g(&first[place(c)], home(c)) +
                        gshmem_long_atomic_fetch_inc(&taken[place(c)], home(c));
        gshmem_long_p(&row[at], (long)r, home(c));
    }
}

static int compare(const void *a, const void *b)
{
    return (*(const long *)a > *(const long *)b) - (*(const long *)a < *(const long *)b);
}

int main()
{
    static long expected[ROWS][ROWS], found[ROWS], counts[ROWS], firsts[ROWS + 1], rows[ROOM];

    if (begin())
        return 1;
    long *count = (long *)gshmem_calloc(ROWS, sizeof *count); /* of this PE's columns */
    long *first = (long *)gshmem_calloc(ROWS + 1, sizeof *first);
    long *taken = (long *)gshmem_calloc(ROWS, sizeof *taken);
    long *row = (long *)gshmem_calloc(ROOM, sizeof *row);
    count_columns<<<BLOCKS, THREADS>>>(count);
    long wrong = cudaDeviceSynchronize() != cudaSuccess;
    barrier(); /* completes what kernels of all PEs have issued */
    wrong += cudaMemcpy(counts, count, sizeof counts, cudaMemcpyDefault) != cudaSuccess;
    for (int c = 0; c < ROWS; c++)
        firsts[c + 1] = firsts[c] + counts[c];
    wrong += cudaMemcpy(first, firsts, sizeof firsts, cudaMemcpyDefault) != cudaSuccess;
    barrier();
    put_rows<<<BLOCKS, THREADS>>>(first, taken, row);
    wrong += cudaDeviceSynchronize() != cudaSuccess;
    barrier();

    wrong += cudaMemcpy(rows, row, sizeof rows, cudaMemcpyDefault) != cudaSuccess;
    for (uint64_t r = 0; r < (uint64_t)(ROWS * n); r++) /* in the order of rows */
        for (int k = 0; k < NONZEROS; k++)
            if (home(column(r, k)) == me && found[place(column(r, k))] < ROWS)
                expected[place(column(r, k))][found[place(column(r, k))]++] = (long)r;
    for (int c = 0; c < ROWS; c++) {
        qsort(&rows[firsts[c]], (size_t)counts[c], sizeof rows[0], compare);
        wrong += found[c] != counts[c] ||
                 memcmp(expected[c], &rows[firsts[c]], (size_t)found[c] * sizeof rows[0]) != 0;
    }
    return end("transpose", firsts[ROWS], "nonzeros of kernels", wrong);
}
