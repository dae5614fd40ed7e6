/* Mistakes of a program: each is refused with its status, and a line that names the culprit. */
#include <stdint.h>

#include "pe.h"

static uint64_t cell[8];     /* symmetric */
static const uint64_t fixed; /* not: read-only */
static char no_such_pe[32];  /* "PE n" */

static void test_bad_pe(void)
{
    uint64_t value = 1;
    int beyond = n, pes[2] = {0, n};

    snprintf(no_such_pe, sizeof no_such_pe, "PE %d", n);
    CHECK_FAILS(gshmem_putmem(cell, &value, 8, n), GSHMEM_ERR_ARGUMENT, no_such_pe);
    CHECK_FAILS(gshmem_putmem(cell, &value, 0, n), GSHMEM_ERR_ARGUMENT, no_such_pe);
    CHECK_FAILS(gshmem_putmem(cell, &value, 8, -1), GSHMEM_ERR_ARGUMENT, "PE -1");
    CHECK_FAILS(gshmem_putmem_nbi(cell, &value, 8, INT32_MIN), GSHMEM_ERR_ARGUMENT,
                "PE -2147483648");
    CHECK_FAILS(gshmem_getmem(&value, cell, 8, n), GSHMEM_ERR_ARGUMENT, no_such_pe);
    CHECK_FAILS(gshmem_getmem_nbi(&value, cell, 8, -5), GSHMEM_ERR_ARGUMENT, "PE -5");
    CHECK_FAILS(gshmem_ctx_iputmem(GSHMEM_CTX_DEFAULT, cell, &value, 1, 1, 8, 1, n),
                GSHMEM_ERR_ARGUMENT, no_such_pe);
    CHECK_FAILS(gshmem_ctx_ibgetmem(GSHMEM_CTX_DEFAULT, &value, cell, 1, 1, 1, 8, 1, n),
                GSHMEM_ERR_ARGUMENT, no_such_pe);
    CHECK_FAILS(gshmem_signal_add(cell, 1, n), GSHMEM_ERR_ARGUMENT, no_such_pe);
    CHECK_FAILS(gshmem_signal_set(cell, 1, n), GSHMEM_ERR_ARGUMENT, no_such_pe);
    CHECK_FAILS(gshmem_putmem_signal(cell, &value, 8, &cell[1], 1, GSHMEM_SIGNAL_SET, n),
                GSHMEM_ERR_ARGUMENT, no_such_pe);
    CHECK_FAILS(gshmem_pe_quiet(&beyond, 1), GSHMEM_ERR_ARGUMENT, no_such_pe);
    CHECK_FAILS(gshmem_pe_quiet(pes, 2), GSHMEM_ERR_ARGUMENT, no_such_pe);
}

