/* Jobs whose traces are known: how many operations there are, or which chain of waits is the critical
 * path.
 *
 *     work WAY [N] */
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "gshmem.h"

#include "check.h"

enum { LARGE = 20000 };

static int me, n_pes, right;
static uint64_t *flag, *counter;
static char *memory;
static char own[LARGE];

static void compute(int ms)
{
    const struct timespec time = {ms / 1000, ms % 1000 * 1000000};

    nanosleep(&time, NULL);
}

/* Of each kind n operations, all of them to the PE on the right. */
static void way_operations(int n)
{
    for (int i = 0; i < n; i++) {
        uint64_t value = (uint64_t)i;
        gshmem_range_push("a step");
        CHECK_OK(gshmem_putmem(memory, &value, sizeof value, right));
        CHECK_OK(gshmem_putmem(memory + 8, own, LARGE - 8, right));
        CHECK_OK(gshmem_getmem(own, memory, 4096, right));
        gshmem_uint64_atomic_add(counter, 1, right);
        gshmem_uint64_atomic_fetch_add(counter, 1, right);
        CHECK_OK(gshmem_putmem_signal(memory, &value, sizeof value, flag, 1, GSHMEM_SIGNAL_ADD, right));
        CHECK_OK(gshmem_quiet());
        gshmem_range_pop();
    }
    gshmem_signal_wait_until(flag, GSHMEM_CMP_EQ, (uint64_t)n);
    CHECK_OK(gshmem_barrier_all());
    CHECK_EQ(*counter, 2 * (uint64_t)n);
}

/* PE 0 computes and signals PE 1, which computes and signals PE 2, … */
static void way_chain(int n)
{
    (void)n;
    if (me > 0)
        gshmem_signal_wait_until(flag, GSHMEM_CMP_EQ, 1);
    compute(20);
    if (right)
        CHECK_OK(gshmem_signal_set(flag, 1, right));
    CHECK_OK(gshmem_barrier_all());
}

/* Each round another PE is the last. */
static void way_rounds(int n)
{
    (void)n;
    for (int i = 0; i < n_pes; i++) {
        compute(i == me ? 30 : 1);
        CHECK_OK(gshmem_barrier_all());
    }
}

/* Two teams, one after the other in the same slot. Each has another last PE. */
static void way_teams(int n)
{
    (void)n;
    for (int i = 1; i < n_pes; i++) {
        gshmem_team_t team;
        CHECK_OK(gshmem_team_split_strided(GSHMEM_TEAM_WORLD, 0, 1, n_pes, NULL, 0, &team));
        compute(i == me ? 30 : 1);
        CHECK_OK(gshmem_team_sync(team));
        CHECK_OK(gshmem_team_destroy(team));
    }
}

/* The last PE is late for a reduction; then PE 1 waits for PE 0, which begins when PE 1 has said so. */
static void way_reduce(int n)
{
    (void)n;
    if (me == n_pes - 1)
        compute(30);
    CHECK_OK(gshmem_int_sum_reduce(GSHMEM_TEAM_WORLD, (int *)memory, (int *)memory + 8, 8));
    if (me == 1)
        CHECK_OK(gshmem_signal_set(flag, 1, 0));
    if (me == 0) {
        gshmem_signal_wait_until(flag, GSHMEM_CMP_EQ, 1);
        compute(30);
        gshmem_uint64_atomic_add(counter, 1, 1);
        CHECK_OK(gshmem_quiet());
    } else if (me == 1) {
        CHECK_OK(gshmem_uint64_wait_until(counter, GSHMEM_CMP_EQ, 1));
    }
}

/* A put with a signal there and back, twice. */
static void way_back(int n)
{
    (void)n;
    for (uint64_t i = 1; i <= 2 && me < 2; i++) {
        if (me == 1)
            gshmem_signal_wait_until(flag, GSHMEM_CMP_EQ, i);
        compute(15);
        CHECK_OK(gshmem_putmem_signal(memory, own, 64, flag, i, GSHMEM_SIGNAL_SET, 1 - me));
        if (me == 0)
            gshmem_signal_wait_until(flag, GSHMEM_CMP_EQ, i);
    }
}

