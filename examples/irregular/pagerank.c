/* PageRank: in each round a vertex gives its rank to those that its edges lead to, in equal parts.
 * All gifts of a round are one call for each PE's vertices. */
#include <math.h>

#include "irregular.h"

enum { VERTICES = 300, EDGES = 8, ROUNDS = 10 }; /* of each PE; of a vertex */

static double given[VERTICES]; /* to this PE's vertices in this round */
static double rank[VERTICES];
static double gift[VERTICES * EDGES];
static size_t index_of[VERTICES * EDGES];
static int pe_of[VERTICES * EDGES];

static uint64_t edge(uint64_t v, int k)
{
    return mixed(v * EDGES + (uint64_t)k) % (uint64_t)(VERTICES * n);
}

int main(void)
{
    static double expected[VERTICES * 64], next[VERTICES * 64];
    long wrong = 0;

    if (begin())
        return 1;
    const int all = VERTICES * n;
    for (int i = 0; i < VERTICES; i++) {
        rank[i] = 1.0 / all;
        for (int k = 0; k < EDGES; k++) {
            const uint64_t to = edge((uint64_t)(i * n + me), k);
            index_of[i * EDGES + k] = place(to);
            pe_of[i * EDGES + k] = home(to);
        }
    }
    for (int round = 0; round < ROUNDS; round++) {
        barrier(); /* all have read what they were given */
        for (int i = 0; i < VERTICES * EDGES; i++)
            gift[i] = rank[i / EDGES] / EDGES;
        gshmem_raise(gshmem_double_ix_add_pes(given, gift, index_of, pe_of, VERTICES * EDGES));
        barrier();
        for (int i = 0; i < VERTICES; i++) {
            rank[i] = 0.15 / all + 0.85 * given[i];
            given[i] = 0;
        }
    }

    for (int v = 0; n <= 64 && v < all; v++)
        expected[v] = 1.0 / all;
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
        wrong += fabs(rank[i] - expected[i * n + me]) > 1e-12;
    return end("pagerank", VERTICES, "vertices", wrong);
}
