/* Operations on streams of a (simulated) GPU: each kind, its order with what is on the stream
 * before and after it, waits that other PEs end, and the order of a team's collectives over several
 * streams. */
#include "gshmem.h"
#include "gpu.h"

enum { LARGE = 5000 }; /* elements, more than a round of a collective carries along */

static int me, n, left, right;

static long *zeros(size_t count)
{
    long *words = gshmem_calloc(count, sizeof *words);

    CHECK(words);
    return words;
}

static void copies(gshmem_stream_t s)
{
    long *words = zeros(64), block[4] = {me, me + 1, me + 2, me + 3}, got[4] = {0};

    CHECK_OK(gshmem_putmem_on_stream(words, block, sizeof block, right, s));
    CHECK_OK(gshmem_barrier_all_on_stream(s));
    CHECK_OK(gshmem_getmem_on_stream(got, words, sizeof got, right, s));
    CHECK_OK(
        gshmem_long_iput_on_stream(words + 8, words, 3, 2, 2, right, s)); /* 0 and 2, to 8 and 11 */
    CHECK_OK(gshmem_long_iget_on_stream(words + 16, words, 1, 3, 2, left, s));
    CHECK_OK(gshmem_long_p_on_stream(words + 24, 100 + me, right, s));
    CHECK_OK(gshmem_short_p_on_stream((short *)(words + 25), (short)(7 + me), right, s));
    CHECK_OK(gshmem_quiet_on_stream(s));
    CHECK_OK(gshmem_barrier_all_on_stream(s));
    finish(s);
    for (int i = 0; i < 4; i++)
        CHECK_EQ(got[i], me + i);
    int before = (left + n - 1) % n;
    CHECK_EQ(gshmem_long_g(words + 8, me), before);
    CHECK_EQ(gshmem_long_g(words + 11, me), before + 2);
    CHECK_EQ(gshmem_long_g(words + 16, me), before);
    CHECK_EQ(gshmem_long_g(words + 17, me), before + 3);
    CHECK_EQ(gshmem_long_g(words + 24, me), 100 + left);
    CHECK_EQ(gshmem_short_g((short *)(words + 25), me), 7 + left);
    CHECK_OK(gshmem_free(words));
}

static void signals(gshmem_stream_t s)
{
    long *words = zeros(64), got = 0;
    uint64_t *flag = (uint64_t *)(words + 32);

    CHECK_OK(gshmem_long_p(words, 40 + me, me));
    CHECK_OK(
        gshmem_putmem_signal_on_stream(words + 1, words, 8, flag, 5, GSHMEM_SIGNAL_ADD, right, s));
    CHECK_OK(gshmem_signal_op_on_stream(flag + 1, 9, GSHMEM_SIGNAL_SET, right, s));
    CHECK_OK(gshmem_signal_wait_until_on_stream(flag, GSHMEM_CMP_EQ, 5, s));
    CHECK_OK(gshmem_uint64_wait_until_all_on_stream(flag, 2, NULL, GSHMEM_CMP_GE, 5, s));
    CHECK_OK(gshmem_getmem_on_stream(&got, words + 1, 8, me, s));
    finish(s);
    CHECK_EQ(got, 40 + left);
    CHECK_EQ(gshmem_uint64_g(flag + 1, me), 9);
    CHECK_OK(gshmem_barrier_all());
    CHECK_OK(gshmem_free(words));
}

/* Each in two sizes: what comes along with a round, and what is moved between two. */
static void collectives(gshmem_stream_t s, size_t count)
{
    long *from = zeros(count * (size_t)n), *to = zeros(count * (size_t)n),
         *mine = calloc(count, sizeof *mine);
    long *got = calloc(count * (size_t)n, sizeof *got);
    const size_t bytes = count * sizeof *mine, last = count - 1;

    CHECK(mine && got);
    for (size_t i = 0; i < count; i++)
        mine[i] = me * 10 + (long)i;
    for (int pe = 0; pe < n; pe++)
        CHECK_OK(gshmem_putmem(from + (size_t)pe * count, mine, bytes, me));

    CHECK_OK(gshmem_fcollectmem_on_stream(GSHMEM_TEAM_WORLD, to, from, bytes, s));
    CHECK_OK(gshmem_getmem_on_stream(got, to, bytes * (size_t)n, me, s));
    finish(s);
    for (int pe = 0; pe < n; pe++)
        CHECK_EQ(got[(size_t)pe * count + last], pe * 10 + (long)last);

    CHECK_OK(gshmem_alltoallmem_on_stream(GSHMEM_TEAM_WORLD, to, from, bytes, s));
    CHECK_OK(gshmem_broadcastmem_on_stream(GSHMEM_TEAM_WORLD, to, from, bytes, n - 1, s));
    CHECK_OK(gshmem_getmem_on_stream(got, to, bytes * (size_t)n, me, s));
    finish(s);
    CHECK_EQ(got[last], (n - 1) * 10 + (long)last);
    CHECK_EQ(got[(size_t)(n - 1) * count + last], (n - 1) * 10 + (long)last);

    CHECK_OK(gshmem_long_sum_reduce_on_stream(GSHMEM_TEAM_WORLD, to, from, count, s));
    CHECK_OK(gshmem_getmem_on_stream(got, to, bytes, me, s));
    CHECK_OK(gshmem_long_max_reducescatter_on_stream(GSHMEM_TEAM_WORLD, to, from, count, s));
    CHECK_OK(gshmem_getmem_on_stream(mine, to, bytes, me, s));
    finish(s);
    CHECK_EQ(got[last], n * (n - 1) / 2 * 10 + n * (long)last);
    CHECK_EQ(mine[last], (n - 1) * 10 + (long)last);
    CHECK_OK(gshmem_barrier_all());
    CHECK_OK(gshmem_free(from));
    CHECK_OK(gshmem_free(to));
    free(mine);
    free(got);
}

