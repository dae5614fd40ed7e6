/* Signals: who sees the signal sees the data. */
#include "pe.h"

#include <unistd.h>

enum { ROOM = 70000 };

static uint64_t signal_, credit, counter; /* symmetric */
static unsigned char *heap, *local;

typedef gshmem_status_t put_signal_function(void *dest, const void *source, size_t bytes,
                                            uint64_t *sig_addr, uint64_t signal, int signal_op,
                                            int pe);

/* A ring: to the right with a signal, credit back to the left: data is never overwritten. */
static void test_put_signal(put_signal_function *put_signal, int op, unsigned salt)
{
    static const size_t sizes[] = {0, 1, 8, 13, 64, 1000, 4096, 65537};

    const uint64_t rounds = (uint64_t)how_often(600, 120);

    signal_ = credit = 0;
    barrier();
    for (uint64_t i = 1; i <= rounds; i++) {
        size_t bytes = sizes[(i + salt) % (sizeof sizes / sizeof sizes[0])];
        if (bytes > 4096 && i % 5)
            bytes = 40;
        fill(local, bytes, me, (unsigned)i + salt);
        CHECK_EQ(gshmem_signal_wait_until(&credit, GSHMEM_CMP_GE, i - 1), i - 1);
        CHECK_OK(
            put_signal(heap, local, bytes, &signal_, op == GSHMEM_SIGNAL_SET ? i : 1, op, right()));
        CHECK_EQ(gshmem_signal_wait_until(&signal_, GSHMEM_CMP_GE, i), i);
        CHECK_FILLED(heap, bytes, left(), (unsigned)i + salt);
        CHECK_OK(gshmem_quiet()); /* local may be reused after an nbi */
        CHECK_OK(gshmem_signal_add(&credit, 1, left()));
    }
    barrier();
    CHECK_EQ(gshmem_signal_fetch(&signal_), rounds);
    CHECK_EQ(gshmem_signal_fetch(&credit), rounds);
    barrier();
}

static void test_context(void)
{
    gshmem_ctx_t ctx;
    uint64_t value = 4000 + (uint64_t)me, *cell = (uint64_t *)(void *)heap;

    signal_ = 0;
    barrier();
    CHECK_OK(gshmem_ctx_create(0, &ctx));
    CHECK_OK(
        gshmem_ctx_putmem_signal(ctx, cell, &value, 8, &signal_, 3, GSHMEM_SIGNAL_ADD, right()));
    CHECK_EQ(gshmem_signal_wait_until(&signal_, GSHMEM_CMP_NE, 0), 3);
    CHECK_EQ(*cell, 4000 + left());
    barrier();
    CHECK_OK(
        gshmem_ctx_putmem_signal_nbi(ctx, cell, &value, 8, &signal_, 9, GSHMEM_SIGNAL_SET, me));
    CHECK_EQ(gshmem_signal_wait_until(&signal_, GSHMEM_CMP_EQ, 9), 9);
    CHECK_EQ(*cell, value);
    CHECK_OK(gshmem_ctx_destroy(ctx));
    barrier();
}

/* Adds of many PEs are atomic; a set is not lost. */
static void test_add(void)
{
    const int times = how_often(500000, 20000);
    uint64_t sum = 0;

    counter = 0;
    signal_ = 0;
    barrier();
    for (int i = 0; i < times; i++) /* in turns to all and, to meet the others, to PE 0 */
        CHECK_OK(gshmem_signal_add(&counter, 1 + (uint64_t)me, i % 4 ? 0 : i / 4 % n));
    barrier();
    for (int i = 0; i < times; i++) {
        if ((i % 4 ? 0 : i / 4 % n) == me)
            sum += (uint64_t)n * (uint64_t)(n + 1) / 2;
    }
    CHECK_EQ(gshmem_signal_fetch(&counter), sum);

    CHECK_OK(gshmem_signal_set(&signal_, UINT64_MAX, right()));
    CHECK(gshmem_signal_wait_until(&signal_, GSHMEM_CMP_EQ, UINT64_MAX) == UINT64_MAX);
    barrier();
    CHECK_OK(gshmem_signal_add(&signal_, 2, right())); /* wraps */
    CHECK_EQ(gshmem_signal_wait_until(&signal_, GSHMEM_CMP_EQ, 1), 1);
    barrier();
}

