/* PageRank in kernels: in each round a block adds the gifts of its vertices to those that their
 * edges lead to, by one call. */
#include <math.h>

#include "irregular.h"

enum { VERTICES = 128, EDGES = 8, ALL = VERTICES * EDGES, ROUNDS = 5, THREADS = 64 };

FOR_ALL uint64_t edge(uint64_t v, int k)
{
    return mixed(v * EDGES + (uint64_t)k) % (uint64_t)(VERTICES * gshmem_n_pes());
}

__global__ void give(double *given, const double *rank, double *gift, size_t *index, int *pes)
{
    for (int i = threadIdx.x; i < ALL; i += THREADS) {
        const uint64_t v = (uint64_t)(i / EDGES * gshmem_n_pes() + gshmem_my_pe());
        gift[i] = rank[i / EDGES] / EDGES;
        index[i] = place(edge(v, i % EDGES));
        pes[i] = home(edge(v, i % EDGES));
    }
    gshmem_double_ix_add_pes_block(given, gift, index, pes, ALL);
}

__global__ void take(double *given, double *rank)
{
    const int all = VERTICES * gshmem_n_pes();

    for (int i = threadIdx.x; i < VERTICES; i += THREADS) {
        rank[i] = 0.15 / all + 0.85 * given[i];
        given[i] = 0;
    }
}

int main()
{
    static double expected[VERTICES * 64], next[VERTICES * 64], result[VERTICES];

    if (begin())
        return 1;
    const int all = VERTICES * n;
    double *given = (double *)gshmem_calloc(VERTICES, sizeof *given);
    double *rank = (double *)gshmem_calloc(VERTICES, sizeof *rank);
    double *gift = (double *)gshmem_calloc(ALL, sizeof *gift);
    size_t *index = (size_t *)gshmem_calloc(ALL, sizeof *index);
    int *pes = (int *)gshmem_calloc(ALL, sizeof *pes);
    for (int v = 0; v < VERTICES * 64 && v < all; v++)
        expected[v] = 1.0 / all;
    long wrong = cudaMemcpy(rank, expected, sizeof result, cudaMemcpyDefault) != cudaSuccess;
    for (int round = 0; round < ROUNDS; round++) {
        barrier();
        give<<<1, THREADS>>>(given, rank, gift, index, pes);
        wrong += cudaDeviceSynchronize() != cudaSuccess;
        barrier(); /* completes what kernels of all PEs have issued */
        take<<<1, THREADS>>>(given, rank);
        wrong += cudaDeviceSynchronize() != cudaSuccess;
    }

    wrong += cudaMemcpy(result, rank, sizeof result, cudaMemcpyDefault) != cudaSuccess;
    for (int round = 0; n <= 64 && round < ROUNDS; round++) {
        for (int v = 0; v < all; v++)
            next[v] = 0.15 / all;
        for (int v = 0; v < all; v++)
            for (int k = 0; k < EDGES; k++)
                next[edge((uint64_t)v, k)] += 0.85 * expected[v] / EDGES;
        for (int v = 0; v < all; v++)
            expected[v] = next[v];
    }
    for (int i = 0; n <= 64 && i < VERTICES; i++) /* sums in another order differ a little */
        wrong += fabs(result[i] - expected[i * n + me]) > 1e-12;
    return end("pagerank", VERTICES, "vertices of kernels", wrong);
}