/* Somebody's stack, somebody's malloc, a constant, NULL, and an object that ends too soon. */
static void test_not_symmetric(uint64_t *heap, size_t bytes)
{
    uint64_t value = 1, local[2] = {0};
    uint64_t *own = malloc(sizeof *own);
    char text[32];

    snprintf(text, sizeof text, "%p", (void *)local);
    CHECK_FAILS(gshmem_putmem(local, &value, 8, 0), GSHMEM_ERR_NOT_SYMMETRIC, text);
    CHECK_FAILS(gshmem_getmem(&value, local, 8, 0), GSHMEM_ERR_NOT_SYMMETRIC, text);
    CHECK_FAILS(gshmem_signal_set(local, 1, 0), GSHMEM_ERR_NOT_SYMMETRIC, text);
    CHECK_FAILS(gshmem_ctx_iputmem(GSHMEM_CTX_DEFAULT, local, &value, 1, 1, 8, 1, 0),
                GSHMEM_ERR_NOT_SYMMETRIC, text);
    CHECK_FAILS(gshmem_putmem_signal(cell, &value, 8, local, 1, GSHMEM_SIGNAL_SET, 0),
                GSHMEM_ERR_NOT_SYMMETRIC, text);
    CHECK_FAILS(gshmem_putmem_signal(local, &value, 8, cell, 1, GSHMEM_SIGNAL_SET, 0),
                GSHMEM_ERR_NOT_SYMMETRIC, text);
    CHECK_EQ(cell[0], 0); /* nothing was signalled */
    snprintf(text, sizeof text, "%p", (void *)own);
    CHECK_FAILS(gshmem_putmem(own, &value, 8, 0), GSHMEM_ERR_NOT_SYMMETRIC, text);
    CHECK_FAILS(gshmem_putmem((void *)(uintptr_t)&fixed, &value, 8, 0), GSHMEM_ERR_NOT_SYMMETRIC,
                "not symmetric");
    CHECK_FAILS(gshmem_putmem(NULL, &value, 8, 0), GSHMEM_ERR_NOT_SYMMETRIC, "not symmetric");
    CHECK_FAILS(gshmem_getmem(&value, NULL, 8, 0), GSHMEM_ERR_NOT_SYMMETRIC, "not symmetric");
    free(own);
    /* the object that is not symmetric; of those that are copied in place, in a call, and by the network */
    for (int pe = 0; pe < n; pe++) {
        CHECK_FAILS(gshmem_putmem(heap, NULL, 8, pe), GSHMEM_ERR_ARGUMENT, "put of 8 B: source is NULL");
        CHECK_FAILS(gshmem_putmem_nbi(heap, NULL, 64, pe), GSHMEM_ERR_ARGUMENT, "put of 64 B: source is NULL");
        CHECK_FAILS(gshmem_getmem(NULL, heap, 8, pe), GSHMEM_ERR_ARGUMENT, "get of 8 B: dest is NULL");
        CHECK_FAILS(gshmem_getmem_nbi(NULL, heap, 64, pe), GSHMEM_ERR_ARGUMENT, "get of 64 B: dest is NULL");
        CHECK_FAILS(gshmem_uint64_atomic_fetch_add_nbi(NULL, heap, 1, pe), GSHMEM_ERR_ARGUMENT,
                    "atomic_fetch_add_nbi with PE");
        CHECK_FAILS(gshmem_float_atomic_swap_nbi(NULL, (float *)heap, 1, pe), GSHMEM_ERR_ARGUMENT, "fetch is NULL");
        CHECK_OK(gshmem_putmem(heap, NULL, 0, pe));
        CHECK_OK(gshmem_getmem(NULL, heap, 0, pe));
    }

    /* far past the end of any segment */
    CHECK(gshmem_putmem(heap, &value, SIZE_MAX, 0) == GSHMEM_ERR_NOT_SYMMETRIC);
    CHECK(gshmem_getmem(&value, heap, SIZE_MAX / 2, 0) == GSHMEM_ERR_NOT_SYMMETRIC);
    CHECK(gshmem_putmem((char *)heap + (1ull << 46), &value, 8, 0) == GSHMEM_ERR_NOT_SYMMETRIC);
    (void)bytes;
}

static void test_strides(uint64_t *heap)
{
    gshmem_ctx_t ctx = GSHMEM_CTX_DEFAULT;
    uint64_t local[64] = {0};

    CHECK_FAILS(gshmem_ctx_iputmem(ctx, heap, local, 0, 1, 8, 2, 0), GSHMEM_ERR_ARGUMENT, "0");
    CHECK_FAILS(gshmem_ctx_iputmem(ctx, heap, local, 1, -3, 8, 2, 0), GSHMEM_ERR_ARGUMENT, "-3");
    CHECK_FAILS(gshmem_ctx_igetmem(ctx, local, heap, -4, 1, 8, 2, 0), GSHMEM_ERR_ARGUMENT, "-4");
    CHECK_FAILS(gshmem_ctx_igetmem(ctx, local, heap, 1, 0, 8, 2, 0), GSHMEM_ERR_ARGUMENT, "0");
    CHECK_FAILS(gshmem_ctx_ibputmem(ctx, heap, local, 3, 4, 4, 8, 2, 0), GSHMEM_ERR_ARGUMENT, "3");
    CHECK_FAILS(gshmem_ctx_ibgetmem(ctx, local, heap, 4, 2, 4, 8, 2, 0), GSHMEM_ERR_ARGUMENT, "2");
    CHECK_FAILS(gshmem_ctx_iputmem(ctx, heap, NULL, 1, 1, 8, 2, n - 1), GSHMEM_ERR_ARGUMENT, "iput of 16 B: source is NULL");
    CHECK_FAILS(gshmem_ctx_ibgetmem(ctx, NULL, heap, 4, 4, 4, 8, 2, n - 1), GSHMEM_ERR_ARGUMENT, "dest is NULL");
    CHECK_OK(gshmem_ctx_iputmem(ctx, heap, NULL, 1, 1, 8, 0, n - 1));
    /* n elements far apart reach beyond the heap, or around the address space */
    CHECK(gshmem_ctx_iputmem(ctx, heap, local, PTRDIFF_MAX / 8, 1, 8, 3, 0) != GSHMEM_OK);
    CHECK(gshmem_ctx_iputmem(ctx, heap, local, 1, 1, 8, SIZE_MAX / 2, 0) != GSHMEM_OK);
    CHECK(gshmem_ctx_ibgetmem(ctx, local, heap, 1 << 20, 1 << 20, SIZE_MAX / 4, 8, 8, 0) !=
          GSHMEM_OK);
}

