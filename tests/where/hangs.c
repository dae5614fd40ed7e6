/* Ways to hang: PE 1 is the culprit, unless the way says otherwise (hangs.py has what is to be
 * said of each).
 *
 *     hangs WAY */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gshmem.h"

#include "found.h"
#ifdef GIVEN_BY_MPI
#include <mpi.h>
#endif

static int me, n;
static long lock, locks[3];
static uint64_t signal_word;
static uint64_t flags[3];
static long word, words[8];
static volatile int go_on = 1;

__attribute__((noinline)) static void loop_for_ever(void)
{
    while (go_on)
        ;
}

__attribute__((noinline)) static void sleep_for_ever(void)
{
    while (go_on)
        sleep(1000);
}

__attribute__((noinline)) static void read_for_ever(void)
{
    int ends[2];
    char byte;

    if (pipe(ends) != 0 || read(ends[0], &byte, 1) != 1)
        abort();
}

static void way_loop(void)
{
    if (me == 1)
        loop_for_ever();
    gshmem_barrier_all();
}

/* The culprit is the last PE: between nodes it is none of those that others hear of first. */
static void way_last(void)
{
    if (me == n - 1)
        loop_for_ever();
    gshmem_barrier_all();
}

static void way_sleep(void)
{
    if (me == 1)
        sleep_for_ever();
    gshmem_sync_all();
}

static void way_read(void)
{
    if (me == 1)
        read_for_ever();
    gshmem_barrier_all();
}

static void way_signal_nobody(void)
{
    gshmem_signal_wait_until(&signal_word, GSHMEM_CMP_EQ, 1);
}

static void way_signal_loop(void)
{
    if (me == 1)
        loop_for_ever();
    gshmem_signal_wait_until(&signal_word, GSHMEM_CMP_GE, 3);
}

static void way_variable_heap(void)
{
    long *heap = gshmem_malloc(64);

    if (me == 1)
        loop_for_ever();
    gshmem_long_wait_until(heap, GSHMEM_CMP_NE, 0);
}

static void way_any(void)
{
    gshmem_uint64_wait_until_any(flags, 3, NULL, GSHMEM_CMP_EQ, 1);
}

static void way_lock(void)
{
    if (me == 1)
        gshmem_set_lock(&lock);
    gshmem_barrier_all();
    if (me == 1)
        loop_for_ever();
    gshmem_set_lock(&lock);
}

static void way_lock_cycle(void)
{
    gshmem_set_lock(&locks[me]);
    gshmem_barrier_all();
    gshmem_set_lock(&locks[(me + 1) % 3]);
}

static void way_lock_barrier(void)
{
    if (me == 1)
        gshmem_set_lock(&lock);
    gshmem_sync_all();
    if (me != 1)
        gshmem_set_lock(&lock);
    gshmem_barrier_all();
}

static gshmem_team_t team_of_all(void)
{
    gshmem_team_t team;

    gshmem_team_split_strided(GSHMEM_TEAM_WORLD, 0, 1, n, NULL, 0, &team);
    return team;
}

static void way_wrong_team(void)
{
    gshmem_team_t a = team_of_all(), b = team_of_all();

    gshmem_team_sync(me == 1 ? a : b);
}

static void way_team(void)
{
    gshmem_team_t team;

    gshmem_team_split_strided(GSHMEM_TEAM_WORLD, 0, 1, 2, NULL, 0, &team);
    if (me == 1)
        loop_for_ever();
    if (me == 0)
        gshmem_team_sync(team);
}

static void way_reduce(void)
{
    if (me == 1)
        loop_for_ever();
    gshmem_long_sum_reduce(GSHMEM_TEAM_WORLD, words, &word, 1);
}

static void way_broadcast(void)
{
    if (me == 1)
        sleep_for_ever();
    gshmem_long_broadcast(GSHMEM_TEAM_WORLD, words, &word, 1, 1); /* the others wait for the root alone */
}

static void way_alltoall(void)
{
    if (me == 1)
        loop_for_ever();
    gshmem_long_alltoall(GSHMEM_TEAM_WORLD, gshmem_malloc(64), words, 1);
}

static void way_malloc(void)
{
    if (me == 1)
        loop_for_ever();
    gshmem_malloc(64);
}

static void way_split(void)
{
    if (me == 1)
        loop_for_ever();
    team_of_all();
}

static void way_finalize(void)
{
    if (me == 1)
        loop_for_ever();
}

