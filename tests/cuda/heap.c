/* The symmetric heap in (simulated) GPU memory: what is put there is found there, also across the pieces
 * that it grows by; memory comes when it is asked for, goes when it is freed, and a second job of the
 * process finds all as new. What the simulation counts as open at the end makes it fail. */
#include "gshmem.h"
#include "../check.h"

enum { MIB = 1 << 20 };

static int me, n, left, right;

static char mark(int pe, size_t i)
{
    return (char)(pe * 31 + i / 4096 * 7 + i % 251);
}

static char *pattern(int pe, size_t bytes)
{
    char *p = malloc(bytes);

    CHECK(p);
    for (size_t i = 0; i < bytes; i++)
        p[i] = mark(pe, i);
    return p;
}

static void check_pattern(const char *got, int pe, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        if (got[i] != mark(pe, i))
            CHECK_FAIL("byte %zu is %d, expected %d of PE %d", i, got[i], mark(pe, i), pe);
    }
}

static void zeros(void)
{
    for (int again = 0; again < 2; again++) { /* the second time where something was */
        long *words = gshmem_calloc(1000, sizeof *words), got[1000];
        CHECK(words);
        CHECK_OK(gshmem_getmem(got, words, sizeof got, right));
        for (int i = 0; i < 1000; i++)
            CHECK_EQ(got[i], 0);
        CHECK_OK(gshmem_barrier_all());
        memset(got, 0x5a, sizeof got);
        CHECK_OK(gshmem_putmem(words, got, sizeof got, right));
        CHECK_OK(gshmem_free(words));
    }
}

/* Put to the right, read at home and from the left, in pieces of odd sizes. */
static void there_and_back(char *object, size_t bytes)
{
    char *mine = pattern(me, bytes), *got = malloc(bytes);

    CHECK(got);
    CHECK_OK(gshmem_putmem(object, mine, bytes / 2 + 1, right));
    CHECK_OK(gshmem_putmem_nbi(object + bytes / 2 + 1, mine + bytes / 2 + 1, bytes - bytes / 2 - 1,
                               right));
    CHECK_OK(gshmem_barrier_all());
    CHECK_OK(gshmem_getmem(got, object, bytes, me));
    check_pattern(got, left, bytes);
    CHECK_OK(gshmem_getmem_nbi(got, object, bytes, left));
    CHECK_OK(gshmem_quiet());
    check_pattern(got, (left + n - 1) % n, bytes);
    CHECK_OK(gshmem_barrier_all());
    free(mine);
    free(got);
}

/* The library's part and the first objects are in the first piece, of 32 MiB. */
static void across_pieces(char *object, size_t bytes)
{
    const size_t window = 64 << 10;

    there_and_back(object, window + 5);
    there_and_back(object + bytes - window, window);
    for (size_t at = 4 * MIB; at + window < bytes; at += 4 * MIB)
        there_and_back(object + at - window / 2, window); /* pieces begin at such */
}

/* Beyond the first piece, an object in several pieces, and one that moves. */
static void growth(void)
{
    char *first = gshmem_malloc(20 * MIB), *second = gshmem_malloc(30 * MIB);
    char *third = gshmem_align(4096, 3 * MIB + 5), got[1000];

    CHECK(first && second && third);
    CHECK_EQ((uintptr_t)third % 4096, 0);
    across_pieces(first, 20 * MIB);
    across_pieces(second, 30 * MIB);
    there_and_back(third, sizeof got);
    third = gshmem_realloc(third, 40 * MIB);
    CHECK(third);
    CHECK_OK(gshmem_getmem(got, third, sizeof got, me));
    check_pattern(got, left, sizeof got);
    across_pieces(third, 40 * MIB);
    CHECK_OK(gshmem_free(third));
    CHECK_OK(gshmem_free(second));
    second = gshmem_malloc(50 * MIB); /* what was given back comes again */
    CHECK(second);
    across_pieces(second, 50 * MIB);
    there_and_back(first, 1000);
    CHECK_OK(gshmem_free(second));
    CHECK_OK(gshmem_free(first));
}

/* More than there is: nobody gets it, all are told, and all goes on. */
static void too_much(void)
{
    const char *line = "";

    CHECK(!gshmem_malloc((size_t)4 << 30));
    CHECK_EQ(gshmem_last_error(&line), GSHMEM_ERR_MEMORY);
    CHECK_HAS(line, me == 0 ? "no room for 4294967296 B (4 GiB)" : "no room for 4294967296 B");
}

int main(void)
{
    for (int job = 0; job < 2; job++) {
        CHECK_OK(gshmem_init());
        me = gshmem_my_pe();
        n = gshmem_n_pes();
        left = (me + n - 1) % n;
        right = (me + 1) % n;
        zeros();
        growth();
        too_much();
        CHECK(gshmem_malloc(100)); /* not freed by the program */
        CHECK_OK(gshmem_finalize());
    }
    return 0;
}
