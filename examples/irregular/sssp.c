/* Shortest paths from vertex 0: a vertex that has become nearer tells its neighbors, until none
 * does. A distance is lowered by compare_swap, as other PEs may lower it at the same time. */
#include "irregular.h"

enum { VERTICES = 200, EDGES = 5, FAR = 1 << 30 }; /* of each PE; of a vertex */

static long distance[VERTICES]; /* of this PE's vertices */
static long told[VERTICES];     /* the distance that its neighbors know */

static uint64_t edge(uint64_t v, int k)
{
    return mixed(v * EDGES + (uint64_t)k) % (uint64_t)(VERTICES * n);
}

static long length(uint64_t v, int k)
{
    return 1 + (long)(mixed(~(v * EDGES + (uint64_t)k)) % 100);
}

static void lower(uint64_t v, long to)
{
    long *at = &distance[place(v)];
    long seen = gshmem_long_atomic_fetch(at, home(v));

    while (to < seen) {
        const long was = gshmem_long_atomic_compare_swap(at, seen, to, home(v));
        if (was == seen)
            break;
        seen = was;
    }
}

int main(void)
{
    static long expected[VERTICES * 64];
    const uint64_t all = VERTICES;
    long wrong = 0, nearer = 1;

    if (begin())
        return 1;
    for (int i = 0; i < VERTICES; i++)
        distance[i] = told[i] = i || me ? FAR : 0;
    told[0] = FAR;
    barrier();
    while (sum_of(nearer)) {
        nearer = 0;
        for (uint64_t i = 0; i < all; i++) {
            const uint64_t v = i * (uint64_t)n + (uint64_t)me;
            const long now = gshmem_long_atomic_fetch(&distance[i], me);
            for (int k = 0; now < told[i] && k < EDGES; k++)
                lower(edge(v, k), now + length(v, k));
            nearer += now < told[i];
            told[i] = now;
        }
        barrier();
    }

    for (uint64_t v = 0; v < all * (uint64_t)n && n <= 64; v++)
        expected[v] = v ? FAR : 0;
    for (int changed = n <= 64; changed;) {
        changed = 0;
        for (uint64_t v = 0; v < all * (uint64_t)n; v++)
            for (int k = 0; k < EDGES; k++)
                if (expected[v] + length(v, k) < expected[edge(v, k)]) {
                    expected[edge(v, k)] = expected[v] + length(v, k);
                    changed = 1;
                }
    }
    for (uint64_t i = 0; i < all && n <= 64; i++)
        wrong += distance[i] != expected[i * (uint64_t)n + (uint64_t)me];
    return end("sssp", VERTICES, "vertices", wrong);
}