static void way_init(void)
{
}

static void way_test_lock(void)
{
    if (me == 0)
        gshmem_set_lock(&lock);
    gshmem_barrier_all();
    if (me == 1) {
        while (gshmem_test_lock(&lock))
            ;
    }
    gshmem_barrier_all();
}

static void way_chain(void)
{
    if (me == 1)
        loop_for_ever();
    if (me == 0) {
        gshmem_set_lock(&lock);
        gshmem_signal_set(&signal_word, 1, 2);
        gshmem_barrier_all();
    }
    gshmem_signal_wait_until(&signal_word, GSHMEM_CMP_EQ, 1);
    gshmem_set_lock(&lock);
}

static void *hold_lock(void *unused)
{
    gshmem_set_lock(&lock);
    signal_word = 1;
    sleep_for_ever();
    return unused;
}

static void way_thread(void)
{
    pthread_t thread;

    if (me == 1) {
        pthread_create(&thread, NULL, hold_lock, NULL);
        gshmem_signal_wait_until(&signal_word, GSHMEM_CMP_EQ, 1);
        gshmem_set_lock(&lock);
    }
    gshmem_barrier_all();
}

/* hangs.py stops PE 1 here. */
static void way_stopped_barrier(void)
{
    if (me == 1)
        sleep_for_ever();
    gshmem_barrier_all();
}

static void way_stopped_signal(void)
{
    gshmem_signal_wait_until(&signal_word, GSHMEM_CMP_EQ, 1);
}

/* Between nodes PE 0 waits for what PE 1, which is stopped, owes. */
static void way_stopped_get(void)
{
    gshmem_barrier_all();
    while (me == 0)
        gshmem_long_g(&word, 1);
    gshmem_barrier_all();
}

static void way_stopped_add(void)
{
    gshmem_barrier_all();
    while (me == 0)
        gshmem_long_atomic_fetch_add(&word, 1, 1);
    gshmem_barrier_all();
}

static void way_stopped_quiet(void)
{
    gshmem_barrier_all();
    while (me == 0) {
        gshmem_long_put_nbi(words, words + 4, 4, 1);
        gshmem_quiet();
    }
    gshmem_barrier_all();
}

static void way_stopped_room(void)
{
    const size_t bytes = 1 << 20;
    char *heap = gshmem_malloc(bytes);

    gshmem_barrier_all();
    while (me == 0)
        gshmem_putmem(heap, heap, bytes, 1);
    gshmem_barrier_all();
}

/* Closes all that it does not know, and with it the socket by which gshmemrun would learn that
 * Ctrl-C has come. */
static void way_closes_all(void)
{
    for (int fd = 3; fd < 1000; fd++)
        close(fd);
    sleep_for_ever();
}

static const struct {
    const char *name;
    void (*way)(void);
} ways[] = {
#define WAY(name) {#name, way_##name}
    WAY(loop),          WAY(sleep),       WAY(read),           WAY(signal_nobody),
    WAY(signal_loop),   WAY(any),         WAY(variable_heap),  WAY(lock),
    WAY(lock_cycle),    WAY(lock_barrier), WAY(wrong_team),    WAY(team),
    WAY(reduce),        WAY(broadcast),   WAY(alltoall),       WAY(malloc),
    WAY(split),         WAY(finalize),    WAY(init),           WAY(test_lock),
    WAY(chain),         WAY(thread),      WAY(stopped_barrier), WAY(stopped_signal),
    WAY(stopped_get),   WAY(stopped_add), WAY(stopped_quiet),  WAY(stopped_room),
    WAY(closes_all),    WAY(last),
};

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    const char *pe = getenv("GSHMEM_RUN_PE");
    int provided;

    if (strcmp(name, "init") == 0 && pe && strcmp(pe, "1") == 0)
        loop_for_ever();
#ifdef GIVEN_BY_MPI
    MPI_Comm comm = MPI_COMM_WORLD;
    const gshmem_init_attr_t attr = {.mpi_comm = &comm};
    MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
    gshmem_init_attr(&attr);
#else
    gshmem_init_thread(GSHMEM_THREAD_MULTIPLE, &provided);
#endif
    me = gshmem_my_pe();
    n = gshmem_n_pes();
    if (argc > 2)
        be_found(argv[2], me);
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        if (strcmp(ways[i].name, name) == 0)
            ways[i].way();
    }
    gshmem_finalize();
    return 0;
}
