/* The symmetric heap as a program sees it: where objects lie, what is in them, what goes back. */
#define _GNU_SOURCE
#include <stdint.h>

#include "gshmem.h"

#include "check.h"
#include "held.h"

enum { MIB = 1 << 20 };

static int me, n, n_here; /* n_here: PEs of this host, whose memory one file holds */

/* ---- What is in an object: a pattern that tells object, PE and place apart ---- */

static unsigned char pattern(int object, int pe, size_t i)
{
    return (unsigned char)((size_t)object * 31 + (size_t)pe * 7 + i * 13 + (i >> 8));
}

/* Everyone fills the right neighbour's copy. */
static void fill(unsigned char *object, int number, size_t bytes)
{
    unsigned char *source = malloc(bytes + 1);
    int right = (me + 1) % n;

    CHECK(source);
    for (size_t i = 0; i < bytes; i++)
        source[i] = pattern(number, right, i);
    CHECK_OK(gshmem_putmem(object, source, bytes, right));
    free(source);
}

static void check(const unsigned char *object, int number, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        if (object[i] != pattern(number, me, i))
            CHECK_FAIL("object %d of %zu bytes: byte %zu is %d, expected %d", number, bytes, i,
                       object[i], pattern(number, me, i));
    }
}

static void check_alignment(const void *object, size_t bytes)
{
    CHECK(object);
    CHECK_EQ((uintptr_t)object % (bytes < 64 ? 16 : 64), 0);
    /* The others' copies lie just as well. */
    for (int pe = 0; pe < n; pe++)
        CHECK_EQ((uintptr_t)gshmem_ptr(object, pe) % (bytes < 64 ? 16 : 64), 0);
}

/* ---- Tests ---- */

static void zero_bytes(void)
{
    gshmem_status_t before = gshmem_last_error(NULL);

    CHECK(!gshmem_malloc(0));
    CHECK(!gshmem_calloc(0, 8));
    CHECK(!gshmem_calloc(8, 0));
    CHECK(!gshmem_align(64, 0));
    CHECK(!gshmem_malloc_with_hints(0, 0));
    CHECK(!gshmem_realloc(NULL, 0));
    CHECK_OK(gshmem_free(NULL));
    CHECK_EQ(gshmem_last_error(NULL), before); /* none of this is a failure */
}

static void alignments(void)
{
    void *objects[22];

    for (int i = 0; i < 22; i++) {
        size_t alignment = (size_t)1 << i;
        objects[i] = i < 3 ? gshmem_malloc(1) : gshmem_align(alignment, 24);
        CHECK(objects[i]);
        for (int pe = 0; pe < n; pe++)
            CHECK_EQ((uintptr_t)gshmem_ptr(objects[i], pe) % alignment, 0);
    }
    for (int i = 0; i < 22; i++)
        CHECK_OK(gshmem_free(objects[i]));
    /* Beyond a huge page, for objects of less, and of more than that. */
    for (size_t alignment = (size_t)4 << 20; alignment <= (size_t)16 << 20; alignment *= 2) {
        void *small = gshmem_align(alignment, 100),
             *large = gshmem_align(alignment, (size_t)3 << 20);
        CHECK(small && (uintptr_t)small % alignment == 0);
        CHECK(large && (uintptr_t)large % alignment == 0);
        CHECK_OK(gshmem_free(small));
        CHECK_OK(gshmem_free(large));
    }
    void *large = gshmem_malloc(5 * MIB);
    CHECK_EQ((uintptr_t)large % (2 * MIB), 0);
    CHECK_OK(gshmem_free(large));
}

