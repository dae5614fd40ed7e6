/* Makes operations of each kind, and compares the counts with what it has made.
 *
 *     counts exact     all counts, for mapped PEs too where GSHMEM_STATS is set
 *     counts work      the same operations, for a report; each PE n + 1 times as many as PE 0 */
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "gshmem.h"

#include "check.h"

enum { LARGE = 20000, N = 7, THREADS = 4, OF_THREAD = 500, LATER = 20 };

static int me, n_pes, right;
static uint64_t *flag, *counter;
static char *memory;
static char own[LARGE];
static const char *path; /* by which the PE on the right is reached */
static bool inline_counts; /* inline operations on it are counted */

static uint64_t get(const char *kind, const char *what)
{
    char name[80];
    uint64_t value;

    snprintf(name, sizeof name, "%s.%s.%s", kind, path, what);
    CHECK_OK(gshmem_stats_get(name, &value));
    return value;
}

static uint64_t count(const char *name)
{
    uint64_t value;

    CHECK_OK(gshmem_stats_get(name, &value));
    return value;
}

/* The operations that inline code can make, and those that it cannot. */
static void make_operations(int n)
{
    for (int i = 0; i < n; i++) {
        uint64_t value = (uint64_t)i;
        CHECK_OK(gshmem_putmem(memory, &value, 8, right));
        CHECK_OK(gshmem_putmem_nbi(memory + 64, own, 9, right));
        CHECK_OK(gshmem_putmem(memory, own, LARGE, right));
        CHECK_OK(gshmem_getmem(own, memory, 512, right));
        CHECK_OK(gshmem_getmem_nbi(own + 1000, memory, 513, right));
        gshmem_uint64_atomic_add(counter, 1, right);
        gshmem_uint64_atomic_inc(counter, right);
        gshmem_uint64_atomic_fetch_add(counter, 1, right);
        CHECK_OK(gshmem_putmem_signal(memory, &value, 8, flag, 1, GSHMEM_SIGNAL_ADD, right));
        CHECK_OK(gshmem_signal_add(flag, 1, right));
        CHECK_OK(gshmem_quiet());
    }
}

static void check_operations(void)
{
    const uint64_t n = inline_counts ? N : 0; /* of those that are inline on mapped memory */

    CHECK_EQ(get("put", "operations"), 3 * n + N);
    CHECK_EQ(get("put", "bytes"), n * (8 + 9 + LARGE) + N * 8);
    CHECK_EQ(get("put", "to_8"), n + N);
    CHECK_EQ(get("put", "to_64"), n);
    CHECK_EQ(get("put", "to_32K"), n);
    CHECK_EQ(get("put", "larger"), 0);
    CHECK_EQ(get("get", "operations"), 2 * n);
    CHECK_EQ(get("get", "to_512"), n);
    CHECK_EQ(get("get", "to_4K"), n);
    CHECK_EQ(get("atomic", "operations"), 2 * n);
    CHECK_EQ(get("fetch", "operations"), n);
    CHECK_EQ(get("fetch", "bytes"), 8 * n);
    CHECK_EQ(get("signal", "operations"), 2 * N);
}

static void exact_operations(void)
{
    gshmem_stats_row_t row;
    uint64_t sum = 0;

    CHECK_OK(gshmem_barrier_all()); /* of collectives the wait for their messages is over, too */
    CHECK_OK(gshmem_stats_reset());
    make_operations(N);
    check_operations();
    for (int i = 0; i < 5; i++) {
        static const char *const kind[] = {"put", "get", "atomic", "fetch", "signal"};
        sum += get(kind[i], "operations");
    }
    CHECK_OK(gshmem_stats_peer(right, &row));
    CHECK_EQ(row.operations - get("internal", "operations"), sum);
    CHECK_OK(gshmem_barrier_all());
    CHECK_EQ(*counter, 3 * N);
    CHECK_EQ(*flag, 2 * N);
    CHECK_OK(gshmem_stats_reset());
    CHECK_EQ(get("put", "operations"), 0);
    CHECK_EQ(get("put", "to_8"), 0);
    CHECK_OK(gshmem_stats_peer(right, &row));
    CHECK_EQ(row.operations + row.bytes, 0);
}

