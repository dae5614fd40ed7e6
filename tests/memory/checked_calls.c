/* GSHMEM_CHECK=memory: collectives, waits, tests and variables. All PEs make the same mistake, since
 * a collective that one PE refuses fails on all of them. */
#include <pthread.h>

#include "gshmem.h"

#include "check.h"

enum { ITEMS = 8 };

static long counts[4], before[ITEMS * 8], source_variable[ITEMS];
static uint64_t signals[3];
extern char _end[]; /* of all variables; the linker's */
static int me, n, right;
static long *dest, *source; /* of ITEMS longs for each PE */
static char *bytes;         /* of 100 B, which no other object follows for 1 MiB */

/* What is right is done, in the heap and in variables. */
static void test_right(void)
{
    for (int i = 0; i < ITEMS * n; i++)
        source[i] = me + i;
    CHECK_OK(gshmem_long_sum_reduce(GSHMEM_TEAM_WORLD, dest, source, (size_t)(ITEMS * n)));
    CHECK_EQ(dest[ITEMS * n - 1], (long)n * (ITEMS * n - 1) + (long)n * (n - 1) / 2);
    CHECK_OK(gshmem_long_alltoall(GSHMEM_TEAM_WORLD, dest, source, ITEMS));
    CHECK_OK(gshmem_long_fcollect(GSHMEM_TEAM_WORLD, dest, source, ITEMS));
    CHECK_OK(gshmem_long_collect(GSHMEM_TEAM_WORLD, dest, source, ITEMS));
    CHECK_EQ(dest[ITEMS * n - 1], n - 1 + ITEMS - 1);
    CHECK_OK(gshmem_long_broadcast(GSHMEM_TEAM_WORLD, dest, source, ITEMS, n - 1));
    CHECK_EQ(dest[ITEMS - 1], n - 1 + ITEMS - 1);
    CHECK_OK(gshmem_long_sum_reduce(GSHMEM_TEAM_WORLD, before, source_variable, ITEMS));
    CHECK_OK(gshmem_long_fcollect(GSHMEM_TEAM_WORLD, before, source_variable, ITEMS / 2));
    CHECK_OK(gshmem_long_sum_reduce(GSHMEM_TEAM_WORLD, dest, dest, 1)); /* in place */
    CHECK_OK(gshmem_uint64_wait_until_all(signals, 3, NULL, GSHMEM_CMP_EQ, 0));
    CHECK(gshmem_uint64_test(&signals[2], GSHMEM_CMP_EQ, 0));
    CHECK_EQ(gshmem_signal_fetch(&signals[2]), 0);
    CHECK_OK(gshmem_set_lock(counts));
    CHECK_OK(gshmem_clear_lock(counts));
    CHECK(!gshmem_last_error(NULL));
}

#define PAST_HEAP "past the end of the object of"
#define REFUSED(call, part) CHECK_FAILS(call, GSHMEM_ERR_NOT_SYMMETRIC, part)

static void test_collectives(void)
{
    const gshmem_team_t all = GSHMEM_TEAM_WORLD;
    const size_t most = (size_t)(ITEMS * n);

    REFUSED(gshmem_long_sum_reduce(all, dest, source + 1, most), "gshmem_reduce of");
    REFUSED(gshmem_long_sum_reduce(all, dest + 1, source, most), PAST_HEAP);
    REFUSED(gshmem_long_broadcast(all, dest, source, most + 1, 0), PAST_HEAP);
    REFUSED(gshmem_long_fcollect(all, dest, source, ITEMS + 1), PAST_HEAP);
    REFUSED(gshmem_long_collect(all, dest, source + 1, most), PAST_HEAP);
    CHECK_FAILS(gshmem_long_collect(all, dest + 1, source, ITEMS), GSHMEM_ERR_ARGUMENT,
                "dest is too small");
    REFUSED(gshmem_long_alltoall(all, dest + 1, source, ITEMS), PAST_HEAP);
    REFUSED(gshmem_long_alltoalls(all, dest, source, 2, 1, ITEMS), PAST_HEAP);
    REFUSED(gshmem_long_sum_reducescatter(all, dest, source + 1, ITEMS), PAST_HEAP);
    REFUSED(gshmem_long_sum_inscan(all, dest + 1, source, most), PAST_HEAP);
    REFUSED(gshmem_long_sum_exscan(all, dest, source + 1, most), PAST_HEAP);
    REFUSED(gshmem_broadcastmem(all, bytes + 4096, source, 8, 0), "no object is there");
    REFUSED(gshmem_long_sum_reduce(all, before, source_variable + 1, ITEMS),
            "8 B past the end of the variable source_variable of 64 B");
    REFUSED(gshmem_long_max_reduce(all, counts, source, 5), "past the end of the variable counts");
}

