/* Mistakes with the symmetric heap: each is answered on every PE, told once, and harmless. */
#define _GNU_SOURCE
#include <stdint.h>
#include <sys/mman.h>

#include "gshmem.h"

#include "check.h"

enum { MIB = 1 << 20 };

static int me, n, last;
static int variable;
static int said;              /* what this PE writes to stderr goes here */
static long lines, all_lines; /* symmetric */

/* How many lines with this text all PEs have written since the last call. */
static void check_said(int expected, const char *part)
{
    char text[8192];
    ssize_t bytes = pread(said, text, sizeof text - 1, 0);

    CHECK(bytes >= 0);
    text[bytes] = 0;
    CHECK_EQ(ftruncate(said, 0), 0);
    CHECK_EQ(lseek(said, 0, SEEK_SET), 0);
    lines = 0;
    for (const char *at = text; (at = strstr(at, part)); at++)
        lines++;
    CHECK_OK(gshmem_long_sum_reduce(GSHMEM_TEAM_WORLD, &all_lines, &lines, 1));
    if (all_lines != expected)
        CHECK_FAIL("\"%s\" was said %ld times, expected %d; here: %s", part, all_lines, expected,
                   text);
}

/* The call just made failed here like this; one PE said so. */
static void check_failed(gshmem_status_t status, const char *part)
{
    const char *text = "";

    CHECK_EQ(gshmem_last_error(&text), status);
    CHECK_HAS(text, part);
    check_said(1, part);
}

/* The same, where one PE alone made the mistake and speaks: the others say who it is. */
static void check_refused_by(int pe, gshmem_status_t status, const char *part)
{
    const char *text = "";

    CHECK_EQ(gshmem_last_error(&text), status);
    if (me == pe || n == 1) {
        CHECK_HAS(text, part);
    } else {
        char who[32];
        snprintf(who, sizeof who, "refused by PE %d", pe);
        CHECK_HAS(text, who);
    }
    check_said(1, part);
}

static void before_init(void)
{
    CHECK(!gshmem_malloc(8));
    CHECK_EQ(gshmem_last_error(NULL), GSHMEM_ERR_STATE);
    CHECK(!gshmem_calloc(8, 8) && !gshmem_align(8, 8) && !gshmem_realloc(NULL, 8));
    CHECK(!gshmem_malloc_with_hints(8, 0));
    CHECK_FAILS(gshmem_free(&variable), GSHMEM_ERR_STATE, "gshmem_free");
}

static void pointers(void)
{
    char *object = gshmem_malloc(100), *gone = gshmem_malloc(100), local = 0;
    const char *text;

    CHECK(object && gone);
    CHECK_EQ(gshmem_free(&local), GSHMEM_ERR_NOT_SYMMETRIC);
    check_failed(GSHMEM_ERR_NOT_SYMMETRIC, "is not in the symmetric heap");
    CHECK_EQ(gshmem_free(&variable), GSHMEM_ERR_NOT_SYMMETRIC);
    check_failed(GSHMEM_ERR_NOT_SYMMETRIC, "is a variable of the program");
    CHECK_EQ(gshmem_free(object + 16), GSHMEM_ERR_ARGUMENT);
    check_failed(GSHMEM_ERR_ARGUMENT, "is 16 bytes inside the object of 100 bytes");
    CHECK_EQ(gshmem_free(object + MIB), GSHMEM_ERR_ARGUMENT);
    check_failed(GSHMEM_ERR_ARGUMENT, "no object begins there");
    CHECK_OK(gshmem_free(gone));
    CHECK_EQ(gshmem_free(gone), GSHMEM_ERR_ARGUMENT);
    check_failed(GSHMEM_ERR_ARGUMENT, "was freed before");
    CHECK(!gshmem_realloc(gone, 10));
    check_failed(GSHMEM_ERR_ARGUMENT, "gshmem_realloc: the object");
    CHECK(!gshmem_realloc(object + 1, 10));
    check_failed(GSHMEM_ERR_ARGUMENT, "is 1 bytes inside");
    if (n > 1) {
        int other = (me + 1) % n;
        CHECK_EQ(gshmem_free(gshmem_ptr(object, other)), GSHMEM_ERR_NOT_SYMMETRIC);
        gshmem_last_error(&text);
        CHECK(me == 0 ? strstr(text, "is PE 1's copy") != NULL : 1);
        check_said(1, "copy of an object: pass this PE's own address");
    }
    memset(object, 5, 100); /* it has survived all this */
    CHECK_OK(gshmem_free(object));
    check_said(0, "gshmem");
}