/* A lock that PE 0 has for long, and of which the others are in no hurry. */
static void way_alone(int n)
{
    (void)n;
    compute(me == 0 ? 60 : 5);
    CHECK_OK(gshmem_barrier_all());
}

/* The same in a range of the program, in which the PE computes as well. */
static void way_within(int n)
{
    gshmem_range_push("all of it");
    compute(me == 0 ? n : 5);
    CHECK_OK(gshmem_barrier_all());
    gshmem_range_pop();
}

/* PE 1 is killed after some operations; the others go on to their end without it. */
static void way_killed(int n)
{
    for (int i = 0; i < n; i++)
        CHECK_OK(gshmem_putmem(memory, own, 64, right));
    CHECK_OK(gshmem_barrier_all());
    if (me == 1)
        raise(SIGKILL);
    compute(20000); /* until the launcher ends it */
}

/* For longer than a second, so that clocks drift. */
static void way_long(int n)
{
    for (int i = 0; i < n; i++) {
        CHECK_OK(gshmem_putmem(memory, own, 64, right));
        CHECK_OK(gshmem_quiet());
        compute(5);
    }
}

/* Ranges in ranges, more than are kept. Time passes within all that are. */
static void way_deep(int n)
{
    for (int i = 0; i < n; i++)
        gshmem_range_push(i < 60 ? "deep" : "too deep");
    for (int i = n; i > 0; i--) {
        if (i == 60)
            compute(5);
        gshmem_range_pop();
    }
    gshmem_range_push("after");
    gshmem_range_pop();
}

static void way_many(int n)
{
    for (int i = 0; i < n; i++)
        CHECK_OK(gshmem_putmem(memory, own, 8, right));
    CHECK_OK(gshmem_barrier_all());
}

static sem_t begun, ended;

static void *write_some(void *unused)
{
    gshmem_range_push("another thread");
    gshmem_range_pop();
    sem_post(&begun);
    sem_wait(&ended);
    return unused;
}

/* Goes round the ring, of which other threads hold parts that they do not fill. */
static void way_laps(int n)
{
    pthread_t others[3];

    sem_init(&begun, 0, 0);
    sem_init(&ended, 0, 0);
    for (int i = 0; i < 3; i++)
        pthread_create(&others[i], NULL, write_some, NULL);
    for (int i = 0; i < 3; i++)
        sem_wait(&begun);
    for (int i = 0; i < n; i++) {
        gshmem_range_push("a lap");
        gshmem_range_pop();
    }
    for (int i = 0; i < 3; i++)
        sem_post(&ended);
    for (int i = 0; i < 3; i++)
        pthread_join(others[i], NULL);
}

/* Without a trace of the children, and with the parent's. */
static void way_forked(int n)
{
    (void)n;
    gshmem_range_push("the parent");
    if (fork() == 0) {
        gshmem_range_push("the child");
        _exit(0);
    }
    gshmem_range_pop();
    CHECK_OK(gshmem_barrier_all());
}

/* The working directory changes before the end. */
static void way_away(int n)
{
    (void)n;
    CHECK_EQ(chdir("/"), 0);
}

static const struct {
    const char *name;
    void (*function)(int n);
} ways[] = {
    {"operations", way_operations}, {"chain", way_chain}, {"rounds", way_rounds},
    {"reduce", way_reduce},         {"back", way_back},   {"alone", way_alone},
    {"killed", way_killed},         {"many", way_many},   {"forked", way_forked},
    {"long", way_long},             {"teams", way_teams},
    {"away", way_away},             {"deep", way_deep},   {"within", way_within},
    {"laps", way_laps},
};

int main(int argc, char **argv)
{
    const int n = argc > 2 ? atoi(argv[2]) : 1;

    gshmem_range_push("before the job"); /* not traced, and harmless */
    gshmem_range_pop();
    CHECK_OK(gshmem_init());
    me = gshmem_my_pe();
    n_pes = gshmem_n_pes();
    right = (me + 1) % n_pes;
    memory = gshmem_calloc(1, LARGE);
    flag = gshmem_calloc(1, sizeof *flag);
    counter = gshmem_calloc(1, sizeof *counter);
    CHECK(memory && flag && counter);
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        if (argc > 1 && strcmp(argv[1], ways[i].name) == 0)
            ways[i].function(n);
    }
    CHECK_OK(gshmem_finalize());
    return 0;
}
