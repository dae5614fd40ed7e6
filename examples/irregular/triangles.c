/* Counts the triangles of a graph. Each vertex knows its neighbors with smaller numbers, in order;
 * an edge's PE gets the list of the other end, and counts the neighbors that both have. */
#include "irregular.h"

enum { VERTICES = 100, MOST = 40 }; /* of each PE; neighbors of a vertex */

struct vertex {
    int neighbors;
    int neighbor[MOST];
};

static struct vertex vertex[VERTICES]; /* this PE's */

static int is_edge(long v, long w)
{
    return v - w < 60 && mixed((uint64_t)(v << 24 | w)) % 3 == 0;
}

static long common(const struct vertex *a, const struct vertex *b)
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
    for (long w = v < 60 ? 0 : v - 60; w < v && at->neighbors < MOST; w++)
        if (is_edge(v, w))
            at->neighbor[at->neighbors++] = (int)w;
}

int main(void)
{
    static struct vertex all[VERTICES * 64];
    struct vertex other;
    long triangles = 0, expected = 0;

    if (begin())
        return 1;
    for (long v = me; v < (long)VERTICES * n; v += n)
        find_neighbors(&vertex[place((uint64_t)v)], v);
    barrier();
    for (int i = 0; i < VERTICES; i++)
        for (int k = 0; k < vertex[i].neighbors; k++) {
            const uint64_t w = (uint64_t)vertex[i].neighbor[k];
            gshmem_raise(gshmem_getmem(&other, &vertex[place(w)], sizeof other, home(w)));
            triangles += common(&vertex[i], &other);
        }
    barrier();

    for (long v = 0; n <= 64 && v < (long)VERTICES * n; v++)
        find_neighbors(&all[v], v);
    for (long v = 0; n <= 64 && v < (long)VERTICES * n; v++)
        for (int k = 0; home((uint64_t)v) == me && k < all[v].neighbors; k++)
            expected += common(&all[v], &all[all[v].neighbor[k]]);
    return end("triangles", triangles, "triangles", n <= 64 && triangles != expected);
}
