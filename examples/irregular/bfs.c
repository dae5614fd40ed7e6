/* Breadth-first search as in Graph500: a Kronecker graph by its public specification (initiator
 * 0.57, 0.19, 0.19, 0.05; 16 edges for each vertex), a tree of parents, and its validation. */
#include "irregular.h"

enum { SCALE = 8, VERTICES = 1 << SCALE, EDGES = 16 * VERTICES, FAR = VERTICES };

static long parent[VERTICES], depth[VERTICES]; /* 1 + the parent, or 0; of this PE's vertices */
static int end_of[EDGES][2];                   /* all edges, on each PE; it follows its vertices' */

/* For each bit of the two ends: in which quarter of the matrix. Then labels are exchanged. */
static void generate(void)
{
    for (int e = 0; e < EDGES; e++) {
        int v = 0, w = 0;
        for (int bit = 0; bit < SCALE; bit++) {
            const uint64_t x = mixed((uint64_t)(e * SCALE + bit)) % 100;
            v = v << 1 | (x >= 76);
            w = w << 1 | ((x >= 57 && x < 76) || x >= 95);
        }
        end_of[e][0] = (v * 167 + 13) % VERTICES; /* a permutation, as 167 is odd */
        end_of[e][1] = (w * 167 + 13) % VERTICES;
    }
}

/* This PE's vertex v of this depth claims w. */
static long follow(int v, int w, long level)
{
    const uint64_t at = place((uint64_t)w);

    /* others may give v a depth meanwhile */
    if (home((uint64_t)v) != me ||
        gshmem_long_atomic_fetch(&depth[place((uint64_t)v)], me) != level ||
        gshmem_long_atomic_compare_swap(&parent[at], 0, v + 1, home((uint64_t)w)))
        return 0;
    gshmem_raise(gshmem_long_atomic_set(&depth[at], level + 1, home((uint64_t)w)));
    return 1;
}

int main(void)
{
    static long serial[VERTICES], tree[VERTICES], has_edge[VERTICES];
    long wrong = 0, reached = 0, found = 1;

    if (begin())
        return 1;
    generate();
    const int root = end_of[0][0];
    for (int i = 0; i < VERTICES; i++)
        serial[i] = depth[i] = FAR;
    if (home((uint64_t)root) == me) {
        parent[place((uint64_t)root)] = root + 1;
        depth[place((uint64_t)root)] = 0;
    }
    for (long level = 0; sum_of(found); level++) {
        barrier();
        found = 0;
        for (int e = 0; e < EDGES; e++)
            found += follow(end_of[e][0], end_of[e][1], level) +
                     follow(end_of[e][1], end_of[e][0], level);
        barrier();
    }

    serial[root] = 0; /* depths by a serial run; and for each vertex: is its tree edge an edge? */
    for (int round = 0; round < VERTICES; round++)
        for (int e = 0; e < EDGES; e++)
            for (int k = 0; k < 2; k++)
                if (serial[end_of[e][k]] + 1 < serial[end_of[e][!k]])
                    serial[end_of[e][!k]] = serial[end_of[e][k]] + 1;
    for (int v = 0; v < VERTICES; v++)
        tree[v] = gshmem_long_g(&parent[place((uint64_t)v)], home((uint64_t)v)) - 1;
    for (int e = 0; e < EDGES; e++)
        for (int k = 0; k < 2; k++)
            has_edge[end_of[e][k]] |= tree[end_of[e][k]] == end_of[e][!k];
    for (int v = me; v < VERTICES; v += n) {
        reached += tree[v] >= 0;
        wrong += depth[place((uint64_t)v)] != serial[v] || (tree[v] >= 0) != (serial[v] < FAR) ||
                 (tree[v] >= 0 && v != root && (!has_edge[v] || serial[tree[v]] != serial[v] - 1));
    }
    return end("bfs", reached, "vertices reached", wrong);
}
