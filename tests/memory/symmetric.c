/* Memory of the program's own as part of the symmetric heap, on the host device: peers reach it, the
 * program's own address shows the same bytes, it is the program's again afterwards with what it then holds,
 * also after finalize; and every mistake is answered on every PE. */
#define _GNU_SOURCE
#include <stdint.h>
#include <sys/mman.h>

#include "gshmem.h"

#include "check.h"

enum { PAGE = 4096, MIB = 1 << 20 };

static int me, n, left, right;
static char variable[2 * PAGE] __attribute__((aligned(PAGE)));

static void *pages(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    CHECK(p != MAP_FAILED);
    return p;
}

static long value(int pe, size_t i)
{
    return (long)i * 1000 + pe;
}

static void fill(long *at, size_t bytes)
{
    for (size_t i = 0; i < bytes / sizeof *at; i++)
        at[i] = value(me, i);
}

static void check_words(const long *at, size_t bytes, int pe)
{
    for (size_t i = 0; i < bytes / sizeof *at; i++) {
        if (at[i] != value(pe, i))
            CHECK_FAIL("word %zu is %ld, expected %ld of PE %d", i, at[i], value(pe, i), pe);
    }
}

/* What it held is there, what peers put comes, and both addresses show it. */
static void use(long *mine, size_t bytes)
{
    long *got = malloc(bytes), *shared;

    CHECK(got);
    fill(mine, bytes);
    shared = gshmem_buffer_register_symmetric(mine, bytes, 0);
    CHECK(shared && shared != mine);
    check_words(shared, bytes, me);
    CHECK(gshmem_ptr(shared, me) == shared);
    CHECK_OK(gshmem_getmem(got, shared, bytes, right));
    check_words(got, bytes, right);
    CHECK_OK(gshmem_barrier_all());
    fill(got, bytes);
    CHECK_OK(gshmem_putmem(shared, got, bytes, right));
    CHECK_OK(gshmem_barrier_all());
    check_words(mine, bytes, left);

    mine[3] = 0;
    CHECK_OK(gshmem_barrier_all());
    for (int pe = 0; pe < n; pe++)
        CHECK_OK(gshmem_long_atomic_add(&shared[3], pe + 1, pe));
    CHECK_OK(gshmem_barrier_all());
    CHECK_EQ(mine[3], (long)n * (me + 1));
    CHECK_OK(gshmem_long_sum_reduce(GSHMEM_TEAM_WORLD, shared + 8, shared + 3, 1));
    CHECK_EQ(mine[8], (long)n * n * (n + 1) / 2);

    mine[5] = 77;
    CHECK_OK(gshmem_buffer_unregister_symmetric(shared, bytes));
    CHECK_EQ(mine[3], (long)n * (me + 1));
    CHECK_EQ(mine[5], 77);
    CHECK_EQ(mine[bytes / 8 - 1], value(left, bytes / 8 - 1));
    free(got);
}

/* Its pages are no longer those of the heap: what peers put into the next object does not show. */
static void is_private_again(void)
{
    long *mine = pages(PAGE), *other;
    long *shared = gshmem_buffer_register_symmetric(mine, PAGE, 0);

    CHECK(shared);
    CHECK_OK(gshmem_buffer_unregister_symmetric(shared, PAGE));
    mine[0] = 5;
    other = gshmem_align(PAGE, PAGE);
    CHECK(other == shared); /* best fit */
    CHECK_OK(gshmem_long_p(other, 6, right));
    CHECK_OK(gshmem_barrier_all());
    CHECK_EQ(mine[0], 5);
    CHECK_OK(gshmem_free(other));
    CHECK_EQ(munmap(mine, PAGE), 0);
}

/* Where the program prefers it, as far as that is free; a buffer and what is there before and behind
 * it are not in each other's way. */
