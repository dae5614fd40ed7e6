/* PEs of several pretended hosts whose (simulated) GPUs NVLink connects: who maps whom, that what is put by
 * either way is found, also in memory that came later, that one counter is right that all update, by mapped
 * memory or by its owner, and that it all ends well.
 *
 *     domain aabb [faulty|asymmetric]   which PE maps PEs of other hosts with the same letter; -: none
 *
 * asymmetric: a PE maps none, and is mapped. faulty: the next piece of a heap cannot be mapped somewhere: nobody gets memory, and then all do. */
#include "gshmem.h"
#include "gpu.h"

enum { MIB = 1 << 20, WORDS = 3000, ROUNDS = 5 };

static int me, n;
static const char *group;
static bool asymmetric;

static bool of_this_host(int pe)
{
    for (int i = 0; i < gshmem_team_n_pes(GSHMEM_TEAM_HOST); i++) {
        if (gshmem_team_translate_pe(GSHMEM_TEAM_HOST, i, GSHMEM_TEAM_WORLD) == pe)
            return true;
    }
    return false;
}

/* PE `by` maps PE `pe`. */
static bool is_mapped(int by, int pe)
{
    return of_this_host(pe) || (group[by] != '-' && (asymmetric || group[by] == group[pe]));
}

static long value(int from, int to, int round, int i)
{
    return ((from * 16 + to) * 100 + round) * 10000 + i;
}

static void copy(void *to, const void *from, size_t bytes)
{
    cuda_stream stream;

    CHECK_EQ(driver.stream_create(&stream, CUDA_STREAM_NON_BLOCKING), CUDA_OK);
    CHECK_EQ(driver.copy_async((uintptr_t)to, (uintptr_t)from, bytes, stream), CUDA_OK);
    CHECK_EQ(driver.stream_wait(stream), CUDA_OK);
    CHECK_EQ(driver.stream_destroy(stream), CUDA_OK);
}

static void check_words(const long *words, int from, int to, int round)
{
    for (int i = 0; i < WORDS; i++) {
        if (words[i] != value(from, to, round, i))
            CHECK_FAIL("round %d: word %d from PE %d for PE %d is %ld, expected %ld", round, i, from, to,
                       words[i], value(from, to, round, i));
    }
}

/* [sender][WORDS] on each PE: all put to all, by the API or, where they are mapped, by the GPU's own copies. */
static void all_to_all(long *object, int round)
{
    long words[WORDS];

    for (int to = 0; to < n; to++) {
        long *mine = object + me * WORDS, *there = gshmem_ptr(mine, to);
        for (int i = 0; i < WORDS; i++)
            words[i] = value(me, to, round, i);
        CHECK_EQ(there != NULL, is_mapped(me, to));
        CHECK_EQ(gshmem_addr_accessible(mine, to), 1);
        if (there && round % 2)
            copy(there, words, sizeof words);
        else
            CHECK_OK(gshmem_putmem(mine, words, sizeof words, to));
    }
    CHECK_OK(gshmem_barrier_all());
    for (int from = 0; from < n; from++) {
        CHECK_OK(gshmem_getmem(words, object + from * WORDS, sizeof words, me));
        check_words(words, from, me, round);
        CHECK_OK(gshmem_getmem(words, object + me * WORDS, sizeof words, from));
        check_words(words, me, from, round);
    }
    CHECK_OK(gshmem_barrier_all());
}

