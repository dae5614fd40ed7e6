/* The CPU's calls on objects in (simulated) GPU memory that take more than a copy: the library's
 * kernel makes them. */
#include "gshmem.h"
#include "../check.h"

static int me, n, right;

/* All update all, at the same time. */
static void updates(long *words)
{
    enum { TIMES = 5 };
    unsigned *small = (unsigned *)(words + 1);

    for (int i = 0; i < TIMES; i++) {
        for (int pe = 0; pe < n; pe++) {
            CHECK(gshmem_long_atomic_fetch_add(words, 1, pe) < TIMES * n);
            CHECK_OK(gshmem_uint_atomic_or(small, 1u << me, pe));
            CHECK_OK(gshmem_uint_atomic_xor(small + 1, 3u << 2 * me, pe));
            CHECK_OK(gshmem_ctx_signal_add(GSHMEM_CTX_DEFAULT, (uint64_t *)(words + 2), 2, pe));
        }
    }
    CHECK_OK(gshmem_barrier_all());
    CHECK_EQ(gshmem_long_g(words, me), TIMES * n);
    CHECK_EQ(gshmem_uint_g(small, right), (1u << n) - 1);
    CHECK_EQ(gshmem_uint_g(small + 1, me), (uint32_t)((UINT64_C(1) << 2 * n) - 1)); /* 5 is odd */
    CHECK_EQ(gshmem_long_g(words + 2, me), 2 * TIMES * n);
}

/* One after the other: what each answers. */
static void answers(long *words)
{
    long block[4] = {1, 2, 3, 4};

    CHECK_OK(gshmem_barrier_all());
    CHECK_EQ(gshmem_long_atomic_swap(words + 4, 7 + me, right), 0);
    CHECK_EQ(gshmem_long_atomic_compare_swap(words + 4, 1, 2, right), 7 + me);
    CHECK_EQ(gshmem_long_atomic_compare_swap(words + 4, 7 + me, -5, right), 7 + me);
    CHECK_EQ(gshmem_ulong_atomic_fetch_and((unsigned long *)(words + 4), 0xff, right), -5ul);
    CHECK_EQ(gshmem_long_atomic_fetch_inc(words + 4, right), 0xfb);
    CHECK_EQ(gshmem_long_atomic_fetch(words + 4, right), 0xfc);
    CHECK_OK(gshmem_putmem_signal(words + 6, block, sizeof block, (uint64_t *)(words + 5), 9,
                                  GSHMEM_SIGNAL_ADD, right));
    CHECK_EQ(gshmem_long_g(words + 5, right), 9);
    CHECK_EQ(gshmem_long_g(words + 9, right), 4);
    CHECK_OK(gshmem_barrier_all());
}

/* Each PE waits for what its neighbour sends. */
static void waits(long *words)
{
    uint64_t *flag = (uint64_t *)(words + 10);
    const int left_out[3] = {0, 1, 0};
    const long least[3] = {1, 99, 3};
    size_t found[3];

    CHECK(!gshmem_long_test(words + 16, GSHMEM_CMP_NE, 0));
    CHECK_EQ(gshmem_long_test_any(words + 16, 3, NULL, GSHMEM_CMP_NE, 0), SIZE_MAX);
    CHECK_OK(gshmem_barrier_all());
    CHECK_OK(gshmem_long_p(words + 18, 5, right));
    CHECK_OK(gshmem_long_wait_until(words + 18, GSHMEM_CMP_GT, 4));
    CHECK_EQ(gshmem_long_wait_until_any(words + 16, 3, NULL, GSHMEM_CMP_NE, 0), 2);
    CHECK_EQ(gshmem_long_test_some(words + 16, 3, found, left_out, GSHMEM_CMP_NE, 77), 2);
    CHECK_OK(gshmem_long_p(words + 16, -1, right));
    CHECK_OK(gshmem_long_wait_until_all(words + 16, 3, left_out, GSHMEM_CMP_NE, 0));
    CHECK_OK(gshmem_long_p(words + 16, 1, right));
    CHECK_OK(gshmem_long_wait_until_all_vector(words + 16, 3, left_out, GSHMEM_CMP_GE, least));
    CHECK_OK(gshmem_putmem_signal(words + 20, least, 16, flag, 6, GSHMEM_SIGNAL_ADD, right));
    CHECK_EQ(gshmem_signal_wait_until(flag, GSHMEM_CMP_NE, 0), 6);
    CHECK_EQ(gshmem_signal_fetch(flag), 6);
    CHECK_EQ(gshmem_long_g(words + 21, me), 99);
    CHECK_OK(gshmem_barrier_all());
}