/* The same sequence of random calls on all PEs. */
static void random_calls(int calls)
{
    enum { OBJECTS = 64 };
    unsigned char *object[OBJECTS] = {NULL};
    size_t bytes[OBJECTS] = {0};
    uint32_t random = 12345;

    for (int i = 0; i < calls; i++) {
        random = random * 1664525 + 1013904223;
        int o = random >> 26;
        size_t size = 1 + (random >> 8) % (i % 16 ? 3000 : 300000);
        if (!object[o]) {
            object[o] = gshmem_malloc(size);
        } else if (random & 64) {
            check(object[o], o, bytes[o]);
            unsigned char *grown = gshmem_realloc(object[o], size);
            CHECK(grown);
            check(grown, o, size < bytes[o] ? size : bytes[o]);
            object[o] = grown;
        } else {
            check(object[o], o, bytes[o]);
            CHECK_OK(gshmem_free(object[o]));
            object[o] = NULL;
            continue;
        }
        check_alignment(object[o], bytes[o] ? 1 : size);
        bytes[o] = size;
        gshmem_barrier_all(); /* all have checked what was there */
        fill(object[o], o, size);
        gshmem_barrier_all();
    }
    for (int o = 0; o < OBJECTS; o++) {
        if (object[o])
            check(object[o], o, bytes[o]);
        CHECK_OK(gshmem_free(object[o]));
    }
}

static void is_zero(const unsigned char *object, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        if (object[i])
            CHECK_FAIL("byte %zu of %zu is %d, expected 0", i, bytes, object[i]);
    }
}

static void calloc_is_zero(void)
{
    static const size_t sizes[] = {1, 100, 5000, 100000, 3 * MIB + 77};

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        size_t bytes = sizes[i];
        unsigned char *before = gshmem_malloc(48), *dirty = gshmem_malloc(bytes);
        /* Beyond it, so that it is not at the end of the heap. */
        unsigned char *keep = gshmem_malloc(bytes < 2 * MIB ? 48 : 2 * MIB);
        CHECK(before && keep > dirty && dirty > before);
        memset(before, 0xaa, 48);
        memset(keep, 0xbb, 48);
        gshmem_barrier_all();
        fill(dirty, 3, bytes);
        CHECK_OK(gshmem_free(dirty));
        unsigned char *zero = gshmem_calloc(1, bytes);
        CHECK(zero == dirty);
        is_zero(zero, bytes);
        for (int b = 0; b < 48; b++)
            CHECK(before[b] == 0xaa && keep[b] == 0xbb);
        gshmem_barrier_all();
        fill(zero, 4, bytes);
        gshmem_barrier_all();
        check(zero, 4, bytes);
        CHECK_OK(gshmem_free(zero));
        CHECK_OK(gshmem_free(keep));
        CHECK_OK(gshmem_free(before));
        zero = gshmem_calloc(bytes, 1); /* where the end was given back */
        CHECK(zero);
        is_zero(zero, bytes);
        CHECK_OK(gshmem_free(zero));
    }
}

static void realloc_in_all_ways(void)
{
    unsigned char *a = gshmem_realloc(NULL, 1000), *b, *wall;

    CHECK(a);
    gshmem_barrier_all();
    fill(a, 9, 1000);
    CHECK((b = gshmem_realloc(a, 5000)) == a); /* in place: there is room behind it */
    check(b, 9, 1000);
    wall = gshmem_malloc(16);
    CHECK(wall);
    CHECK((b = gshmem_realloc(a, 50000)) != a); /* and here is none */
    check(b, 9, 1000);
    CHECK((b = gshmem_realloc(b, 10)) != NULL);
    check(b, 9, 10);
    CHECK(!gshmem_realloc(b, 0));
    CHECK_FAILS(gshmem_free(b), GSHMEM_ERR_ARGUMENT, "freed before");
    CHECK_OK(gshmem_free(wall));
    /* Small objects lie closer together than those of a cache line, which they may become. */
    unsigned char *small[4];
    for (int i = 0; i < 4; i++)
        CHECK((small[i] = gshmem_malloc(16)) != NULL);
    for (int i = 3; i >= 0; i--) {
        fill(small[i], i, 16);
        CHECK((small[i] = gshmem_realloc(small[i], 4096)) != NULL);
        check_alignment(small[i], 4096);
        check(small[i], i, 16);
    }
    for (int i = 0; i < 4; i++)
        CHECK_OK(gshmem_free(small[i]));
}