static void preferred(void)
{
    enum { PIECES = 8 };
    long *mine = pages(2 * PAGE), *other = pages(PAGE), *shared, *second;
    char *object = gshmem_align(PAGE, PIECES * PAGE);

    CHECK(object);
    CHECK_OK(gshmem_free(object)); /* its pages are free */
    fill(mine, 2 * PAGE);
    shared = gshmem_buffer_register_symmetric_at(mine, 2 * PAGE, object + 3 * PAGE, 0);
    CHECK((char *)shared == object + 3 * PAGE);
    check_words(shared, 2 * PAGE, me);
    CHECK_OK(gshmem_barrier_all());
    CHECK_OK(gshmem_long_p(&shared[1], 44, right));

    /* not free, in part or as a whole; not at a page; not in the heap; none */
    void *const no[] = {shared, (char *)shared + PAGE, object + 5 * PAGE + 8, &mine, mine, NULL};
    for (size_t i = 0; i < sizeof no / sizeof no[0]; i++) {
        second = gshmem_buffer_register_symmetric_at(other, PAGE, no[i], 0);
        CHECK(second && second != no[i]);
        CHECK((char *)second + PAGE <= (char *)shared || (char *)second >= (char *)shared + 2 * PAGE);
        CHECK_OK(gshmem_buffer_unregister_symmetric(second, PAGE));
    }
    /* right before it, and right behind it */
    second = gshmem_buffer_register_symmetric_at(other, PAGE, object + 2 * PAGE, 0);
    CHECK((char *)second == object + 2 * PAGE);
    CHECK_OK(gshmem_buffer_unregister_symmetric(second, PAGE));
    second = gshmem_buffer_register_symmetric_at(other, PAGE, object + 5 * PAGE, 0);
    CHECK((char *)second == object + 5 * PAGE);
    CHECK_OK(gshmem_long_p(&second[1], 55, right));
    CHECK_OK(gshmem_barrier_all());
    CHECK_EQ(mine[1], 44);
    CHECK_EQ(other[1], 55);
    CHECK_OK(gshmem_buffer_unregister_symmetric(shared, 2 * PAGE));

    /* PEs that prefer different places */
    if (n > 1) {
        const char *text = "";
        CHECK(!gshmem_buffer_register_symmetric_at(mine, 2 * PAGE, me == 1 ? NULL : object, 0));
        CHECK_EQ(gshmem_last_error(&text), GSHMEM_ERR_MISMATCH);
        CHECK_HAS(text, "PE 1 prefers no place of the heap, PE 0 prefers offset ");
    }
    CHECK_OK(gshmem_buffer_unregister_symmetric(second, PAGE));
    CHECK_EQ(munmap(mine, 2 * PAGE) | munmap(other, PAGE), 0);
}

static void several(void)
{
    long *mine[5], *shared[5];
    long *object = gshmem_malloc(100);

    CHECK(object);
    for (int i = 0; i < 5; i++) {
        mine[i] = pages((size_t)(i + 1) * PAGE);
        shared[i] = gshmem_buffer_register_symmetric(mine[i], (size_t)(i + 1) * PAGE, 0);
        CHECK(shared[i]);
        CHECK_OK(gshmem_long_p(shared[i], 10 * i + me, right));
    }
    CHECK_OK(gshmem_barrier_all());
    for (int i = 0; i < 5; i++)
        CHECK_EQ(mine[i][0], 10 * i + left);
    for (int i = 4; i >= 0; i -= 2)
        CHECK_OK(gshmem_buffer_unregister_symmetric(shared[i], (size_t)(i + 1) * PAGE));
    for (int i = 1; i < 5; i += 2) {
        CHECK_EQ(gshmem_long_g(shared[i], left), 10 * i + (left + n - 1) % n);
        CHECK_OK(gshmem_buffer_unregister_symmetric(shared[i], (size_t)(i + 1) * PAGE));
    }
    for (int i = 0; i < 5; i++)
        CHECK_EQ(munmap(mine[i], (size_t)(i + 1) * PAGE), 0);
    CHECK_OK(gshmem_free(object));
}

/* ---- Mistakes ---- */

static void refused(void *addr, size_t bytes, int flags, gshmem_status_t status, const char *part)
{
    const char *text = "";

    CHECK(!gshmem_buffer_register_symmetric(addr, bytes, flags));
    CHECK_EQ(gshmem_last_error(&text), status);
    if (me == 0)
        CHECK_HAS(text, part);
}