static void test_variables(void)
{
    const char *text = "";
    long mine[ITEMS] = {0};

    REFUSED(gshmem_long_put(counts, mine, 5, right), "the end of the variable counts of 32 B");
    REFUSED(gshmem_long_get(mine, counts + 3, 2, right), "8 B past the end of the variable counts");
    REFUSED(gshmem_putmem_nbi((char *)counts + 31, mine, 2, right), "1 B past the end");
    /* behind the last variable, where the program's data has more bytes, to the end of the page */
    uint64_t *behind = (uint64_t *)(void *)(((uintptr_t)_end + 15) & ~(uintptr_t)7);
    if ((uintptr_t)behind % 4096 >= 8)
        REFUSED(gshmem_uint64_p(behind, 1, right), "no variable is there; it is ");
    CHECK_EQ(gshmem_long_g((long *)(void *)((char *)counts + 28), right), 0);
    CHECK_EQ(gshmem_last_error(&text), GSHMEM_ERR_NOT_SYMMETRIC);
    CHECK_HAS(text, "get of 8 B");
    CHECK_OK(gshmem_long_put(counts, mine, 4, right));
    gshmem_barrier_all();
}

static void test_waits(void)
{
    size_t indices[4];
    uint64_t own = 0; /* nobody can update it */
    uint64_t *nowhere = (uint64_t *)(void *)(bytes + 4096);

    REFUSED(gshmem_uint64_wait_until(nowhere, GSHMEM_CMP_EQ, 0), "wait_until of 8 B");
    REFUSED(gshmem_uint64_wait_until(&own, GSHMEM_CMP_EQ, 0), "not symmetric");
    REFUSED(gshmem_uint64_wait_until_all(signals, 4, NULL, GSHMEM_CMP_EQ, 0), "variable signals");
    REFUSED((gshmem_status_t)(gshmem_uint64_wait_until_any(signals, 4, NULL, GSHMEM_CMP_EQ, 0) !=
                                      SIZE_MAX
                                  ? GSHMEM_OK
                                  : gshmem_last_error(NULL)),
            "wait_until_any of 32 B");
    CHECK_EQ(gshmem_uint64_wait_until_some(nowhere, 2, indices, NULL, GSHMEM_CMP_EQ, 0), 0);
    CHECK_EQ(gshmem_uint64_test(nowhere, GSHMEM_CMP_EQ, 0), 0);
    CHECK_EQ(gshmem_uint64_test_all(signals, 4, NULL, GSHMEM_CMP_EQ, 0), 0);
    CHECK_EQ(gshmem_uint64_test_any(signals + 1, 3, NULL, GSHMEM_CMP_EQ, 0), SIZE_MAX);
    CHECK_EQ(gshmem_uint64_test_some(signals, 4, indices, NULL, GSHMEM_CMP_EQ, 0), 0);
    const char *text = "";
    gshmem_signal_fetch(nowhere);
    gshmem_last_error(&text);
    CHECK_HAS(text, "signal_fetch of 8 B");
    gshmem_signal_wait_until(nowhere, GSHMEM_CMP_EQ, 0);
    gshmem_last_error(&text);
    CHECK_HAS(text, "signal_wait_until of 8 B");
}

/* The other side of a put or get need not be symmetric: but where it is in the heap, it is in an
 * object. */