static void memory_goes_back(void)
{
    enum { BYTES = 16 * MIB };
    char *small = gshmem_malloc(100), *large, *middle;
    size_t before, with, after;

    gshmem_barrier_all();
    before = bytes_held();
    CHECK(before > 0);
    large = gshmem_malloc(BYTES);
    middle = gshmem_malloc(2 * MIB);
    CHECK(small && middle > large && large > small);
    memset(large, 1, BYTES);
    gshmem_barrier_all();
    with = bytes_held();
    CHECK(with >= before + (size_t)n_here * BYTES);
    CHECK_OK(gshmem_free(large)); /* not at the end of the heap */
    gshmem_barrier_all();
    after = bytes_held();
    CHECK(after < before + MIB);

    large = gshmem_malloc(BYTES);
    CHECK(large);
    for (int i = 0; i < BYTES; i += 4096)
        CHECK_EQ(large[i], 0);
    /* What was touched goes back, also where the beginning of the object was not. */
    CHECK_OK(gshmem_free(large));
    large = gshmem_malloc(BYTES);
    CHECK(large);
    memset(large + BYTES / 2, 1, BYTES / 2);
    gshmem_barrier_all();
    CHECK(bytes_held() >= before + (size_t)n_here * BYTES / 2);
    CHECK_OK(gshmem_free(large));
    gshmem_barrier_all();
    CHECK(bytes_held() < before + MIB);
    CHECK_OK(gshmem_free(middle));
    CHECK_OK(gshmem_free(small));

    /* Many small ones, each too small to be given back by itself. */
    char *objects[512];
    for (int i = 0; i < 512; i++) {
        objects[i] = gshmem_malloc(5000);
        CHECK(objects[i]);
        memset(objects[i], 1, 5000);
    }
    gshmem_barrier_all();
    CHECK(bytes_held() > before + (size_t)n_here * 2 * MIB);
    gshmem_barrier_all();
    for (int i = 0; i < 512; i++)
        CHECK_OK(gshmem_free(objects[i]));
    gshmem_barrier_all();
    CHECK(bytes_held() < before + MIB);
}

/* Memory that was freed is kept, as it comes back zeroed and page by page; but only so much of it. */
static void memory_is_kept(void)
{
    enum { EACH = 8 * MIB, OBJECTS = 8, KEEP = 32 * MIB };
    char *object[OBJECTS], *last;
    size_t before, kept;

    gshmem_barrier_all();
    before = bytes_held();
    gshmem_barrier_all();
    object[0] = gshmem_malloc(EACH);
    CHECK(object[0]);
    memset(object[0], 1, EACH);
    gshmem_barrier_all();
    CHECK_OK(gshmem_free(object[0])); /* the last in the heap */
    gshmem_barrier_all();
    CHECK(bytes_held() >= before + (size_t)n_here * EACH);
    gshmem_barrier_all();

    for (int i = 0; i < OBJECTS; i++) {
        CHECK(object[i] = gshmem_malloc(EACH));
        memset(object[i], 1, EACH);
    }
    last = gshmem_malloc(2 * MIB);
    CHECK(last > object[OBJECTS - 1]);
    gshmem_barrier_all();
    CHECK(bytes_held() >= before + (size_t)n_here * OBJECTS * EACH);
    for (int i = 0; i < OBJECTS; i++)
        CHECK_OK(gshmem_free(object[i])); /* in front of the last */
    gshmem_barrier_all();
    kept = bytes_held() - before;
    CHECK(kept >= (size_t)n_here * 2 * EACH); /* what alignment skips is free, too */
    CHECK(kept <= (size_t)n_here * (KEEP + 8 * MIB));
    gshmem_barrier_all();
    CHECK_OK(gshmem_free(last)); /* all of that is behind the last object now, but no more */
    gshmem_barrier_all();
    CHECK(bytes_held() >= before + kept);
    gshmem_barrier_all();

    /* Behind the last object, an object as large as what is kept stays, although alignment skips
     * almost a huge page in front of it. Of a larger object, as much stays. */
    last = gshmem_malloc(100);
    CHECK(last);
    for (int times = 1; times <= 2; times++) {
        const size_t bytes = (size_t)times * KEEP;
        object[0] = gshmem_malloc(bytes);
        CHECK(object[0] > last);
        memset(object[0], 1, bytes);
        gshmem_barrier_all();
        CHECK(bytes_held() >= before + (size_t)n_here * bytes);
        CHECK_OK(gshmem_free(object[0]));
        gshmem_barrier_all();
        kept = bytes_held() - before;
        CHECK(kept >= (size_t)n_here * (KEEP - 2 * MIB));
        CHECK(kept <= (size_t)n_here * (KEEP + 2 * MIB) + MIB);
        gshmem_barrier_all();
        CHECK(object[0] = gshmem_malloc(bytes));
        CHECK_EQ(object[0][bytes - 1], times == 1);
        CHECK_OK(gshmem_free(object[0]));
    }
    CHECK_OK(gshmem_free(last));
}

