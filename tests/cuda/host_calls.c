/* The CPU's calls on objects in (simulated) GPU memory that take more than a copy: the library's kernel
 * makes them, of which the simulation runs a stand-in. */
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
    return gshmem_finalize();
}