static void arguments(void)
{
    CHECK(!gshmem_align(24, 100));
    check_failed(GSHMEM_ERR_ARGUMENT, "alignment 24 is not a power of two");
    CHECK(!gshmem_align(4, 100));
    check_failed(GSHMEM_ERR_ARGUMENT, "alignment 4 is not a power of two of at least 8");
    CHECK(!gshmem_align(0, 100));
    check_failed(GSHMEM_ERR_ARGUMENT, "alignment 0 is not");
    CHECK(!gshmem_align((size_t)2048 * MIB, 100));
    check_failed(GSHMEM_ERR_UNSUPPORTED, "at most 1073741824");
    CHECK(!gshmem_calloc(SIZE_MAX / 2, 3));
    check_failed(GSHMEM_ERR_ARGUMENT, "more than can be addressed");
    CHECK(!gshmem_malloc_with_hints(8, 0x40));
    check_failed(GSHMEM_ERR_ARGUMENT, "hints 0x40: only 0x7 are known");
}

/* GSHMEM_HEAP_MAX is 8 MiB. */
static void exhaustion(void)
{
    char *most = gshmem_malloc(8 * MIB), *small;

    CHECK(most);
    memset(most, 1, 8 * MIB);
    CHECK(!gshmem_malloc(16));
    check_failed(GSHMEM_ERR_MEMORY,
                 "no room for 16 B (16 B) aligned to 16: of the symmetric heap of 8 MiB, 8 MiB are "
                 "used by 1 objects, and the largest free range is 0 B; GSHMEM_HEAP_MAX");
    CHECK_OK(gshmem_free(most));
    small = gshmem_malloc(16);
    CHECK(!gshmem_malloc(8 * MIB));
    check_failed(GSHMEM_ERR_MEMORY, "gshmem_malloc: no room for 8388608 B (8 MiB)");
    CHECK(!gshmem_calloc(9, MIB));
    check_failed(GSHMEM_ERR_MEMORY, "gshmem_calloc: no room");
    CHECK(!gshmem_malloc(SIZE_MAX));
    check_failed(GSHMEM_ERR_MEMORY, "no room");
    memset(small, 7, 16);
    CHECK(!gshmem_realloc(small, 9 * MIB)); /* fails, and small is as it was */
    check_failed(GSHMEM_ERR_MEMORY, "gshmem_realloc: no room");
    CHECK_EQ(small[15], 7);
    most = gshmem_malloc(8 * MIB - 64); /* not at a huge page boundary, but it fits */
    CHECK(most);
    CHECK_OK(gshmem_free(most));
    CHECK_OK(gshmem_free(small));
}

