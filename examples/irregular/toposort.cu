/* A topological order in kernels: in each round a kernel finds the vertices that no edge leads to
 * any more, and another removes their edges. A vertex's level is its round. */
#include "irregular.h"

enum { VERTICES = 200, EDGES = 6, REACH = 80 }; /* of each PE; of a vertex */
enum { BLOCKS = 2, THREADS = 64 };

/* The kth edge leads to a larger number; -1: there is none. */
FOR_ALL long edge(long v, int k)
{
    const long to = v + 1 + (long)(mixed((uint64_t)(v * EDGES + k)) % REACH);

    return to < (long)VERTICES * gshmem_n_pes() ? to : -1;
}

/* Adds to the vertices that this PE's vertices of a level lead to. */
__global__ void add_to_next(long *in_edges, const int *level, int round, long what)
{
    for (int i = blockIdx.x * THREADS + threadIdx.x; i < VERTICES * EDGES; i += BLOCKS * THREADS) {
        const int v = i / EDGES;
        const long to = edge((long)v * gshmem_n_pes() + gshmem_my_pe(), i % EDGES);
        if (level[v] == round && to >= 0)
            gshmem_long_atomic_add(&in_edges[place((uint64_t)to)], what, home((uint64_t)to));
    }
}

__global__ void find_next(const long *in_edges, int *level, int round)
{
    for (int i = blockIdx.x * THREADS + threadIdx.x; i < VERTICES; i += BLOCKS * THREADS)
        if (!level[i] && !in_edges[i])
            level[i] = round;
}

int main()
{
    static int expected[VERTICES * 64], levels[VERTICES];
    long wrong = 0, left = VERTICES;

    if (begin())
        return 1;
    long *in_edges = (long *)gshmem_calloc(VERTICES, sizeof *in_edges); /* from vertices left */
    int *level = (int *)gshmem_calloc(VERTICES, sizeof *level);         /* 0: not removed yet */
    add_to_next<<<BLOCKS, THREADS>>>(in_edges, level, 0, 1);
    wrong += cudaDeviceSynchronize() != cudaSuccess;
    for (int round = 1; sum_of(left) && !sum_of(wrong); round++) {
        barrier(); /* completes what kernels of all PEs have issued */
        find_next<<<BLOCKS, THREADS>>>(in_edges, level, round);
        wrong += cudaDeviceSynchronize() != cudaSuccess;
        barrier(); /* all have looked */
        add_to_next<<<BLOCKS, THREADS>>>(in_edges, level, round, -1);
        wrong += cudaMemcpy(levels, level, sizeof levels, cudaMemcpyDefault) != cudaSuccess;
        left = 0;
        for (int i = 0; i < VERTICES; i++)
            left += !levels[i];
    }

    for (long v = 0; n <= 64 && v < (long)VERTICES * n; v++) { /* the longest way to each vertex */
        expected[v] += !expected[v];
        for (int k = 0; k < EDGES; k++)
            if (edge(v, k) >= 0 && expected[edge(v, k)] <= expected[v])
                expected[edge(v, k)] = expected[v] + 1;
        wrong += home((uint64_t)v) == me && levels[place((uint64_t)v)] != expected[v];
    }
    gshmem_raise(gshmem_free(level));
    gshmem_raise(gshmem_free(in_edges));
    return end("toposort", VERTICES, "vertices of kernels", wrong);
}
