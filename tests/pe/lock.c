/* Locks: one holder at a time, in the order in which they asked, and mistakes. */
#include <sched.h>
#include <stdint.h>
#include <time.h>

#include "pe.h"

static long lock, other; /* symmetric, 0 at first */
static long counter, released, turn;
static long order[64];

static void pause_ms(long ms)
{
    struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

    nanosleep(&t, NULL);
}

/* Not atomic on purpose: only the lock keeps it right. */
static void add_one(long *to)
{
    long value;

    CHECK_OK(gshmem_getmem(&value, to, sizeof value, 0));
    sched_yield(); /* whoever should not be here comes now */
    value++;
    CHECK_OK(gshmem_putmem(to, &value, sizeof value, 0));
}

static long read_first(const long *from)
{
    long value;

    CHECK_OK(gshmem_getmem(&value, from, sizeof value, 0));
    return value;
}

static void test_exclusion(void)
{
    enum { TIMES = 400 };

    counter = 0;
    barrier();
    for (int i = 0; i < TIMES; i++) {
        CHECK_OK(gshmem_set_lock(&lock));
        add_one(&counter);
        CHECK_OK(gshmem_clear_lock(&lock));
    }
    barrier();
    CHECK_EQ(read_first(&counter), (long)TIMES * n);
    barrier();
}

static void test_try(void)
{
    enum { TIMES = 100 };

    counter = 0;
    barrier();
    for (int done = 0; done < TIMES;) {
        int answer = gshmem_test_lock(&other);
        CHECK(answer == 0 || answer == 1);
        if (answer == 0) {
            add_one(&counter);
            CHECK_OK(gshmem_clear_lock(&other));
            done++;
        } else {
            pause_ms(0);
        }
    }
    barrier();
    CHECK_EQ(read_first(&counter), (long)TIMES * n);
    barrier();
}

/* set and test on one lock, and a lock in the heap. */
static void test_mixed(void)
{
    long *mine = take(sizeof *mine);

    *mine = 0;
    counter = 0;
    barrier();
    for (int i = 0; i < 100; i++) {
        if ((i + me) % 2)
            CHECK_OK(gshmem_set_lock(mine));
        else
            while (gshmem_test_lock(mine) == 1)
                pause_ms(0);
        add_one(&counter);
        CHECK_OK(gshmem_clear_lock(mine));
    }
    barrier();
    CHECK_EQ(read_first(&counter), 100L * n);

    if (me == 0) {
        CHECK_OK(gshmem_set_lock(mine));
        CHECK_OK(gshmem_set_lock(&other)); /* two at once */
    }
    barrier();
    CHECK_EQ(gshmem_test_lock(mine), 1); /* whoever has it */
    if (me == 0)
        CHECK_FAILS(gshmem_set_lock(mine), GSHMEM_ERR_STATE, "would wait for itself");
    barrier();
    if (me == 0) {
        CHECK_OK(gshmem_clear_lock(mine));
        CHECK_OK(gshmem_clear_lock(&other));
    }
    barrier();
    CHECK_OK(gshmem_free(mine));
}

/* Who is the last in the lock's queue, as a PE + 1: the lock has it in its low half at its home, and nothing
 * elsewhere. */
static int last_in_queue(void)
{
    for (int pe = 0; pe < n; pe++) {
        uint32_t last = gshmem_uint32_atomic_fetch((const uint32_t *)(const void *)&lock, pe);
        if (last)
            return (int)last;
    }
    return 0;
}