/* Each comparison, true at once and unsigned: 2^63 is large. */
static void test_comparisons(void)
{
    const uint64_t big = 1ull << 63;

    signal_ = big;
    CHECK(gshmem_signal_wait_until(&signal_, GSHMEM_CMP_EQ, big) == big);
    CHECK(gshmem_signal_wait_until(&signal_, GSHMEM_CMP_NE, 0) == big);
    CHECK(gshmem_signal_wait_until(&signal_, GSHMEM_CMP_GT, 5) == big);
    CHECK(gshmem_signal_wait_until(&signal_, GSHMEM_CMP_GE, big) == big);
    CHECK(gshmem_signal_wait_until(&signal_, GSHMEM_CMP_LE, big) == big);
    CHECK(gshmem_signal_wait_until(&signal_, GSHMEM_CMP_LT, big + 1) == big);
    barrier();
}

/* Many puts of several sizes and contexts, and one counter at the target: it is waited for once. */
static void test_counted(void)
{
    static const size_t sizes[] = {1, 8, 13, 64, 1000, 4096, 20000, 0};
    enum { SIZES = sizeof sizes / sizeof sizes[0], ROUNDS = 20 };

    uint64_t due = 0;
    gshmem_ctx_t ctx;

    signal_ = credit = 0;
    barrier();
    CHECK_OK(gshmem_ctx_create(0, &ctx));
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        size_t at = 0;
        for (int i = 0; i < SIZES; at += sizes[i++]) {
            fill(local + at, sizes[i], me, (unsigned)(round + at));
            CHECK_OK(i % 2   ? gshmem_putmem_signal_counted_nbi(heap + at, local + at, sizes[i],
                                                                &signal_, right())
                     : i % 4 ? gshmem_putmem_signal_counted(heap + at, local + at, sizes[i],
                                                            &signal_, right())
                     : round % 2
                         ? gshmem_ctx_putmem_signal_counted_nbi(ctx, heap + at, local + at,
                                                                sizes[i], &signal_, right())
                         : gshmem_ctx_putmem_signal_counted(ctx, heap + at, local + at, sizes[i],
                                                            &signal_, right()));
        }
        due += at;
        gshmem_signal_counted_wait_until(&signal_, due);
        at = 0;
        for (int i = 0; i < SIZES; at += sizes[i++])
            CHECK_FILLED(heap + at, sizes[i], left(), (unsigned)(round + at));
        CHECK_OK(gshmem_ctx_quiet(ctx));
        CHECK_OK(gshmem_quiet());
        CHECK_OK(gshmem_signal_set(&credit, round, left()));
        CHECK_EQ(gshmem_signal_wait_until(&credit, GSHMEM_CMP_GE, round), round);
    }
    barrier();
    CHECK_EQ(gshmem_signal_fetch(&signal_), due);
    CHECK_OK(gshmem_signal_counted_reset(&signal_));
    CHECK_EQ(gshmem_signal_fetch(&signal_), 0);
    barrier();
    /* it goes on past the largest number */
    CHECK_OK(gshmem_signal_set(&signal_, -(uint64_t)4, right()));
    CHECK_OK(gshmem_quiet());
    barrier();
    if (me == 0) {
        usleep(50000); /* then the others most likely wait already */
        CHECK_OK(gshmem_putmem_signal_counted(heap, local, 8, &signal_, right()));
    }
    gshmem_signal_counted_wait_until(&signal_, 4);
    CHECK_EQ(gshmem_signal_fetch(&signal_), 4);
    if (me != 0)
        CHECK_OK(gshmem_putmem_signal_counted(heap, local, 8, &signal_, right()));
    CHECK_OK(gshmem_ctx_destroy(ctx));
    barrier();
}

int main(void)
{
    begin();
    heap = take(ROOM);
    local = malloc(ROOM);
    CHECK(local);
    test_comparisons();
    test_add();
    test_context();
    test_put_signal(gshmem_putmem_signal, GSHMEM_SIGNAL_SET, 0);
    test_put_signal(gshmem_putmem_signal, GSHMEM_SIGNAL_ADD, 1);
    test_put_signal(gshmem_putmem_signal_nbi, GSHMEM_SIGNAL_SET, 2);
    test_put_signal(gshmem_putmem_signal_nbi, GSHMEM_SIGNAL_ADD, 3);
    test_counted();
    free(local);
    CHECK_OK(gshmem_free(heap));
    end();
    return 0;
}
