/* Breadth-first search in kernels, as in Graph500: a Kronecker graph by its public specification
 * (0.57, 0.19, 0.19, 0.05; 16 edges for each vertex), a tree of parents, and its validation. */
#include "irregular.h"

enum { SCALE = 7, VERTICES = 1 << SCALE, EDGES = 16 * VERTICES, FAR = VERTICES };
enum { BLOCKS = 2, THREADS = 64 };

/* An end of an edge: for each bit, in which quarter of the matrix? Then labels are exchanged. */
FOR_ALL int end_of(int e, int which)
{
    int v = 0;

    for (int bit = 0; bit < SCALE; bit++) {
        const uint64_t x = mixed((uint64_t)(e * SCALE + bit)) % 100;
        v = v << 1 | (which ? (x >= 57 && x < 76) || x >= 95 : x >= 76);
    }
    return (v * 87 + 13) % VERTICES; /* a permutation, as 87 is odd */
}

/* This PE's vertices of this depth claim the other ends of their edges. */
__global__ void follow(long *parent, long *depth, long *found, long level)
{
    for (int i = blockIdx.x * THREADS + threadIdx.x; i < 2 * EDGES; i += BLOCKS * THREADS) {
        const int v = end_of(i / 2, i % 2);
        const uint64_t w = (uint64_t)end_of(i / 2, !(i % 2)), at = place(w);
        if (home((uint64_t)v) != gshmem_my_pe() || /* others may give v a depth meanwhile */
            gshmem_long_atomic_fetch(&depth[place((uint64_t)v)], gshmem_my_pe()) != level ||
            gshmem_long_atomic_compare_swap(&parent[at], 0, v + 1, home(w)))
            continue;
        gshmem_long_atomic_set(&depth[at], level + 1, home(w));
        gshmem_long_atomic_inc(found, gshmem_my_pe());
    }
}

int main()
{
    static long serial[VERTICES], depths[VERTICES], tree[VERTICES], has_edge[VERTICES], one;
    long wrong = 0, reached = 0, all = 0, before = -1;

    if (begin())
        return 1;
    long *parent = (long *)gshmem_calloc(VERTICES, sizeof *parent); /* 1 + the parent, or 0 */
    long *depth = (long *)gshmem_calloc(VERTICES, sizeof *depth);   /* of this PE's vertices */
    long *found = (long *)gshmem_calloc(1, sizeof *found);
    const int root = end_of(0, 0);
    for (int i = 0; i < VERTICES; i++)
        serial[i] = depths[i] = FAR;
    if (home((uint64_t)root) == me) {
        depths[place((uint64_t)root)] = 0;
        one = root + 1;
        wrong += cudaMemcpy(&parent[place((uint64_t)root)], &one, sizeof one, cudaMemcpyDefault) !=
                 cudaSuccess;
    }
    wrong += cudaMemcpy(depth, depths, sizeof depths, cudaMemcpyDefault) != cudaSuccess;
    barrier();
    for (long level = 0; all != before; level++) {
        follow<<<BLOCKS, THREADS>>>(parent, depth, found, level);
        wrong += cudaDeviceSynchronize() != cudaSuccess;
        barrier(); /* completes what kernels of all PEs have issued */
        wrong += cudaMemcpy(&one, found, sizeof one, cudaMemcpyDefault) != cudaSuccess;
        before = all;
        all = sum_of(one);
    }

    serial[root] = 0; /* depths by a serial run; and for each vertex: is its tree edge an edge? */
    for (int v = 0; v < VERTICES; v++)
        tree[v] = gshmem_long_g(&parent[place((uint64_t)v)], home((uint64_t)v)) - 1;
    for (int i = 0; i < 2 * EDGES * VERTICES; i++) {
        const int e = i / 2 % EDGES, v = end_of(e, i % 2), w = end_of(e, !(i % 2));
        serial[w] = serial[v] + 1 < serial[w] ? serial[v] + 1 : serial[w];
        has_edge[v] |= tree[v] == w;
    }
    wrong += cudaMemcpy(depths, depth, sizeof depths, cudaMemcpyDefault) != cudaSuccess;
    for (int v = me; v < VERTICES; v += n) {
        reached += tree[v] >= 0;
        wrong += depths[place((uint64_t)v)] != serial[v] || (tree[v] >= 0) != (serial[v] < FAR) ||
                 (tree[v] >= 0 && v != root && (!has_edge[v] || serial[tree[v]] != serial[v] - 1));
    }
    return end("bfs", reached, "vertices reached by kernels", wrong);
}
