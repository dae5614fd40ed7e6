/* GSHMEM_CHECK=memory: each kind of operation on bytes that are in no object is refused with a line
 * that has the object, and what is right is done. Between nodes too, where the target's memory would
 * have been written. */
#include "gshmem.h"

#include "check.h"

static long variable, many[4];
static int me, n, right;
static char large[4096] __attribute__((aligned(8)));

static void test_right(void)
{
    long *object = gshmem_calloc(10, sizeof(long));
    long got[10] = {0};
    const long mine[10] = {1, 2, 3, 4, 5, 6, 7, 8, 9, me};

    CHECK(object);
    CHECK_OK(gshmem_long_put(object, mine, 10, right));
    gshmem_barrier_all();
    CHECK_EQ(object[9], (me + n - 1) % n);
    CHECK_OK(gshmem_long_get(got, object, 10, right));
    CHECK_EQ(got[9], me);
    CHECK_EQ(gshmem_long_g(object + 9, right), me);
    gshmem_barrier_all();
    gshmem_long_atomic_inc(object, right);
    gshmem_long_p(&variable, 7, right);
    gshmem_long_put(many, mine, 4, right);
    gshmem_barrier_all();
    CHECK_EQ(object[0], 2);
    CHECK_EQ(variable, 7);
    CHECK_EQ(many[3], 4);
    /* in place or not, its contents are kept and its bytes can be reached */
    object = gshmem_realloc(object, 20 * sizeof(long));
    CHECK(object && object[9] == (me + n - 1) % n);
    gshmem_long_p(object + 19, 19, right);
    gshmem_barrier_all();
    CHECK_EQ(object[19], 19);
    CHECK_OK(gshmem_long_wait_until(object + 19, GSHMEM_CMP_EQ, 19));
    CHECK_OK(gshmem_free(object));
    CHECK(!gshmem_last_error(NULL));
}

static void test_past_end(void)
{
    char *object = gshmem_malloc(100);
    uint64_t *signal = gshmem_calloc(1, sizeof *signal);
    char *next = gshmem_malloc(100); /* behind the red zone */
    const char *text = "";

    CHECK(object && signal && next);
    CHECK_FAILS(gshmem_putmem(object + 90, large, 11, right), GSHMEM_ERR_NOT_SYMMETRIC,
                "it would run 1 B past the end of the object of 100 B at ");
    CHECK_FAILS(gshmem_putmem(object, large, sizeof large, right), GSHMEM_ERR_NOT_SYMMETRIC,
                "from gshmem_malloc in ");
    CHECK_FAILS(gshmem_getmem(large, object + 100, 1, right), GSHMEM_ERR_NOT_SYMMETRIC,
                "it is 0 B past the end of the object of 100 B");
    CHECK_FAILS(gshmem_putmem_nbi(next + 100, large, 8, right), GSHMEM_ERR_NOT_SYMMETRIC,
                "no object is there");
    CHECK_FAILS(gshmem_long_p((long *)(void *)(next + 128), 1, right), GSHMEM_ERR_NOT_SYMMETRIC,
                "no object is there");
    CHECK_FAILS(gshmem_long_iput((long *)(void *)object, (const long *)(const void *)large, 4, 1, 5,
                                 right),
                GSHMEM_ERR_NOT_SYMMETRIC, "past the end of the object of 100 B");
    CHECK_FAILS(gshmem_putmem_signal(object + 64, large, 64, signal, 1, GSHMEM_SIGNAL_SET, right),
                GSHMEM_ERR_NOT_SYMMETRIC, "past the end of the object of 100 B");
    CHECK_FAILS(gshmem_putmem_signal(object, large, 64, signal + 1, 1, GSHMEM_SIGNAL_SET, right),
                GSHMEM_ERR_NOT_SYMMETRIC, "from gshmem_calloc in ");
    gshmem_long_atomic_fetch_add((long *)(void *)(signal + 1), 1, right);
    CHECK_EQ(gshmem_last_error(&text), GSHMEM_ERR_NOT_SYMMETRIC);
    CHECK_HAS(text, "no object is there");
    CHECK_FAILS(gshmem_uint64_wait_until(signal + 1, GSHMEM_CMP_EQ, 1), GSHMEM_ERR_NOT_SYMMETRIC,
                "wait_until of 8 B");
    CHECK_OK(gshmem_free(next));
    CHECK_OK(gshmem_free(signal));
    CHECK_OK(gshmem_free(object));
}

static void test_freed(void)
{
    char *object = gshmem_malloc(100);

    CHECK_OK(gshmem_free(object));
    CHECK_FAILS(gshmem_putmem(object + 8, large, 8, right), GSHMEM_ERR_NOT_SYMMETRIC,
                "the object of 100 B at ");
    CHECK_FAILS(gshmem_getmem(large, object, 100, right), GSHMEM_ERR_NOT_SYMMETRIC,
                " was freed, in ");
    char *again = gshmem_malloc(100);
    CHECK_OK(gshmem_putmem(again, large, 100, right));
    gshmem_barrier_all();
    CHECK_FAILS(gshmem_putmem(again + (1 << 20), large, 8, right), GSHMEM_ERR_NOT_SYMMETRIC,
                "no object is there");
    CHECK_OK(gshmem_free(again));
}

static void test_red_zone(void)
{
    char *object = gshmem_malloc(100);

    if (me == 0)
        object[103] = 1; /* a store of the program's own */
    gshmem_barrier_all();
    CHECK_OK(gshmem_free(object));
    const char *text = "";
    gshmem_status_t status = gshmem_last_error(&text);
    if (me == 0) {
        CHECK_EQ(status, GSHMEM_ERR_ARGUMENT);
        CHECK_HAS(text, "has written behind the object of 100 B at ");
        CHECK_HAS(text, "first 3 B behind its end");
    } else { /* the last failure is that of an earlier test */
        CHECK_EQ(status, GSHMEM_ERR_NOT_SYMMETRIC);
    }
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
    test_right();
    test_past_end();
    test_freed();
    test_red_zone();
    CHECK_OK(gshmem_finalize());
    return 0;
}
