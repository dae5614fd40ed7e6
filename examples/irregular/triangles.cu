/* Counts the triangles of a graph in a kernel. A thread has an edge; it gets the list of the other
 * end's neighbors, and counts those that both ends have. */
#include "irregular.h"

enum { VERTICES = 50, MOST = 40, NEAR = 60, BLOCKS = 2, THREADS = 64 }; /* VERTICES of each PE */

struct vertex {
    int neighbors;
    int neighbor[MOST]; /* with smaller numbers, in order */
};

static int is_edge(long v, long w)
{
    return v - w < NEAR && mixed((uint64_t)(v << 24 | w)) % 3 == 0;
}

FOR_ALL long common(const struct vertex *a, const struct vertex *b)
{
    long both = 0;

    for (int i = 0, k = 0; i < a->neighbors && k < b->neighbors;) {
        both += a->neighbor[i] == b->neighbor[k];
        if (a->neighbor[i] <= b->neighbor[k])
            i++;
        else
            k++;
    }
    return both;
}

static void find_neighbors(struct vertex *at, long v)
{
    at->neighbors = 0;
    for (long w = v < NEAR ? 0 : v - NEAR; w < v && at->neighbors < MOST; w++)
        if (is_edge(v, w))
            at->neighbor[at->neighbors++] = (int)w;
}

__global__ void count_common(const struct vertex *vertex, struct vertex *other, long *triangles)
{
    const int thread = blockIdx.x * THREADS + threadIdx.x;
    long mine = 0;

    for (int i = thread; i < VERTICES * MOST; i += BLOCKS * THREADS) {
        const struct vertex *v = &vertex[i / MOST];
        if (i % MOST < v->neighbors) {
            const uint64_t w = (uint64_t)v->neighbor[i % MOST];
            gshmem_getmem(&other[thread], &vertex[place(w)], sizeof *other, home(w));
            mine += common(v, &other[thread]);
        }
    }
    gshmem_long_atomic_add(triangles, mine, gshmem_my_pe());
}

int main()
{
    static struct vertex mine[VERTICES], all[VERTICES * 64];
    long found = 0, expected = 0;

    if (begin())
        return 1;
    struct vertex *vertex = (struct vertex *)gshmem_malloc(sizeof mine);
    struct vertex *other = (struct vertex *)gshmem_malloc(BLOCKS * THREADS * sizeof *other);
    long *triangles = (long *)gshmem_calloc(1, sizeof *triangles);
    for (long v = me; v < (long)VERTICES * n; v += n)
        find_neighbors(&mine[place((uint64_t)v)], v);
    long wrong = cudaMemcpy(vertex, mine, sizeof mine, cudaMemcpyDefault) != cudaSuccess;
    barrier();
    count_common<<<BLOCKS, THREADS>>>(vertex, other, triangles);
    wrong += cudaDeviceSynchronize() != cudaSuccess;
    barrier(); /* completes what kernels of all PEs have issued */
    wrong += cudaMemcpy(&found, triangles, sizeof found, cudaMemcpyDefault) != cudaSuccess;

    for (long v = 0; n <= 64 && v < (long)VERTICES * n; v++)
        find_neighbors(&all[v], v);
    for (long v = 0; n <= 64 && v < (long)VERTICES * n; v++)
        for (int k = 0; home((uint64_t)v) == me && k < all[v].neighbors; k++)
            expected += common(&all[v], &all[all[v].neighbor[k]]);
    return end("triangles", found, "triangles of kernels", wrong + (n <= 64 && found != expected));
}
