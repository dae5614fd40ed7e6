/* Random collectives on random teams in a row, with skew: what one leaves behind must not disturb
 * the next. All PEs draw the same sequence; those that are not in a team sit its collectives out.
 */
#include "groups.h"

enum { STEPS = 4000, MOST = 20000 };

static long *source, *dest;

static long value_of(int pe, size_t i, uint64_t step)
{
    return (long)(random_of(step * 1000 + (uint64_t)pe) % 1000) + (long)i;
}

static void fail_at(const char *what, const struct members *m, uint64_t step, size_t i, long got,
                    long due)
{
    CHECK_FAIL("step %llu, %s on %s (%d PEs): element %zu is %ld, expected %ld",
               (unsigned long long)step, what, m->name, m->n, i, got, due);
}

#define EXPECT(what, n, due)                                                                       \
    for (size_t i = 0; i < (n); i++) {                                                             \
        long expected = (due);                                                                     \
        if (dest[i] != expected)                                                                   \
            fail_at(what, m, step, i, dest[i], expected);                                          \
    }

static long sum_of(const struct members *m, int members, size_t i, uint64_t step)
{
    long sum = 0;

    for (int k = 0; k < members; k++)
        sum += value_of(m->pe[k], i, step);
    return sum;
}

static void try_step(const struct members *m, uint64_t step, size_t n, unsigned int kind)
{
    const enum gshmem_type t = GSHMEM_TYPE_INT64;
    size_t bytes = n * sizeof *source, all = n * (size_t)m->n;
    int root = (int)(step % (uint64_t)m->n);

    for (size_t i = 0; i < all; i++)
        source[i] = value_of(gshmem_my_pe(), i, step);
    switch (kind) {
    case 0:
        CHECK_OK(gshmem_team_sync(m->team));
        break;
    case 1:
        CHECK_OK(gshmem_barrier(m->team));
        break;
    case 2:
        CHECK_OK(gshmem_broadcastmem(m->team, dest, source, bytes, root));
        EXPECT("broadcast", n, value_of(m->pe[root], i, step));
        break;
    case 3:
        CHECK_OK(gshmem_fcollectmem(m->team, dest, source, bytes));
        EXPECT("fcollect", all, value_of(m->pe[i / n], i % n, step));
        break;
    case 4:
        CHECK_OK(gshmem_collectmem(m->team, dest, source, bytes));
        EXPECT("collect", all, value_of(m->pe[i / n], i % n, step));
        break;
    case 5:
        CHECK_OK(gshmem_alltoallmem(m->team, dest, source, bytes));
        EXPECT("alltoall", all, value_of(m->pe[i / n], (size_t)m->my * n + i % n, step));
        break;
    case 6:
        CHECK_OK(gshmem_reduce(m->team, t, GSHMEM_OP_SUM, dest, source, n));
        EXPECT("reduce", n, sum_of(m, m->n, i, step));
        break;
    case 7:
        CHECK_OK(gshmem_reducescatter(m->team, t, GSHMEM_OP_SUM, dest, source, n));
        EXPECT("reducescatter", n, sum_of(m, m->n, (size_t)m->my * n + i, step));
        break;
    case 8:
        CHECK_OK(gshmem_inscan(m->team, t, dest, source, n));
        EXPECT("inscan", n, sum_of(m, m->my + 1, i, step));
        break;
    default:
        CHECK_OK(gshmem_exscan(m->team, t, dest, source, n));
        EXPECT("exscan", n, sum_of(m, m->my, i, step));
    }
}

int main(void)
{
    struct members teams[8];

    CHECK_OK(gshmem_init());
    size_t room = (size_t)gshmem_n_pes() * MOST * sizeof *source;
    source = gshmem_malloc(room);
    dest = gshmem_malloc(room);
    CHECK(source && dest);
    int count = members_make(teams);
    for (uint64_t step = 0; step < STEPS; step++) {
        uint64_t draw = random_of(step);
        const struct members *m = &teams[draw % (uint64_t)count];
        size_t n = draw >> 16 & 15 ? draw >> 32 & 31 : (draw >> 32) % MOST;
        if (m->my < 0)
            continue;
        if (draw >> 24 & 1)
            skew(step);
        try_step(m, step, n, (unsigned int)(draw >> 8) % 10);
    }
    members_free(teams, count);
    CHECK_OK(gshmem_free(dest));
    CHECK_OK(gshmem_free(source));
    CHECK_OK(gshmem_finalize());
    return 0;
}
