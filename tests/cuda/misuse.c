/* What the CPU cannot do to GPU memory is refused, and says what can; what it can, it does. */
#include "gshmem.h"
#include "../check.h"

static void refusals(long *gpu, int right)
{
    long sum[4] = {0};
    volatile size_t far = (size_t)4 << 30; /* or the compiler would say that it is too much */
    int one = 1;

    CHECK_FAILS(gshmem_putmem(gpu, sum, far, right), GSHMEM_ERR_NOT_SYMMETRIC, "past the end");
    CHECK_FAILS(gshmem_putmem(gpu, sum, 8, gshmem_n_pes()), GSHMEM_ERR_ARGUMENT, "the job has PEs");
    CHECK_FAILS(gshmem_free((char *)gpu + 8), GSHMEM_ERR_ARGUMENT, "8 bytes inside");
    CHECK_FAILS(gshmem_free(&one), GSHMEM_ERR_NOT_SYMMETRIC, "not in the symmetric heap");
    if (gshmem_n_pes() > 1) { /* one frees of one heap, the others of the other */
        void *host = gshmem_malloc_with_hints(64, GSHMEM_MALLOC_HOST);
        CHECK(host);
        CHECK_EQ(gshmem_free(gshmem_my_pe() ? host : (void *)gpu), GSHMEM_ERR_MISMATCH);
        CHECK_OK(gshmem_free(host));
    }
}

static void copies(long *gpu, int me, int n, int left, int right)
{
    long block[6] = {10, 11, 12, 13, 14, 15}, got[6] = {0};
    uint64_t *flag = (uint64_t *)(gpu + 8);

    CHECK_OK(gshmem_barrier_all());
    CHECK_OK(gshmem_long_p(gpu, 100 + me, right));
    CHECK_OK(gshmem_long_iput(gpu + 1, block, 2, 3, 2, right)); /* 10 and 13, to 1 and 3 */
    CHECK_OK(gshmem_long_atomic_set(gpu + 4, 7 + me, right));
    CHECK_OK(gshmem_putmem_signal(gpu + 5, block, 16, flag, 77, GSHMEM_SIGNAL_SET, right));
    CHECK_OK(gshmem_barrier_all());
    CHECK_EQ(gshmem_long_g(gpu, me), 100 + left);
    CHECK_OK(gshmem_long_iget(got, gpu + 1, 1, 2, 2, me));
    CHECK_EQ(got[0], 10);
    CHECK_EQ(got[1], 13);
    CHECK_EQ(gshmem_long_atomic_fetch(gpu + 4, me), 7 + left);
    CHECK_EQ(gshmem_long_g(gpu + 6, me), 11);
    CHECK_EQ(gshmem_uint64_g(flag, me), 77);
    CHECK_EQ(gshmem_long_g(gpu, (me + 2) % n), 100 + (me + 1) % n);
}

/* The heap in host memory is there for all that. */
static void host_memory(int me, int n, int right)
{
    long *words = gshmem_malloc_with_hints(64, GSHMEM_MALLOC_HOST), sum;

    CHECK(words && gshmem_ptr(words, right));
    words[0] = me;
    words[1] = 0;
    CHECK_OK(gshmem_barrier_all());
    CHECK_OK(gshmem_long_sum_reduce(GSHMEM_TEAM_WORLD, words + 2, words, 1));
    CHECK_EQ(words[2], n * (n - 1) / 2);
    sum = gshmem_long_atomic_fetch_add(words + 1, 1, right);
    CHECK_EQ(sum, 0);
    CHECK_OK(gshmem_long_wait_until(words + 1, GSHMEM_CMP_EQ, 1));
    CHECK_OK(gshmem_barrier_all());
    words = gshmem_realloc(words, 4096);
    CHECK(words);
    CHECK_EQ(words[0], me);
    CHECK_OK(gshmem_free(words));
}

int main(void)
{
    setenv("GSHMEM_ON_ERROR", "return", 1);
    CHECK_OK(gshmem_init());
    int me = gshmem_my_pe(), n = gshmem_n_pes(), right = (me + 1) % n, left = (me + n - 1) % n;
    long *gpu = gshmem_calloc(16, sizeof *gpu);

    CHECK(gpu);
    CHECK_EQ(gshmem_addr_accessible(gpu, right), 1);
    refusals(gpu, right);
    copies(gpu, me, n, left, right);
    host_memory(me, n, right);
    CHECK_OK(gshmem_free(gpu));
    return gshmem_finalize();
}