/* PE 0 holds the lock while the others ask one after another; they must get it in that order. */
static void test_fair(void)
{
    released = turn = 0;
    barrier();
    if (me == 0)
        CHECK_OK(gshmem_set_lock(&lock));
    barrier();
    if (me == 0) {
        while (last_in_queue() != n)
            pause_ms(1);
        released = 1;
    } else {
        while (last_in_queue() != me)
            pause_ms(1);
        CHECK_OK(gshmem_set_lock(&lock));
        CHECK_EQ(read_first(&released), 1);
        long place = read_first(&turn);
        CHECK_OK(gshmem_putmem(&order[place], &(long){me}, sizeof(long), 0));
        add_one(&turn);
    }
    CHECK_OK(gshmem_clear_lock(&lock));
    barrier();
    if (me == 0) {
        for (int i = 0; i < n - 1; i++)
            CHECK_EQ(order[i], i + 1);
    }
    barrier();
}

/* What is under way is complete when clear_lock returns. */
static void test_completes_gets(void)
{
    enum { BYTES = 1 << 20 };
    unsigned char *there = gshmem_malloc(BYTES), *here = malloc(BYTES);

    CHECK(there && here);
    for (int round = 1; round <= 5; round++) {
        memset(there, round, BYTES);
        memset(here, 0, BYTES);
        barrier();
        CHECK_OK(gshmem_set_lock(&lock));
        CHECK_OK(gshmem_getmem_nbi(here, there, BYTES, right()));
        CHECK_OK(gshmem_clear_lock(&lock));
        CHECK_EQ(here[0], round);
        CHECK_EQ(here[BYTES - 1], round);
        barrier();
    }
    free(here);
    CHECK_OK(gshmem_free(there));
}

/* What was put under the lock is there for the next holder: clear_lock completes it. */
static void test_completes(void)
{
    static uint64_t cells[64];

    memset(cells, 0, sizeof cells);
    barrier();
    for (uint64_t i = 0; i < 50; i++) {
        uint64_t value[64], next = 0;
        CHECK_OK(gshmem_set_lock(&lock));
        CHECK_OK(gshmem_getmem(value, cells, sizeof value, n - 1));
        for (int w = 1; w < 64; w++)
            CHECK_EQ(value[w], value[0]);
        next = value[0] + 1;
        for (int w = 0; w < 64; w++)
            CHECK_OK(gshmem_putmem_nbi(&cells[w], &next, sizeof next, n - 1));
        CHECK_OK(gshmem_clear_lock(&lock));
    }
    barrier();
    if (me == n - 1)
        CHECK_EQ(cells[0], 50 * n);
    barrier();
}

static void test_mistakes(void)
{
    long local = 0;

    CHECK_FAILS(gshmem_clear_lock(&lock), GSHMEM_ERR_STATE, "clear_lock");
    CHECK_FAILS(gshmem_set_lock(NULL), GSHMEM_ERR_NOT_SYMMETRIC, "set_lock");
    CHECK_FAILS(gshmem_set_lock(&local), GSHMEM_ERR_NOT_SYMMETRIC, "set_lock");
    CHECK_FAILS(gshmem_clear_lock(&local), GSHMEM_ERR_NOT_SYMMETRIC, "clear_lock");
    CHECK_EQ(gshmem_test_lock(&local), -1);
    CHECK_EQ(gshmem_test_lock(NULL), -1);
    barrier();

    /* held by another */
    if (me == 0)
        CHECK_OK(gshmem_set_lock(&lock));
    barrier();
    if (me != 0)
        CHECK_FAILS(gshmem_clear_lock(&lock), GSHMEM_ERR_STATE, "clear_lock");
    barrier();
    if (me == 0)
        CHECK_OK(gshmem_clear_lock(&lock));
    barrier();
    CHECK_OK(gshmem_set_lock(&lock)); /* none of it did harm */
    CHECK_OK(gshmem_clear_lock(&lock));
    barrier();
}

int main(void)
{
    setenv("GSHMEM_LOG", "none", 0);
    setenv("GSHMEM_ON_ERROR", "return", 0);
    begin();
    test_exclusion();
    test_try();
    test_mixed();
    test_fair();
    test_completes();
    test_completes_gets();
    test_mistakes();
    end();
    return 0;
}
