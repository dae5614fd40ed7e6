/* A PE is stopped until another has given it up, and then goes on: collectives with it fail on all PEs,
 * though it takes part and though those who meet for their hosts never missed it.
 *
 * On two hosts of two PEs; PE 3 is given up by PE 1. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "gshmem.h"
#include "../check.h"
#include "stopped.h"

enum { PES = 4, PATIENT = 1, STOPPED = 3 };

static long stopped_pid;    /* at PATIENT */
static volatile long go_on; /* at all others: PATIENT has been told PEER_DEAD */

static void nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static void give_up(void)
{
    long word = 1;

    while (!*(volatile long *)&stopped_pid || !is_stopped(stopped_pid))
        nap();
    gshmem_status_t status = gshmem_putmem_nbi((void *)&go_on, &word, sizeof word, STOPPED);
    status = status ? status : gshmem_quiet();
    CHECK_EQ(status, GSHMEM_ERR_PEER_DEAD);
    CHECK_OK(gshmem_putmem((void *)&go_on, &word, sizeof word, 0));
    CHECK_OK(gshmem_putmem((void *)&go_on, &word, sizeof word, 2));
    CHECK_OK(gshmem_quiet());
    CHECK_EQ(kill((pid_t)stopped_pid, SIGCONT), 0);
}

int main(void)
{
    static long one = 1, sum;
    gshmem_team_t with = GSHMEM_TEAM_INVALID, without = GSHMEM_TEAM_INVALID;

    setenv("GSHMEM_PEER_TIMEOUT", "4", 1); /* PEs that live answer sooner, also on a busy machine */
    CHECK_OK(gshmem_init());
    const int me = gshmem_my_pe();
    CHECK_EQ(gshmem_n_pes(), PES);
    CHECK_OK(gshmem_team_split_strided(GSHMEM_TEAM_WORLD, 1, 2, 2, NULL, 0, &with));
    CHECK_OK(gshmem_team_split_strided(GSHMEM_TEAM_WORLD, 0, 2, 2, NULL, 0, &without));
    if (me == PATIENT) { /* first contact has a longer limit, GSHMEM_INIT_TIMEOUT */
        CHECK_OK(gshmem_putmem((void *)&go_on, &(long){0}, sizeof go_on, STOPPED));
        CHECK_OK(gshmem_quiet());
    }
    CHECK_OK(gshmem_barrier_all());
    if (me == STOPPED) {
        long pid = getpid();
        CHECK_OK(gshmem_putmem(&stopped_pid, &pid, sizeof pid, PATIENT));
        CHECK_OK(gshmem_quiet());
        raise(SIGSTOP);
    } else if (me == PATIENT) {
        give_up();
    } else {
        while (!go_on)
            nap();
    }
    if (me == STOPPED) { /* it may be told in other words */
        CHECK(gshmem_barrier_all() != GSHMEM_OK);
        CHECK(gshmem_finalize() != GSHMEM_OK);
        return 0;
    }
    CHECK_EQ(gshmem_barrier_all(), GSHMEM_ERR_PEER_DEAD);
    CHECK_EQ(gshmem_long_sum_reduce(GSHMEM_TEAM_WORLD, &sum, &one, 1), GSHMEM_ERR_PEER_DEAD);
    if (me == PATIENT) {
        CHECK_EQ(gshmem_team_sync(with), GSHMEM_ERR_PEER_DEAD);
        CHECK(!gshmem_malloc(8));
        CHECK_EQ(gshmem_last_error(NULL), GSHMEM_ERR_PEER_DEAD);
    }
    if (me % 2 == 0) { /* a team without it goes on */
        CHECK_OK(gshmem_long_sum_reduce(without, &sum, &one, 1));
        CHECK_EQ(sum, 2);
    }
    CHECK_EQ(gshmem_finalize(), GSHMEM_ERR_PEER_DEAD);
    return 0;
}