/* What collectives send is none of the program's. */
static void exact_collectives(void)
{
    long *sums = (long *)memory;
    uint64_t calls, ns;

    CHECK_OK(gshmem_barrier_all());
    CHECK_OK(gshmem_stats_reset());
    for (int i = 0; i < N; i++)
        CHECK_OK(gshmem_long_sum_reduce(GSHMEM_TEAM_WORLD, sums, sums + 800, 800));
    CHECK_EQ(get("put", "operations"), 0);
    CHECK_EQ(get("signal", "operations"), 0);
    if (n_pes == 2 && strcmp(path, "network") == 0) /* of several PEs one sends for its node */
        CHECK(get("internal", "operations") >= N);
    for (int i = 0; i < N; i++) {
        gshmem_range_push("a \"step\"");
        CHECK_OK(gshmem_sync_all());
        gshmem_range_pop();
    }
    gshmem_range_pop(); /* one too many */
    CHECK_OK(gshmem_stats_call("gshmem_sync_all", &calls, &ns));
    CHECK_EQ(calls, gshmem_stats_all() ? N : 0);
    CHECK_OK(gshmem_stats_call("a \"step\"", &calls, &ns));
    CHECK_EQ(calls, gshmem_stats_all() ? N : 0);
    CHECK(!gshmem_stats_all() || ns > 0);
    CHECK_OK(gshmem_stats_call("gshmem_nothing", &calls, &ns));
    CHECK_EQ(calls + ns, 0);
}

static void *put_from_thread(void *unused)
{
    for (int i = 0; i < OF_THREAD; i++)
        CHECK_OK(gshmem_signal_add(flag, 1, right));
    return unused;
}

/* Each of many threads counts, at the same time and one after the other; and another one reads. */
static void exact_threads(void)
{
    pthread_t thread[THREADS];

    CHECK_OK(gshmem_stats_reset());
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_create(&thread[i], NULL, put_from_thread, NULL), 0);
    while (get("signal", "operations") < OF_THREAD / 2)
        sched_yield();
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_join(thread[i], NULL), 0);
    CHECK_EQ(get("signal", "operations"), THREADS * OF_THREAD);
    for (int i = 0; i < LATER; i++) {
        CHECK_EQ(pthread_create(&thread[0], NULL, put_from_thread, NULL), 0);
        CHECK_EQ(pthread_join(thread[0], NULL), 0);
    }
    CHECK_EQ(get("signal", "operations"), (THREADS + LATER) * OF_THREAD);
    CHECK_EQ(get("signal", "bytes"), (THREADS + LATER) * OF_THREAD * 8);
    CHECK_EQ(count("lost"), 0);
    CHECK_OK(gshmem_quiet());
    CHECK_OK(gshmem_barrier_all());
}

/* Ends the wait of the main thread when that is counted. */
static void *end_wait(void *unused)
{
    while (count("wait.variable.waits") == 0)
        sched_yield();
    gshmem_uint64_atomic_set(counter, 1000000, me);
    return unused;
}

static void exact_waits(void)
{
    gshmem_stats_row_t several;
    pthread_t thread;

    CHECK_OK(gshmem_stats_reset());
    CHECK_EQ(pthread_create(&thread, NULL, end_wait, NULL), 0);
    CHECK_OK(gshmem_uint64_wait_until(counter, GSHMEM_CMP_EQ, 1000000));
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(count("wait.variable.waits"), 1);
    CHECK(count("wait.variable.ns") > 0);
    CHECK_OK(gshmem_stats_peer(-1, &several));
    CHECK_EQ(several.wait_ns, count("wait.variable.ns"));
    CHECK_EQ(several.operations + several.bytes, 0);
    CHECK_OK(gshmem_barrier_all());
}