/* One PE, the last, does otherwise. */
static void disagreement(void)
{
    int odd = me == last;
    char *a = gshmem_malloc(64), *b = gshmem_malloc(64), *c, part[100];

    CHECK(a && b);
    CHECK(!gshmem_malloc(odd ? 64 : 128));
    snprintf(part, sizeof part, "gshmem_malloc: PE %d asks for 64 B, PE 0 asks for 128 B", last);
    check_failed(GSHMEM_ERR_MISMATCH, part);
    CHECK(!gshmem_malloc(odd ? 0 : 8));
    snprintf(part, sizeof part, "PE %d asks for 0 B, PE 0 asks for 8 B", last);
    check_failed(GSHMEM_ERR_MISMATCH, part);
    CHECK(!gshmem_malloc(odd ? 64 * MIB : 8)); /* that it has no room for it is not the point */
    check_failed(GSHMEM_ERR_MISMATCH, "asks for 67108864 B, PE 0 asks for 8 B");
    CHECK(!gshmem_align(odd ? 256 : 4096, 8));
    check_failed(GSHMEM_ERR_MISMATCH,
                 "asks for an alignment of 256, PE 0 asks for an alignment of");
    CHECK(!gshmem_malloc_with_hints(8, odd));
    check_failed(GSHMEM_ERR_MISMATCH, "gives hints 0x1, PE 0 gives hints 0");
    CHECK_EQ(gshmem_free(odd ? a : b), GSHMEM_ERR_MISMATCH);
    check_failed(GSHMEM_ERR_MISMATCH, ", PE 0 passes the object at offset");
    CHECK_EQ(gshmem_free(odd ? NULL : b), GSHMEM_ERR_MISMATCH);
    check_failed(GSHMEM_ERR_MISMATCH, "passes NULL, PE 0 passes the object at offset");
    CHECK(!gshmem_realloc(a, odd ? 65 : 66));
    check_failed(GSHMEM_ERR_MISMATCH, "gshmem_realloc");

    if (odd)
        CHECK(!gshmem_malloc(8));
    else
        CHECK_EQ(gshmem_free(a), GSHMEM_ERR_MISMATCH);
    check_said(1, odd ? "gshmem_malloc" : "calls gshmem_malloc, PE 0 calls gshmem_free");

    CHECK_EQ(gshmem_free(odd ? a + 8 : a), GSHMEM_ERR_ARGUMENT);
    check_refused_by(last, GSHMEM_ERR_ARGUMENT, "is 8 bytes inside the object");
    CHECK(!gshmem_align(odd ? 24 : 32, 8));
    check_refused_by(last, GSHMEM_ERR_ARGUMENT, "alignment 24 is not a power of two");

    /* Nothing of all this has moved the heaps apart. */
    c = gshmem_malloc(64);
    CHECK(c);
    for (int pe = 0; pe < n; pe++)
        gshmem_putmem(c + pe, "x", 1, pe);
    gshmem_barrier_all();
    CHECK_EQ(c[me], 'x');
    CHECK_OK(gshmem_free(a));
    CHECK_OK(gshmem_free(b));
    CHECK_OK(gshmem_free(c));
}

/* A library's or another collective in place of malloc is noticed by all, too. */
static void another_collective(void)
{
    if (me == last)
        CHECK_EQ(gshmem_barrier_all(), GSHMEM_ERR_MISMATCH);
    else
        CHECK(!gshmem_malloc(8));
    CHECK_EQ(gshmem_last_error(NULL), GSHMEM_ERR_MISMATCH);
    check_said(0, "nothing"); /* empties the file; how often collectives speak is their affair */
    void *still = gshmem_malloc(8);
    CHECK(still);
    CHECK_OK(gshmem_free(still));
}

/* Told at the end of the job, to whoever asks for information. */
static void not_freed(void)
{
    char text[8192];

    setenv("GSHMEM_LOG", "info", 1);
    CHECK_OK(gshmem_init());
    CHECK(gshmem_malloc(100) && gshmem_malloc(3000));
    CHECK_EQ(ftruncate(said, 0), 0);
    CHECK_EQ(lseek(said, 0, SEEK_SET), 0);
    CHECK_OK(gshmem_finalize());
    ssize_t bytes = pread(said, text, sizeof text - 1, 0);
    CHECK(bytes >= 0);
    text[bytes] = 0;
    CHECK_EQ(strstr(text, "has not freed 2 symmetric objects, 3.047 KiB") != NULL, me == 0);
}

int main(void)
{
    /* Descriptor 2, where the library writes, goes to a file; stderr, where checks do, stays. */
    said = memfd_create("stderr", MFD_CLOEXEC);
    stderr = fdopen(dup(2), "w");
    CHECK(said >= 0 && stderr && dup2(said, 2) == 2);
    setenv("GSHMEM_HEAP_MAX", "8M", 1);
    setenv("GSHMEM_LOG", "error", 1);
    before_init();
    CHECK_OK(gshmem_init());
    me = gshmem_my_pe();
    n = gshmem_n_pes();
    last = n - 1;
    check_said(n, "gshmem_free: ");
    pointers();
    arguments();
    exhaustion();
    if (n > 1) {
        disagreement();
        another_collective();
    }
    CHECK_OK(gshmem_finalize());
    before_init();
    not_freed();
    return 0;
}