/* What no program uses is not there: a large object takes no memory until it is touched. */
static void grows_on_demand(void)
{
    size_t before, bytes = 48 * MIB;

    gshmem_barrier_all();
    before = bytes_held();
    gshmem_barrier_all();
    char *sparse = gshmem_calloc(bytes / 16, 16);
    CHECK(sparse);
    sparse[bytes - 1] = sparse[bytes / 2] = 1;
    gshmem_barrier_all();
    CHECK(bytes_held() < before + 5 * (size_t)n_here * MIB); /* at most two huge pages */
    CHECK_OK(gshmem_free(sparse));
}

/* Bytes of the shared memory that would go into a core dump, which makes what it reads: "dd" among
 * the flags of a mapping keeps it out. */
static size_t bytes_dumped(void)
{
    char line[512];
    unsigned long begin, end, bytes = 0, all = 0;
    FILE *f = fopen("/proc/self/smaps", "r");

    CHECK(f);
    while (fgets(line, sizeof line, f)) {
        if (sscanf(line, "%lx-%lx ", &begin, &end) == 2)
            bytes = strstr(line, "memfd:gshmem") ? end - begin : 0;
        if (strncmp(line, "VmFlags:", 8) == 0 && !strstr(line, " dd"))
            all += bytes;
    }
    fclose(f);
    return all;
}

static void dumps_stay_small(void)
{
    size_t before = bytes_dumped();

    CHECK(before < 64 * MIB); /* program data, and under clang's sanitizers theirs */
    void *object = gshmem_malloc(100);
    CHECK(object && bytes_dumped() > 0 && bytes_dumped() <= before + 2 * MIB);
    void *large = gshmem_malloc(256 * MIB);
    CHECK(large && bytes_dumped() > before && bytes_dumped() < 100 * MIB);
    CHECK_OK(gshmem_free(large));
    CHECK_OK(gshmem_free(object));
}

static void hints(void)
{
    const long both = GSHMEM_MALLOC_ATOMICS_REMOTE | GSHMEM_MALLOC_SIGNAL_REMOTE;
    void *a = gshmem_malloc_with_hints(64, GSHMEM_MALLOC_ATOMICS_REMOTE);
    void *b = gshmem_malloc_with_hints(64, both);

    CHECK(a && b && a != b);
    CHECK_OK(gshmem_free(a));
    CHECK_OK(gshmem_free(b));
}

int main(int argc, char **argv)
{
    for (int round = 0; round < 2; round++) {
        setenv("GSHMEM_HEAP_KEEP", "0", 1);
        CHECK_OK(gshmem_init());
        me = gshmem_my_pe();
        n = gshmem_n_pes();
        n_here = gshmem_team_n_pes(GSHMEM_TEAM_HOST);
        dumps_stay_small();
        zero_bytes();
        alignments();
        hints();
        calloc_is_zero();
        realloc_in_all_ways();
        grows_on_demand();
        memory_goes_back();
        random_calls(argc > 1 ? atoi(argv[1]) : 300);
        CHECK(gshmem_malloc(1000)); /* not freed: finalize takes it */
        CHECK_OK(gshmem_finalize());
    }
    setenv("GSHMEM_HEAP_KEEP", "32M", 1);
    CHECK_OK(gshmem_init());
    memory_is_kept();
    CHECK_OK(gshmem_finalize());
    return 0;
}