/* The data of a put is there when its signal is, whichever of the two is in mapped memory. */
static void signals(long *object)
{
    uint64_t *flag = gshmem_malloc_with_hints(8 * (size_t)n, GSHMEM_MALLOC_HOST);
    long *host = gshmem_malloc_with_hints((size_t)n * sizeof *host, GSHMEM_MALLOC_HOST), words[WORDS];
    uint64_t *gpu_flag = gshmem_calloc((size_t)n, 8), seen;

    CHECK(flag && host && gpu_flag);
    memset(flag, 0, 8 * (size_t)n);
    CHECK_OK(gshmem_barrier_all());
    for (int to = 0; to < n; to++) {
        for (int i = 0; i < WORDS; i++)
            words[i] = value(me, to, 50, i);
        CHECK_OK(gshmem_putmem_signal(object + me * WORDS, words, sizeof words, flag + me, 3,
                                      to % 2 ? GSHMEM_SIGNAL_SET : GSHMEM_SIGNAL_ADD, to));
        CHECK_OK(gshmem_putmem_signal(host + me, &(long){1000 * me + to}, sizeof *host, gpu_flag + me, 4,
                                      GSHMEM_SIGNAL_SET, to));
    }
    for (int from = 0; from < n; from++) {
        CHECK_OK(gshmem_uint64_wait_until(flag + from, GSHMEM_CMP_EQ, 3));
        CHECK_OK(gshmem_getmem(words, object + from * WORDS, sizeof words, me));
        check_words(words, from, me, 50);
        CHECK_OK(gshmem_uint64_wait_until(gpu_flag + from, GSHMEM_CMP_EQ, 4));
        CHECK_OK(gshmem_getmem(&seen, gpu_flag + from, 8, me));
        CHECK_EQ(seen, 4);
        CHECK_EQ(__atomic_load_n(host + from, __ATOMIC_ACQUIRE), 1000 * from + me);
    }
    CHECK_OK(gshmem_barrier_all());
    CHECK_OK(gshmem_free(gpu_flag));
    CHECK_OK(gshmem_free(host));
    CHECK_OK(gshmem_free(flag));
}

/* On each PE's GPU: all PEs add to it, and what they are told is never told twice. */
static void counters(long *object)
{
    enum { EACH = 10 };
    long found = 0, last;

    CHECK_OK(gshmem_long_p(object, 0, me));
    CHECK_OK(gshmem_barrier_all());
    for (int pe = 0; pe < n; pe++) {
        last = -1;
        for (int i = 0; i < EACH; i++) {
            long before = gshmem_long_atomic_fetch_add(object, 1, pe);
            CHECK(before > last && before < 2 * n * EACH);
            last = before;
            CHECK_OK(gshmem_ctx_signal_add(GSHMEM_CTX_DEFAULT, (uint64_t *)(void *)object, 1, pe));
        }
    }
    CHECK_OK(gshmem_barrier_all());
    CHECK_OK(gshmem_getmem(&found, object, sizeof found, me));
    CHECK_EQ(found, 2 * n * EACH);
    CHECK_OK(gshmem_long_sum_reduce(GSHMEM_TEAM_WORLD, object + 1, object, 1));
    CHECK_EQ(gshmem_long_g(object + 1, me), 2 * n * EACH * n);
    CHECK_OK(gshmem_barrier_all());
}

int main(int argc, char **argv)
{
    const bool faulty = argc > 2 && strcmp(argv[2], "faulty") == 0;

    asymmetric = argc > 2 && !faulty;
    group = argv[1];
    for (int job = 0; job < (argc > 2 ? 1 : 2); job++) {
        CHECK_OK(gshmem_init());
        me = gshmem_my_pe();
        n = gshmem_n_pes();
        open_gpu();
        const size_t bytes = (size_t)n * WORDS * sizeof(long);
        long *first = gshmem_calloc(1, bytes), *second, *third;
        CHECK(first);
        all_to_all(first, 1);
        if (faulty) {
            CHECK(!gshmem_malloc(60 * MIB));
            CHECK(gshmem_last_error(NULL) != GSHMEM_OK);
            all_to_all(first, 2);
        }
        second = gshmem_malloc(60 * MIB);
        CHECK(second);
        all_to_all(second, 2);
        all_to_all(second + 60 * MIB / 8 - n * WORDS, 3); /* in another piece than where it begins */
        third = gshmem_malloc(100 * MIB);
        CHECK(third);
        all_to_all(third + 99 * MIB / 8, 4);
        CHECK_OK(gshmem_free(third));
        third = gshmem_malloc(90 * MIB); /* what was given back comes again */
        CHECK(third);
        all_to_all(third + 89 * MIB / 8, 5);
        signals(first);
        counters(second);
        CHECK_OK(gshmem_free(second));
        all_to_all(third, 7);
        CHECK_OK(gshmem_finalize());
        close_gpu();
    }
    return 0;
}
