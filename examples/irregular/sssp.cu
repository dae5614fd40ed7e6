/* Shortest paths from vertex 0 in kernels: in each round, the edges of vertices that have become
 * nearer lower the distances that they lead to. Other threads may lower one at the same time. */
#include "irregular.h"

enum { VERTICES = 100, EDGES = 5, FAR = 1 << 30, BLOCKS = 2, THREADS = 64 }; /* of each PE */

FOR_ALL uint64_t edge(uint64_t v, int k)
{
    return mixed(v * EDGES + (uint64_t)k) % (uint64_t)(VERTICES * gshmem_n_pes());
}

FOR_ALL long length(uint64_t v, int k)
{
    return 1 + (long)(mixed(~(v * EDGES + (uint64_t)k)) % 100);
}

/* What this PE's vertices tell in this round, and whether it is news. */
__global__ void look(long *distance, long *told, long *now)
{
    for (int i = blockIdx.x * THREADS + threadIdx.x; i < VERTICES; i += BLOCKS * THREADS) {
        now[i] = distance[i] < told[i] ? distance[i] : (long)FAR;
        told[i] = distance[i];
    }
}

__global__ void lower(long *distance, const long *now)
{
    for (int i = blockIdx.x * THREADS + threadIdx.x; i < VERTICES * EDGES; i += BLOCKS * THREADS) {
        const uint64_t v = (uint64_t)(i / EDGES * gshmem_n_pes() + gshmem_my_pe());
        const uint64_t w = edge(v, i % EDGES);
        const long to = now[i / EDGES] + length(v, i % EDGES);
        long *at = &distance[place(w)], was = FAR, seen = -1;
        if (now[i / EDGES] != FAR)
            was = gshmem_long_atomic_fetch(at, home(w));
        while (to < was && was != seen) {
            seen = was;
            was = gshmem_long_atomic_compare_swap(at, seen, to, home(w));
        }
    }
}

int main()
{
    static long expected[VERTICES * 64], mine[VERTICES];
    long wrong = 0, nearer = 1;

    if (begin())
        return 1;
    long *distance = (long *)gshmem_malloc(sizeof mine), *told = (long *)gshmem_malloc(sizeof mine);
    long *now = (long *)gshmem_malloc(sizeof mine);
    for (int v = 1; v < VERTICES * 64; v++)
        expected[v] = FAR;
    wrong += cudaMemcpy(told, expected + 1, sizeof mine, cudaMemcpyDefault) != cudaSuccess;
    wrong += cudaMemcpy(distance, expected + !!me, sizeof mine, cudaMemcpyDefault) != cudaSuccess;
    while (sum_of(nearer) && !sum_of(wrong)) {
        barrier(); /* all have told */
        look<<<BLOCKS, THREADS>>>(distance, told, now);
        wrong += cudaMemcpy(mine, now, sizeof mine, cudaMemcpyDefault) != cudaSuccess;
        nearer = 0;
        for (int i = 0; i < VERTICES; i++)
            nearer += mine[i] != FAR;
        barrier(); /* all have looked */
        lower<<<BLOCKS, THREADS>>>(distance, now);
        wrong += cudaDeviceSynchronize() != cudaSuccess;
    }

    wrong += cudaMemcpy(mine, distance, sizeof mine, cudaMemcpyDefault) != cudaSuccess;
    for (bool changed = n <= 64; changed;) {
        changed = false;
        for (int i = 0; i < VERTICES * n * EDGES; i++) {
            const uint64_t v = (uint64_t)(i / EDGES), w = edge(v, i % EDGES);
            const long to = expected[v] + length(v, i % EDGES);
            changed |= to < expected[w];
            expected[w] = to < expected[w] ? to : expected[w];
        }
    }
    for (int i = 0; i < VERTICES && n <= 64; i++)
        wrong += mine[i] != expected[i * n + me];
    return end("sssp", VERTICES, "vertices of kernels", wrong);
}