static void test_signal(void)
{
    uint64_t value = 1, odd[2];

    CHECK_FAILS(gshmem_putmem_signal(&cell[1], &value, 8, cell, 1, 0, 0), GSHMEM_ERR_ARGUMENT, "0");
    CHECK_FAILS(gshmem_putmem_signal(&cell[1], &value, 8, cell, 1, 77, 0), GSHMEM_ERR_ARGUMENT,
                "77");
    CHECK_FAILS(gshmem_putmem_signal_nbi(&cell[1], &value, 8, NULL, 1, GSHMEM_SIGNAL_SET, 0),
                GSHMEM_ERR_NOT_SYMMETRIC, "signal");
    CHECK_FAILS(gshmem_putmem_signal(&cell[1], NULL, 8, cell, 1, GSHMEM_SIGNAL_SET, 0), GSHMEM_ERR_ARGUMENT,
                "put_signal of 8 B: source is NULL");
    CHECK_EQ(cell[0], 0);
    (void)odd;
}

static void test_teams(void)
{
    gshmem_team_t team = GSHMEM_TEAM_INVALID;
    gshmem_team_config_t config;

    CHECK_FAILS(gshmem_team_sync(GSHMEM_TEAM_INVALID), GSHMEM_ERR_ARGUMENT, "team_sync");
    CHECK_FAILS(gshmem_barrier((gshmem_team_t)200), GSHMEM_ERR_ARGUMENT, "200");
    CHECK_FAILS(gshmem_team_destroy(GSHMEM_TEAM_INVALID), GSHMEM_ERR_ARGUMENT, "team_destroy");
    CHECK_FAILS(gshmem_team_destroy(GSHMEM_TEAM_WORLD), GSHMEM_ERR_ARGUMENT, "team_destroy");
    CHECK_FAILS(gshmem_team_get_config((gshmem_team_t)-9, 0, &config), GSHMEM_ERR_ARGUMENT, "-9");
    CHECK_EQ(gshmem_team_my_pe((gshmem_team_t)99), -1);
    CHECK_EQ(gshmem_team_n_pes(GSHMEM_TEAM_INVALID), -1);
    CHECK_EQ(gshmem_team_translate_pe(GSHMEM_TEAM_WORLD, n, GSHMEM_TEAM_WORLD), -1);
    CHECK_EQ(gshmem_team_translate_pe(GSHMEM_TEAM_WORLD, 0, GSHMEM_TEAM_INVALID), -1);
    CHECK_FAILS(gshmem_team_split_strided(GSHMEM_TEAM_WORLD, 0, 1, n + 1, NULL, 0, &team),
                GSHMEM_ERR_ARGUMENT, "team_split_strided");
    CHECK_FAILS(gshmem_team_split_strided(GSHMEM_TEAM_WORLD, -1, 1, 1, NULL, 0, &team),
                GSHMEM_ERR_ARGUMENT, "-1");
    CHECK_FAILS(gshmem_team_split_strided(GSHMEM_TEAM_WORLD, 0, 1, 1, NULL, 0, NULL),
                GSHMEM_ERR_ARGUMENT, "NULL");
    CHECK_EQ(team, GSHMEM_TEAM_INVALID);
    barrier();
}

static void test_memory(uint64_t *heap)
{
    uint64_t local;

    CHECK(gshmem_free(heap + 1) != GSHMEM_OK);
    CHECK(gshmem_free(&local) != GSHMEM_OK);
    CHECK(!gshmem_align(24, 64)); /* not a power of two */
    CHECK(!gshmem_calloc(SIZE_MAX / 2, 4));
    CHECK(!gshmem_malloc(SIZE_MAX));
    CHECK(!gshmem_malloc(0));
    CHECK_OK(gshmem_free(NULL));
}

int main(void)
{
    setenv("GSHMEM_LOG", "none", 0);
    begin();
    uint64_t *heap = take(4096);
    test_bad_pe();
    test_not_symmetric(heap, 4096);
    test_strides(heap);
    test_signal();
    test_teams();
    test_memory(heap);
    CHECK_OK(gshmem_free(heap));
    end();
    return 0;
}
