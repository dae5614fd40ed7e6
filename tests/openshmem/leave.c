/* The last PE leaves a job that others still want it for: `leave WAY CALL`, run by `expect`.
 *
 * WAY is exit, return, finalize, or start_pes: exit of a program that began with it; stay: it makes the call, too,
 * and only what they call differs. CALL is what the others make:
 * barrier, reduce (of a team of their own and the last), malloc (PE 0 alone; the others meet in a barrier), lock
 * (which the last PE has) and test (of it); none: they all leave, one after the other. With `busy` behind them PE 1
 * does nothing, for ever. */
#include <time.h>

#include "check.h"

static long lock, in = 1, out;
static int has_lock; /* symmetric */

static void nap(long ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

static void make(const char *call, shmem_team_t team, int me)
{
    if (strcmp(call, "reduce") == 0)
        shmem_long_sum_reduce(team, &out, &in, 1);
    if (strcmp(call, "malloc") == 0 && me == 0)
        shmem_malloc(64);
    if (strcmp(call, "malloc") == 0 || strcmp(call, "barrier") == 0)
        shmem_barrier_all();
    if (strcmp(call, "lock") == 0)
        shmem_set_lock(&lock);
    while (strcmp(call, "test") == 0 && shmem_test_lock(&lock))
        nap(1);
}

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "", *call = argc > 2 ? argv[2] : "";

    if (strcmp(way, "start_pes") == 0)
        start_pes(0);
    else
        shmem_init();
    const int me = shmem_my_pe(), n = shmem_n_pes();
    shmem_team_t team = SHMEM_TEAM_WORLD;
    if (strcmp(call, "reduce") == 0)
        shmem_team_split_strided(SHMEM_TEAM_WORLD, 1, 1, n - 1, NULL, 0, &team);
    if (me == n - 1 && strcmp(way, "stay") != 0) {
        shmem_set_lock(&lock);
        for (int pe = 0; pe < n; pe++)
            shmem_int_p(&has_lock, 1, pe);
        shmem_quiet();
        if (strcmp(way, "finalize") == 0)
            shmem_finalize();
        if (strcmp(way, "exit") == 0 || strcmp(way, "start_pes") == 0)
            exit(0);
        return 0;
    }
    if (strcmp(way, "stay") != 0)
        shmem_int_wait_until(&has_lock, SHMEM_CMP_EQ, 1);
    if (strcmp(call, "none") == 0) {
        nap(700 * me);
        return 0;
    }
    if (argc > 3 && me == 1)
        nap(1000000);
    if (me > 1)
        nap(200); /* others are in the call by then */
    if (team != SHMEM_TEAM_INVALID)
        make(call, team, me);
    nap(1000000); /* only the line and the end that the others bring count */
}
