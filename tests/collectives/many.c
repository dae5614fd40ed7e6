/* Every collective on one team after the other, far more than have room of their own between hosts, with no
 * elements, one, what a note carries, and more than any note or inbox does. */
#include <stdlib.h>

#include "gshmem.h"

#include "check.h"

enum { TEAMS = 40, PES_MOST = 8, MOST = 40000 };

static const size_t counts[] = {0, 1, 300, 1000, MOST};
static int64_t source[PES_MOST * MOST], dest[2 * PES_MOST * MOST];
static int n, me;

static int64_t value(int pe, size_t i)
{
    return pe * 1000003 + (int64_t)i;
}

static void prepare(size_t all)
{
    for (size_t i = 0; i < all; i++)
        source[i] = value(me, i);
    memset(dest, 0xff, 2 * all * sizeof *dest);
}

/* `expected` of element i. */
#define RESULT(count, expected)                                                                    \
    for (size_t i = 0; i < (count); i++)                                                           \
        CHECK_EQ(dest[i], expected)

static int64_t sum_of(size_t i, int first, int last)
{
    int64_t sum = 0;

    for (int pe = first; pe <= last; pe++)
        sum += value(pe, i);
    return sum;
}

static void try_all(gshmem_team_t team, size_t k)
{
    const size_t bytes = k * sizeof *source;

    prepare(k);
    CHECK_OK(gshmem_broadcastmem(team, dest, source, bytes, n - 1));
    RESULT(k, value(n - 1, i));
    prepare(k * (size_t)n);
    CHECK_OK(gshmem_fcollectmem(team, dest, source, bytes));
    RESULT(k * (size_t)n, value((int)(i / k), i % k));
    prepare(k * (size_t)n);
    CHECK_OK(gshmem_collectmem(team, dest, source, me ? bytes : 0));
    RESULT(k * (size_t)(n - 1), value((int)(i / k) + 1, i % k));
    prepare(k * (size_t)n);
    CHECK_OK(gshmem_alltoallmem(team, dest, source, bytes));
    RESULT(k * (size_t)n, value((int)(i / k), (size_t)me * k + i % k));
    prepare(k * (size_t)n);
    CHECK_OK(gshmem_alltoallsmem(team, dest, source, 2, 1, sizeof *source, k));
    for (size_t i = 0; i < k * (size_t)n; i++)
        CHECK_EQ(dest[2 * i], value((int)(i / k), (size_t)me * k + i % k));
    prepare(k);
    CHECK_OK(gshmem_reduce(team, GSHMEM_TYPE_INT64, GSHMEM_OP_SUM, dest, source, k));
    RESULT(k, sum_of(i, 0, n - 1));
    prepare(k * (size_t)n);
    CHECK_OK(gshmem_reducescatter(team, GSHMEM_TYPE_INT64, GSHMEM_OP_SUM, dest, source, k));
    RESULT(k, sum_of((size_t)me * k + i, 0, n - 1));
    prepare(k);
    CHECK_OK(gshmem_inscan(team, GSHMEM_TYPE_INT64, dest, source, k));
    RESULT(k, sum_of(i, 0, me));
    prepare(k);
    CHECK_OK(gshmem_exscan(team, GSHMEM_TYPE_INT64, dest, source, k));
    RESULT(k, sum_of(i, 0, me - 1));
    CHECK_OK(gshmem_team_sync(team));
}

int main(void)
{
    gshmem_team_t team[TEAMS];

    CHECK_OK(gshmem_init());
    me = gshmem_my_pe();
    n = gshmem_n_pes();
    CHECK(n <= PES_MOST);
    for (int t = 0; t < TEAMS; t++) {
        CHECK_OK(gshmem_team_split_strided(GSHMEM_TEAM_WORLD, 0, 1, n, NULL, 0, &team[t]));
        for (size_t k = 0; k < sizeof counts / sizeof counts[0]; k++) {
            if (counts[k] < 1000 || t % 6 == 5) /* of large ones a few teams with room, and without */
                try_all(team[t], counts[k]);
        }
    }
    for (int t = 0; t < TEAMS; t++)
        CHECK_OK(gshmem_team_destroy(team[t]));
    CHECK_OK(gshmem_finalize());
    return 0;
}
