/* A topological order of a directed graph without cycles: rounds remove the vertices that no edge
 * leads to any more. A vertex's level is its round; edges lead to higher levels. */
#include "irregular.h"

enum { VERTICES = 500, EDGES = 6 }; /* of each PE; of a vertex */

static long in_edges[VERTICES]; /* of this PE's vertices, from vertices that are not removed */
static int level[VERTICES];     /* 0: not removed yet */

/* The kth edge leads to a larger number; -1: there is none. */
static long edge(long v, int k)
{
    const long to = v + 1 + (long)(mixed((uint64_t)(v * EDGES + k)) % 200);

    return to < (long)VERTICES * n ? to : -1;
}

int main(void)
{
    static int expected[VERTICES * 64];
    long wrong = 0, left = VERTICES;

    if (begin())
        return 1;
    barrier();
    for (long v = me; v < (long)VERTICES * n; v += n)
        for (int k = 0; k < EDGES; k++)
            if (edge(v, k) >= 0)
                gshmem_raise(gshmem_long_atomic_inc(&in_edges[place((uint64_t)edge(v, k))],
                                                    home((uint64_t)edge(v, k))));
    for (int round = 1; sum_of(left); round++) {
        barrier(); /* what the round before has removed is known */
        static int removed[VERTICES];
        int count = 0;
        for (int i = 0; i < VERTICES; i++)
            if (!level[i] && !in_edges[i]) {
                level[i] = round;
                removed[count++] = i;
            }
        barrier(); /* all have looked */
        for (int i = 0; i < count; i++)
            for (int k = 0; k < EDGES; k++) {
                const long to = edge((long)removed[i] * n + me, k);
                if (to >= 0)
                    gshmem_raise(gshmem_long_atomic_add(&in_edges[place((uint64_t)to)], -1,
                                                        home((uint64_t)to)));
            }
        left -= count;
    }

    for (long v = 0; n <= 64 && v < (long)VERTICES * n; v++) { /* the longest way to each vertex */
        expected[v] += !expected[v];
        for (int k = 0; k < EDGES; k++)
            if (edge(v, k) >= 0 && expected[edge(v, k)] <= expected[v])
                expected[edge(v, k)] = expected[v] + 1;
        wrong += home((uint64_t)v) == me && level[place((uint64_t)v)] != expected[v];
    }
    return end("toposort", VERTICES, "vertices", wrong);
}
