/* THREAD_MULTIPLE: four threads of every PE at once put, get, signal, order, make contexts, and share a lock. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <unistd.h>

#include "pe.h"

enum { THREADS = 4, BYTES = 96 };

struct lane {
    unsigned char bytes[BYTES];
    uint64_t signal, credit, total;
};

static struct lane lanes[THREADS]; /* symmetric: thread t of the left neighbour writes lane t */
static uint64_t shared_total;      /* all threads of all PEs add to it */
static pthread_barrier_t all_threads;
static uint64_t rounds;
static long left_locked; /* by a thread that has ended */
static long lock;        /* of all threads of all PEs, */
static uint64_t counted; /* for what it keeps right on PE 0 */

/* To the right with a signal, through a context of its own now and then. */
static void pass_on(struct lane *lane, int thread, uint64_t round, gshmem_ctx_t ctx)
{
    unsigned char local[BYTES];
    unsigned salt = (unsigned)(round * THREADS) + (unsigned)thread;

    fill(local, BYTES, me, salt);
    CHECK_EQ(gshmem_signal_wait_until(&lane->credit, GSHMEM_CMP_EQ, round - 1), round - 1);
    if (round % 3 == 0) {
        CHECK_OK(gshmem_ctx_putmem_signal(ctx, lane->bytes, local, BYTES, &lane->signal, round,
                                          GSHMEM_SIGNAL_SET, right()));
    } else {
        CHECK_OK(gshmem_ctx_putmem_nbi(ctx, lane->bytes, local, BYTES, right()));
        CHECK_OK(round % 3 == 1 ? gshmem_ctx_fence(ctx) : gshmem_ctx_quiet(ctx));
        CHECK_OK(gshmem_ctx_signal_set(ctx, &lane->signal, round, right()));
    }
    CHECK_EQ(gshmem_signal_wait_until(&lane->signal, GSHMEM_CMP_EQ, round), round);
    CHECK_FILLED(lane->bytes, BYTES, left(), salt);
    CHECK_OK(gshmem_ctx_quiet(ctx));
    CHECK_OK(gshmem_signal_set(&lane->credit, round, left()));
}

/* All threads fail, each with a PE of its own; each finds its own failure afterwards. */
static void fail_together(int no_such_pe)
{
    uint64_t value = 0;
    char expected[16];
    const char *line;

    snprintf(expected, sizeof expected, "PE %d", no_such_pe);
    CHECK(gshmem_putmem(&shared_total, &value, 8, no_such_pe) == GSHMEM_ERR_ARGUMENT);
    pthread_barrier_wait(&all_threads);
    CHECK_EQ(gshmem_last_error(&line), GSHMEM_ERR_ARGUMENT);
    CHECK_HAS(line, expected);
    pthread_barrier_wait(&all_threads);
}

/* One thread of one PE at a time, also where another of the same PE asks meanwhile. */
static void count_in_lock(uint64_t times)
{
    uint64_t value;

    for (uint64_t i = 0; i < times; i++) {
        while (i % 3 == 2 && gshmem_test_lock(&lock))
            sched_yield();
        if (i % 3 != 2)
            CHECK_OK(gshmem_set_lock(&lock));
        CHECK_OK(gshmem_getmem(&value, &counted, sizeof value, 0));
        sched_yield();
        value++;
        CHECK_OK(gshmem_putmem(&counted, &value, sizeof value, 0));
        if (i % 20 == 0) {
            CHECK_EQ(gshmem_test_lock(&lock), 1);
            CHECK_FAILS(gshmem_set_lock(&lock), GSHMEM_ERR_STATE, "would wait for itself");
        }
        CHECK_OK(gshmem_clear_lock(&lock));
    }
}

static void *work(void *argument)
{
    struct lane *lane = argument;
    int thread = (int)(lane - lanes);
    gshmem_ctx_t ctx = GSHMEM_CTX_DEFAULT;

    for (uint64_t round = 1; round <= rounds; round++) {
        if (round % 100 == 50)
            CHECK_OK(gshmem_ctx_create(GSHMEM_CTX_PRIVATE, &ctx));
        pass_on(lane, thread, round, ctx);
        CHECK_OK(gshmem_signal_add(&shared_total, round, (int)(round % (uint64_t)n)));
        CHECK_OK(gshmem_signal_add(&lane->total, 1, right()));
        if (round % 100 == 99) {
            CHECK_OK(gshmem_ctx_destroy(ctx));
            ctx = GSHMEM_CTX_DEFAULT;
        }
        if (round % 500 == 0)
            fail_together(n + thread);
    }
    count_in_lock(rounds / 10);
    return NULL;
}

static void *take_and_end(void *unused)
{
    CHECK_OK(gshmem_set_lock(&left_locked));
    return unused;
}

static void *take_after_it(void *waits)
{
    atomic_store((_Atomic bool *)waits, true);
    CHECK_OK(gshmem_set_lock(&left_locked));
    CHECK_OK(gshmem_clear_lock(&left_locked));
    return NULL;
}

/* A thread takes a lock and ends. The next one, to which the system gives the same pthread_t, does
 * not have it. */
static void take_after_a_thread_that_has_ended(void)
{
    _Atomic bool waits = false;
    pthread_t first, second;

    CHECK_EQ(pthread_create(&first, NULL, take_and_end, NULL), 0);
    CHECK_EQ(pthread_join(first, NULL), 0);
    CHECK_EQ(pthread_create(&second, NULL, take_after_it, &waits), 0);
    while (!atomic_load(&waits))
        sched_yield();
    usleep(20000); /* it is likely to have called by now; otherwise it need not wait */
    CHECK_OK(gshmem_clear_lock(&left_locked));
    CHECK_EQ(pthread_join(second, NULL), 0);
}

int main(void)
{
    pthread_t thread[THREADS];
    int provided;

    rounds = (uint64_t)how_often(1500, 500);
    setenv("GSHMEM_LOG", "none", 0);
    CHECK_OK(gshmem_init_thread(GSHMEM_THREAD_MULTIPLE, &provided));
    CHECK_EQ(provided, GSHMEM_THREAD_MULTIPLE);
    begin(); /* nested */
    CHECK_EQ(pthread_barrier_init(&all_threads, NULL, THREADS), 0);
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_create(&thread[i], NULL, work, &lanes[i]), 0);
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_join(thread[i], NULL), 0);
    barrier();
    if (me == 0)
        take_after_a_thread_that_has_ended();

    if (me == 0)
        CHECK_EQ(counted, rounds / 10 * THREADS * (uint64_t)n);
    uint64_t expected = 0;
    for (uint64_t round = 1; round <= rounds; round++) {
        if (round % (uint64_t)n == (uint64_t)me)
            expected += round * THREADS * (uint64_t)n;
    }
    CHECK_EQ(gshmem_signal_fetch(&shared_total), expected);
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(gshmem_signal_fetch(&lanes[i].total), rounds);
    end();
    CHECK_OK(gshmem_finalize());
    return 0;
}