static void test_local_side(void)
{
    char mine[128] = "";
    uint64_t *word = (uint64_t *)(void *)dest;

    REFUSED(gshmem_putmem(dest, bytes + 90, 11, right), "put: the local side of 11 B");
    REFUSED(gshmem_putmem_nbi(dest, bytes + 100, 1, right), "no object is there");
    REFUSED(gshmem_getmem(bytes + 99, dest, 2, right), "get: the local side of 2 B");
    REFUSED(gshmem_getmem_nbi(bytes + 4096, dest, 2, right), "no object is there");
    REFUSED(gshmem_long_iput(dest, (long *)(void *)(bytes + 8), 1, 2, 7, right),
            "iput: the local side of 104 B");
    REFUSED(gshmem_long_iget((long *)(void *)(bytes + 8), dest, 2, 1, 7, right),
            "iget: the local side of 104 B");
    REFUSED(gshmem_putmem_signal(dest + 1, bytes + 93, 8, word, 1, GSHMEM_SIGNAL_SET, right),
            "put_signal: the local side of 8 B");
    CHECK_OK(gshmem_getmem(bytes, dest, ITEMS * sizeof *dest, right));
    CHECK_OK(gshmem_putmem(dest, bytes, ITEMS * sizeof *dest, right));
    CHECK_OK(gshmem_getmem(mine, bytes, 100, right));
    CHECK_OK(gshmem_putmem(dest, bytes + 4096, 0, right));
}

static void test_locks(void)
{
    long *freed = gshmem_calloc(1, sizeof *freed);

    CHECK_OK(gshmem_free(freed));
    REFUSED(gshmem_set_lock(freed), "gshmem_set_lock of 8 B at ");
    CHECK_EQ(gshmem_test_lock(freed), -1);
    REFUSED(gshmem_clear_lock(freed), " was freed, in ");
    REFUSED(gshmem_set_lock((long *)(void *)(bytes + 104)), "no object is there");
    REFUSED(gshmem_set_lock((long *)(void *)(bytes + 96)), PAST_HEAP);
}

/* Stores behind an object, which is also in front of the next one; each is reported once. */
static void test_red_zone(void)
{
    char *first = gshmem_malloc(64), *second = gshmem_malloc(64);
    const char *text = "";

    CHECK(first && second && second > first && second - first <= 192);
    CHECK_OK(gshmem_barrier_all());
    second[-2] = 1;
    CHECK_OK(gshmem_barrier_all());
    CHECK_EQ(gshmem_last_error(&text), GSHMEM_ERR_ARGUMENT);
    CHECK_HAS(text, "gshmem_barrier_all: the program has written behind the object of 64 B at ");
    CHECK_HAS(text, " B in front of the object of 64 B at ");
    gshmem_long_p(&counts[0], 0, n); /* another failure */
    CHECK_OK(gshmem_barrier_all());
    gshmem_last_error(&text);
    CHECK_HAS(text, "with PE ");
    CHECK_OK(gshmem_free(second));
    CHECK_OK(gshmem_free(first));
    gshmem_last_error(&text);
    CHECK_HAS(text, "with PE ");
}

/* Operations on streams are checked when they run. */
static int handed;
static char handed_text[300];

static void count(gshmem_status_t status, const char *text, void *context)
{
    (void)context;
    handed += status == GSHMEM_ERR_NOT_SYMMETRIC;
    snprintf(handed_text, sizeof handed_text, "%s", text);
}

int main(void)
{
    setenv("GSHMEM_LOG", "none", 1);
    setenv("GSHMEM_ON_ERROR", "return", 1);
    setenv("GSHMEM_CHECK", "memory", 1);
    CHECK_OK(gshmem_init());
    me = gshmem_my_pe();
    n = gshmem_n_pes();
    right = (me + 1) % n;
    dest = gshmem_calloc((size_t)(ITEMS * n), sizeof *dest);
    source = gshmem_calloc((size_t)(ITEMS * n), sizeof *source);
    bytes = gshmem_malloc(100);
    CHECK(dest && source && bytes);
    test_right();
    test_collectives();
    test_variables();
    test_waits();
    test_local_side();
    test_locks();
    test_red_zone();
    gshmem_set_error_handler(count, NULL);
    CHECK_OK(gshmem_long_sum_reduce_on_stream(GSHMEM_TEAM_WORLD, dest + 1, source,
                                              (size_t)(ITEMS * n), NULL));
    CHECK_OK(gshmem_finalize());
    CHECK_EQ(handed, 1);
    CHECK_HAS(handed_text, "past the end of the object of");
    return 0;
}