static void mistakes(void)
{
    char *mine = pages(4 * PAGE), *object = gshmem_malloc(MIB), *shared, on_stack[3 * PAGE];
    char *page_of_stack = (char *)(((uintptr_t)on_stack + PAGE) / PAGE * PAGE);

    CHECK(object);
    on_stack[0] = 0;
    refused(NULL, PAGE, 0, GSHMEM_ERR_ARGUMENT, "gshmem_buffer_register_symmetric: 4096 B at");
    refused(mine, 0, 0, GSHMEM_ERR_ARGUMENT, "are no buffer");
    refused(mine, SIZE_MAX - 8, 0, GSHMEM_ERR_ARGUMENT, "are no buffer");
    refused(mine, PAGE, 3, GSHMEM_ERR_ARGUMENT, "flags 0x3");
    refused(mine + 8, PAGE, 0, GSHMEM_ERR_ARGUMENT, "begins and ends where pages of 4096 B do not");
    refused(mine, PAGE - 8, 0, GSHMEM_ERR_ARGUMENT, "begins and ends where pages");
    refused(object, MIB, 0, GSHMEM_ERR_ARGUMENT, "overlap the symmetric heap");
    refused(variable, PAGE, 0, GSHMEM_ERR_ARGUMENT, "it is shared memory, or a file's");
    refused(page_of_stack, PAGE, 0, GSHMEM_ERR_ARGUMENT, "it is on the stack");
    CHECK_EQ(mprotect(mine + PAGE, PAGE, PROT_READ), 0);
    refused(mine, 4 * PAGE, 0, GSHMEM_ERR_ARGUMENT, "read and written");
    CHECK_EQ(munmap(mine + PAGE, PAGE), 0);
    refused(mine, 4 * PAGE, 0, GSHMEM_ERR_ARGUMENT, "less memory there");
    CHECK_OK(gshmem_buffer_register(mine + 3 * PAGE, 8));
    refused(mine + 2 * PAGE, 2 * PAGE, 0, GSHMEM_ERR_ARGUMENT, "by gshmem_buffer_register");
    CHECK_OK(gshmem_buffer_unregister(mine + 3 * PAGE));

    shared = gshmem_buffer_register_symmetric(mine + 2 * PAGE, 2 * PAGE, 0);
    CHECK(shared);
    refused(mine + 3 * PAGE, PAGE, 0, GSHMEM_ERR_ARGUMENT, "are registered already");
    CHECK_EQ(gshmem_free(shared), GSHMEM_ERR_ARGUMENT);
    CHECK(!gshmem_realloc(shared, 8));
    CHECK_EQ(gshmem_last_error(NULL), GSHMEM_ERR_ARGUMENT);
    if (me == 0) {
        CHECK_FAILS(gshmem_buffer_unregister_symmetric(shared + PAGE, PAGE), GSHMEM_ERR_ARGUMENT,
                    "inside the buffer");
        CHECK_FAILS(gshmem_buffer_unregister_symmetric(shared, PAGE), GSHMEM_ERR_ARGUMENT,
                    "was registered with 8192 B, not 4096");
        CHECK_FAILS(gshmem_buffer_unregister_symmetric(mine + 2 * PAGE, 2 * PAGE), GSHMEM_ERR_ARGUMENT,
                    "the program's own address of the buffer: pass");
        CHECK_FAILS(gshmem_buffer_unregister_symmetric(object, MIB), GSHMEM_ERR_ARGUMENT,
                    "no buffer is registered as symmetric");
    } else { /* the others would do well */
        for (int i = 0; i < 4; i++)
            CHECK(gshmem_buffer_unregister_symmetric(shared, 2 * PAGE) != GSHMEM_OK);
    }
    CHECK_OK(gshmem_buffer_unregister_symmetric(shared, 2 * PAGE));
    CHECK(gshmem_buffer_unregister_symmetric(shared, 2 * PAGE) == GSHMEM_ERR_ARGUMENT);
    CHECK_EQ(munmap(mine, PAGE) | munmap(mine + 2 * PAGE, 2 * PAGE), 0);
    CHECK_OK(gshmem_free(object));
}