/* All PEs ask for them in one order, each with its own choice of streams: what is waited for first
 * are the sums on some, and the broadcasts on others, which would meet if nothing kept them in
 * order. */
static void order(gshmem_stream_t first, gshmem_stream_t second)
{
    gshmem_stream_t s[2] = {first, second};
    long *words = zeros(2), expected = 1;

    CHECK_OK(gshmem_long_p(words, 1, me));
    for (int i = 0; i < 3; i++) { /* each sums what the one before it has left: n, n * n, … */
        CHECK_OK(gshmem_long_sum_reduce_on_stream(GSHMEM_TEAM_WORLD, words, words, 1, s[me % 2]));
        CHECK_OK(gshmem_long_broadcast_on_stream(GSHMEM_TEAM_WORLD, words + 1, words, 1, 0,
                                                 s[1 - me % 2]));
        expected *= n;
    }
    finish(first);
    finish(second);
    CHECK_EQ(gshmem_long_g(words, me), expected);
    CHECK_EQ(gshmem_long_g(words + 1, me), expected);
    CHECK_OK(gshmem_barrier_all());
    CHECK_OK(gshmem_free(words));
}

/* What is refused at once. */
static void refusals(gshmem_stream_t s)
{
    long *words = zeros(4), mine[4] = {0};

    CHECK_FAILS(gshmem_putmem_on_stream(words, mine, 8, n, s), GSHMEM_ERR_ARGUMENT,
                "the job has PEs");
    CHECK_FAILS(gshmem_putmem_on_stream(mine, words, 8, me, s), GSHMEM_ERR_NOT_SYMMETRIC, "put");
    CHECK_FAILS(gshmem_long_iput_on_stream(words, words, 0, 1, 2, right, s), GSHMEM_ERR_ARGUMENT,
                "strides are 0 and 1");
    CHECK_FAILS(gshmem_long_iput_on_stream(words, mine, 1, 1, 2, right, s), GSHMEM_ERR_ARGUMENT,
                "kernels see no memory at");
    CHECK_FAILS(gshmem_long_wait_until_on_stream(mine, GSHMEM_CMP_EQ, 0, s), GSHMEM_ERR_ARGUMENT,
                "kernels see no memory at");
    CHECK_FAILS(gshmem_long_wait_until_on_stream(words, 77, 0, s), GSHMEM_ERR_ARGUMENT,
                "cmp is 77");
    CHECK_FAILS(gshmem_signal_op_on_stream((uint64_t *)words, 1, 5, right, s), GSHMEM_ERR_ARGUMENT,
                "signal_op is 5");
    CHECK_OK(gshmem_free(words));
}

/* This PE with itself in GPU memory of the program's that is not symmetric, which is for nvshmem.h alone. */
static void own_memory(gshmem_stream_t s)
{
    long block[4] = {5, 6, 7, 8}, got[4] = {0};
    cuda_address at;

    CHECK_EQ(driver.allocate(&at, 4096), CUDA_OK);
    long *mine = (long *)(uintptr_t)at;
    CHECK_FAILS(gshmem_putmem(mine, block, sizeof block, me), GSHMEM_ERR_NOT_SYMMETRIC, "not symmetric");
    CHECK_OK(gshmem_path_own_memory());
    CHECK_OK(gshmem_putmem(mine, block, sizeof block, me));
    CHECK_OK(gshmem_putmem_signal(mine + 4, block, sizeof block, (uint64_t *)(mine + 8), 3,
                                  GSHMEM_SIGNAL_SET, me));
    CHECK_EQ(gshmem_long_atomic_fetch_add(mine, 10, me), 5);
    CHECK_OK(gshmem_long_p(mine + 1, 66, me));
    CHECK_EQ(gshmem_long_g(mine, me), 15);
    CHECK_OK(gshmem_getmem(got, mine, sizeof got, me));
    CHECK_EQ(got[1], 66);
    CHECK_EQ(gshmem_long_g(mine + 7, me), 8);
    CHECK_EQ(gshmem_long_g(mine + 8, me), 3);
    CHECK_OK(gshmem_putmem_on_stream(mine + 12, mine, sizeof block, me, s));
    CHECK_OK(gshmem_getmem_on_stream(got, mine + 12, sizeof got, me, s));
    finish(s);
    CHECK_EQ(got[0], 15);
    if (n > 1)
        CHECK_FAILS(gshmem_putmem(mine, block, sizeof block, right), GSHMEM_ERR_NOT_SYMMETRIC, "not symmetric");
    CHECK_EQ(driver.free(at), CUDA_OK);
}

int main(void)
{
    setenv("GSHMEM_ON_ERROR", "return", 1);
    for (int job = 0; job < 2; job++) {
        CHECK_OK(gshmem_init());
        me = gshmem_my_pe();
        n = gshmem_n_pes();
        left = (me + n - 1) % n;
        right = (me + 1) % n;
        open_gpu();
        gshmem_stream_t s = new_stream(), other = new_stream();

        refusals(s);
        copies(s);
        copies(NULL);
        signals(s);
        collectives(s, 3);
        collectives(other, LARGE);
        order(s, other);
        own_memory(s);
        long *words = zeros(4);
        CHECK_OK(gshmem_long_p_on_stream(words, 1, right, s)); /* finalize waits for it */
        end_stream(other);
        CHECK_OK(gshmem_finalize());
        CHECK_EQ(driver.context_set(context), CUDA_OK); /* which finalize has let go of */
        end_stream(s);
        close_gpu();
    }
    return 0;
}