static void exact_others(void)
{
    gshmem_stats_row_t row;
    uint64_t value, *all = malloc((size_t)gshmem_stats_names() * sizeof *all);

    CHECK(all);
    CHECK_OK(gshmem_stats_reset());
    CHECK_OK(gshmem_buffer_register(own, sizeof own));
    CHECK_OK(gshmem_buffer_unregister(own));
    CHECK_EQ(count("registrations"), 1);
    CHECK_EQ(count("registered_bytes"), LARGE);
    make_operations(1);
    CHECK_OK(gshmem_stats_read(all, gshmem_stats_names()));
    for (int i = 0; i < gshmem_stats_names(); i++) {
        CHECK(gshmem_stats_name(i) && gshmem_stats_text(i)[0]);
        if (strncmp(gshmem_stats_name(i), "wait", 4) && strncmp(gshmem_stats_name(i), "proxy", 5) &&
            strncmp(gshmem_stats_name(i), "internal", 8))
            CHECK_EQ(all[i], count(gshmem_stats_name(i)));
    }
    CHECK(!gshmem_stats_name(-1) && !gshmem_stats_name(gshmem_stats_names()));
    CHECK(!gshmem_stats_text(-1) && !gshmem_stats_text(gshmem_stats_names()));
    CHECK_FAILS(gshmem_stats_get("put.lost.operations", &value), GSHMEM_ERR_ARGUMENT,
                "there is no count \"put.lost.operations\"");
    CHECK_FAILS(gshmem_stats_get(NULL, &value), GSHMEM_ERR_ARGUMENT, "is NULL");
    CHECK_FAILS(gshmem_stats_read(NULL, 3), GSHMEM_ERR_ARGUMENT, "3 values");
    CHECK_FAILS(gshmem_stats_peer(n_pes, &row), GSHMEM_ERR_ARGUMENT, "the job has PEs 0..");
    CHECK_FAILS(gshmem_stats_peer(0, NULL), GSHMEM_ERR_ARGUMENT, "row is NULL");
    CHECK_FAILS(gshmem_stats_call("x", &value, NULL), GSHMEM_ERR_ARGUMENT, "NULL");
    free(all);
}

static void begin(void)
{
    int provided;

    CHECK_OK(gshmem_init_thread(GSHMEM_THREAD_MULTIPLE, &provided));
    me = gshmem_my_pe();
    n_pes = gshmem_n_pes();
    right = (me + 1) % n_pes;
    memory = gshmem_calloc(1, LARGE);
    flag = gshmem_calloc(1, sizeof *flag);
    counter = gshmem_calloc(1, sizeof *counter);
    CHECK(memory && flag && counter);
    path = gshmem_ptr(memory, right) ? "mapped" : "network";
    inline_counts = gshmem_stats_all() || strcmp(path, "network") == 0;
}

int main(int argc, char **argv)
{
    uint64_t value;

    CHECK_FAILS(gshmem_stats_get("put.mapped.bytes", &value), GSHMEM_ERR_STATE, "gshmem_stats_get");
    begin();
    if (argc > 1 && strcmp(argv[1], "away") == 0) {
        CHECK_EQ(chdir("/"), 0);
        CHECK_OK(gshmem_finalize());
        return 0;
    }
    if (argc > 1 && strcmp(argv[1], "work") == 0) {
        gshmem_range_push("a name of 39 bytes, cut off within it \xc3\xb6"); /* see check.py */
        gshmem_range_pop();
        CHECK_OK(gshmem_putmem(memory, own, 8, right));
        CHECK_OK(gshmem_stats_reset()); /* also for the report */
        make_operations(me + 1);
        CHECK_OK(gshmem_barrier_all());
        CHECK_OK(gshmem_finalize());
        return 0;
    }
    exact_operations();
    exact_collectives();
    exact_threads();
    exact_waits();
    exact_others();
    CHECK_OK(gshmem_finalize());
    CHECK_OK(gshmem_init()); /* another job counts anew */
    CHECK_OK(gshmem_stats_get("put.mapped.operations", &value));
    CHECK_EQ(value, 0);
    CHECK_OK(gshmem_finalize());
    return 0;
}