/* PEs that do not ask for the same: both are named, and nothing has changed for either. */
static void differences(void)
{
    long *mine = pages(2 * PAGE), *object;
    const char *text = "";

    if (n == 1)
        return;
    mine[0] = 11 + me;
    CHECK(!gshmem_buffer_register_symmetric(mine, me == 1 ? 2 * PAGE : PAGE, 0));
    CHECK_EQ(gshmem_last_error(&text), GSHMEM_ERR_MISMATCH);
    CHECK_HAS(text, "gshmem_buffer_register_symmetric: PE 1 asks for 8192 B, PE 0 asks for 4096 B");
    if (me == 1)
        object = gshmem_malloc(PAGE);
    else
        object = gshmem_buffer_register_symmetric(mine, PAGE, 0);
    CHECK(!object);
    CHECK_EQ(gshmem_last_error(&text), GSHMEM_ERR_MISMATCH);
    CHECK_HAS(text, "PE 1 calls gshmem_malloc, PE 0 calls gshmem_buffer_register_symmetric");
    CHECK(!gshmem_buffer_register_symmetric(me == 1 ? (char *)mine + 8 : (void *)mine, PAGE, 0));
    if (me != 1) {
        gshmem_last_error(&text);
        CHECK_HAS(text, "refused by PE 1");
    }
    CHECK_EQ(mine[0], 11 + me);
    CHECK_EQ(munmap(mine, 2 * PAGE), 0);
}

/* The program unmaps it, or puts something else there: that is left alone. */
static void gone_meanwhile(void)
{
    char *mine = pages(2 * PAGE), *shared = gshmem_buffer_register_symmetric(mine, 2 * PAGE, 0);

    CHECK(shared);
    CHECK_EQ(munmap(mine, 2 * PAGE), 0);
    CHECK(mmap(mine, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
          mine);
    mine[0] = 9;
    shared[0] = 8;
    CHECK_OK(gshmem_buffer_unregister_symmetric(shared, 2 * PAGE));
    CHECK_EQ(mine[0], 9);
    CHECK_EQ(munmap(mine, 2 * PAGE), 0);

    mine = pages(2 * PAGE);
    shared = gshmem_buffer_register_symmetric(mine, 2 * PAGE, 0);
    CHECK(shared);
    CHECK_EQ(munmap(mine + PAGE, PAGE), 0);
    CHECK_OK(gshmem_buffer_unregister_symmetric(shared, 2 * PAGE));
    CHECK_EQ(msync(mine + PAGE, PAGE, MS_ASYNC), -1); /* nothing is there */
    CHECK_EQ(munmap(mine, PAGE), 0);
}

int main(void)
{
    long *left_over[2];

    setenv("GSHMEM_LOG", "none", 1);
    CHECK(!gshmem_buffer_register_symmetric(variable, PAGE, 0));
    CHECK_FAILS(gshmem_buffer_unregister_symmetric(variable, PAGE), GSHMEM_ERR_STATE, "gshmem_init");
    for (int job = 0; job < 2; job++) {
        CHECK_OK(gshmem_init());
        me = gshmem_my_pe();
        n = gshmem_n_pes();
        left = (me + n - 1) % n;
        right = (me + 1) % n;
        long *mine = aligned_alloc(PAGE, 3 * PAGE);
        CHECK(mine);
        use(mine, 3 * PAGE);
        use(mine, PAGE); /* again */
        free(mine);
        mine = pages(5 * MIB);
        use(mine, 5 * MIB);
        CHECK_EQ(munmap(mine, 5 * MIB), 0);
        is_private_again();
        preferred();
        several();
        mistakes();
        differences();
        gone_meanwhile();
        left_over[job] = pages(2 * PAGE);
        long *shared = gshmem_buffer_register_symmetric(left_over[job], 2 * PAGE, 0);
        CHECK(shared);
        CHECK_OK(gshmem_long_p(shared, 4 + job, right));
        CHECK_OK(gshmem_finalize());
        left_over[job][1] = 1;
    }
    for (int job = 0; job < 2; job++) {
        CHECK_EQ(left_over[job][0], 4 + job);
        CHECK_EQ(munmap(left_over[job], 2 * PAGE), 0);
    }
    return 0;
}