/* One counts while the others wait for the lock, or try it. */
static void locks(long *lock, long *count)
{
    for (int i = 0; i < 3; i++) {
        CHECK_OK(gshmem_set_lock(lock));
        CHECK_OK(gshmem_long_p(count, gshmem_long_g(count, 0) + 1, 0));
        CHECK_OK(gshmem_clear_lock(lock));
    }
    while (gshmem_test_lock(lock))
        ;
    CHECK_OK(gshmem_long_p(count, gshmem_long_g(count, 0) + 1, 0));
    CHECK_OK(gshmem_clear_lock(lock));
    CHECK_OK(gshmem_barrier_all());
    CHECK_EQ(gshmem_long_g(count, 0), 4 * n);
}

static void collectives(long *from, long *to)
{
    gshmem_team_t team;

    for (int i = 0; i < n; i++)
        CHECK_OK(gshmem_long_p(from + i, me * 10 + i, me));
    CHECK_OK(gshmem_long_alltoall(GSHMEM_TEAM_WORLD, to, from, 1));
    CHECK_EQ(gshmem_long_g(to + n - 1, me), (n - 1) * 10 + me);
    CHECK_OK(gshmem_long_fcollect(GSHMEM_TEAM_WORLD, to, from, 1));
    CHECK_EQ(gshmem_long_g(to + n - 1, me), (n - 1) * 10);
    CHECK_OK(gshmem_long_broadcast(GSHMEM_TEAM_WORLD, to, from, 2, n - 1));
    CHECK_EQ(gshmem_long_g(to, me), (n - 1) * 10);
    CHECK_OK(gshmem_team_split_strided(GSHMEM_TEAM_WORLD, 0, 1, (n + 1) / 2, NULL, 0, &team));
    if (team != GSHMEM_TEAM_INVALID) {
        int members = (n + 1) / 2;
        CHECK_OK(gshmem_long_sum_reduce(team, to, from, 1));
        CHECK_EQ(gshmem_long_g(to, me), members * (members - 1) / 2 * 10);
        CHECK_OK(gshmem_team_destroy(team));
    }
    CHECK_OK(gshmem_long_max_reducescatter(GSHMEM_TEAM_WORLD, to, from, 1));
    CHECK_EQ(gshmem_long_g(to, me), (n - 1) * 10 + me);
    CHECK_OK(gshmem_barrier_all());
}

/* What all learn of, and nobody hangs on: an object that is not symmetric, on one PE. */
static void mistakes(long *words)
{
    long mine = 0;

    CHECK_EQ(gshmem_long_sum_reduce(GSHMEM_TEAM_WORLD, words, me == n - 1 ? &mine : words, 1),
             me == n - 1 ? GSHMEM_ERR_NOT_SYMMETRIC : GSHMEM_ERR_MISMATCH);
    CHECK_OK(gshmem_barrier_all());
}

int main(void)
{
    CHECK_OK(gshmem_init());
    me = gshmem_my_pe();
    n = gshmem_n_pes();
    right = (me + 1) % n;
    long *words = gshmem_calloc(64, sizeof *words);

    CHECK(words);
    updates(words);
    answers(words);
    waits(words);
    locks(words + 30, words + 31);
    collectives(words + 40, words + 52);
    mistakes(words + 40);
    return gshmem_finalize();
}
