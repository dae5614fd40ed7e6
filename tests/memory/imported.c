/* Gets and small puts of memory of the program's own, one right behind the other: the small puts are records of a batch
 * that is open, and requests to a PE keep the order of its calls, also where the object is memory that was made part
 * of the heap, and the local side is a buffer that was registered. */
#define _GNU_SOURCE
#include <stdint.h>
#include <sys/mman.h>

#include "../pe/pe.h"

enum {
    WORDS = 1 << 20, /* more than the connection takes at once: the end of a get's data is sent late */
    SMALL = 200,     /* less than a full batch */
    ROUNDS = 12,
};

static long *shared; /* imported: [WORDS] */
static long *got;    /* registered, and not symmetric: [WORDS] */
static int to;
static long elsewhere;

static void *pages(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    CHECK(p != MAP_FAILED);
    return p;
}

static long value(int pe, int round, size_t i)
{
    return (long)i * 10000 + round * 100 + pe;
}

static void fill_words(long *at, int pe, int round)
{
    for (size_t i = 0; i < WORDS; i++)
        at[i] = value(pe, round, i);
}

static void check_words(const char *what, const long *at, size_t first, size_t end, int pe, int round)
{
    for (size_t i = first; i < end; i++) {
        if (at[i] != value(pe, round, i))
            CHECK_FAIL("%s: word %zu is %ld, expected %ld", what, i, at[i], value(pe, round, i));
    }
}

/* The last words of the object, which a get sends last. */
static void put_last(int round)
{
    for (size_t i = WORDS - SMALL; i < WORDS; i++) {
        const long word = value(me, round, i);
        CHECK_OK(gshmem_putmem_nbi(&shared[i], &word, sizeof word, to));
    }
}

/* The get brings what was there before the puts behind it. What is in flight before it makes all of these records: a
 * put of its own would wait for the get at the target, and they behind it. */
static void puts_behind_a_get(int round)
{
    fill_words(shared, me, round);
    barrier();
    for (int i = 0; i < 2; i++)
        CHECK_OK(gshmem_long_p(&elsewhere, round, to));
    CHECK_OK(gshmem_getmem_nbi(got, shared, WORDS * sizeof *got, to));
    put_last(round + 1);
    CHECK_OK(gshmem_quiet());
    check_words("a get before puts", got, 0, WORDS, to, round);
    barrier();
    check_words("puts behind a get", shared, 0, WORDS - SMALL, me, round);
    check_words("puts behind a get", shared, WORDS - SMALL, WORDS, left(), round + 1);
    barrier();
}

/* The get brings what the puts before it have put. */
static void puts_before_a_get(int round)
{
    fill_words(shared, me, round);
    barrier();
    put_last(round + 1);
    CHECK_OK(gshmem_getmem_nbi(got, shared, WORDS * sizeof *got, to));
    CHECK_OK(gshmem_quiet());
    check_words("a get behind puts", got, 0, WORDS - SMALL, to, round);
    check_words("a get behind puts", got, WORDS - SMALL, WORDS, me, round + 1);
    barrier();
}

/* What is put has been copied when a get writes to where it was. */
static void puts_from_where_a_get_goes(int round)
{
    fill_words(shared, me, round);
    for (size_t i = 0; i < WORDS; i++)
        got[i] = value(me, round + 1, i);
    barrier();
    for (size_t i = WORDS - SMALL; i < WORDS; i++)
        CHECK_OK(gshmem_putmem_nbi(&shared[i], &got[i], sizeof got[i], to));
    CHECK_OK(gshmem_getmem_nbi(got, shared, WORDS / 2 * sizeof *got, to));
    CHECK_OK(gshmem_getmem_nbi(got + WORDS / 2, shared, WORDS / 2 * sizeof *got, to));
    CHECK_OK(gshmem_quiet());
    check_words("a get to the source of puts", got, 0, WORDS / 2, to, round);
    barrier();
    check_words("puts from where a get goes", shared, WORDS - SMALL, WORDS, left(), round + 1);
    barrier();
}

int main(void)
{
    begin();
    to = right();
    got = pages(WORDS * sizeof *got);
    CHECK_OK(gshmem_buffer_register(got, WORDS * sizeof *got));
    shared = gshmem_buffer_register_symmetric(pages(WORDS * sizeof *shared), WORDS * sizeof *shared, 0);
    CHECK(shared);
    for (int round = 0; round < ROUNDS; round++) {
        puts_behind_a_get(3 * round);
        puts_before_a_get(3 * round);
        puts_from_where_a_get_goes(3 * round);
    }
    CHECK_OK(gshmem_buffer_unregister_symmetric(shared, WORDS * sizeof *shared));
    CHECK_OK(gshmem_buffer_unregister(got));
    end();
    return 0;
}
