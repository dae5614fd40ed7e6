/* An operation on a PE that is lost fails, and others who have nothing to do with that PE meet all the same:
 * a barrier joins although its quiet failed, and other collectives know nothing of it.
 *
 * Three PEs on a host each, or PEs 0 and 1 on one; the last is stopped until PE 0 has given it up, and ends the
 * job in the end. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "gshmem.h"
#include "../check.h"
#include "stopped.h"

enum { N = 2000 };

static long stopped_pid; /* at PE 0 */
static volatile long go_on;
static int64_t numbers[N], sums[N];
static gshmem_team_t team; /* of PEs 0 and 1 */
static int lost;

static void nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

/* Until then a put succeeds and its failure waits for the next quiet; from then on each fails at once. */
static void put_and_lose(void)
{
    long word = 1, seen;

    while (!*(volatile long *)&stopped_pid || !is_stopped(stopped_pid))
        nap();
    CHECK_OK(gshmem_putmem_nbi((void *)&go_on, &word, sizeof word, lost));
    CHECK(gshmem_getmem(&seen, (void *)&go_on, sizeof seen, lost) != GSHMEM_OK);
}

int main(void)
{
    setenv("GSHMEM_PEER_TIMEOUT", "4", 1);
    CHECK_OK(gshmem_init());
    const int me = gshmem_my_pe();
    lost = gshmem_n_pes() - 1;
    CHECK_OK(gshmem_team_split_strided(GSHMEM_TEAM_WORLD, 0, 1, 2, NULL, 0, &team));
    CHECK_OK(gshmem_getmem(&stopped_pid, &stopped_pid, sizeof stopped_pid, lost)); /* a first contact has more time */
    CHECK_OK(gshmem_barrier_all());
    if (me == lost) {
        long pid = getpid();
        CHECK_OK(gshmem_putmem(&stopped_pid, &pid, sizeof pid, 0));
        CHECK_OK(gshmem_quiet());
        raise(SIGSTOP);
        _exit(0); /* it has no part in what follows */
    }
    if (me > 1) /* the lost one's neighbour, if it has one */
        return gshmem_finalize() == GSHMEM_OK;
    if (me == 0)
        put_and_lose();
    /* The failure of the put stays for the program's own quiet. */
    if (me == 0)
        CHECK_OK(gshmem_int64_iget(sums, numbers, 1, 2, N / 2, 1));
    CHECK_OK(gshmem_inscan(team, GSHMEM_TYPE_INT64, sums, numbers, N));
    CHECK_OK(gshmem_fcollectmem(team, sums, numbers, sizeof numbers / 2));
    CHECK_EQ(gshmem_barrier(team), me == 0 ? GSHMEM_ERR_PEER_DEAD : GSHMEM_OK);
    CHECK_OK(gshmem_barrier(team));
    CHECK_OK(gshmem_reduce(team, GSHMEM_TYPE_INT64, GSHMEM_OP_SUM, sums, numbers, N));
    if (me == 0) {
        puts("PEs 0 and 1 have met");
        fflush(stdout);
        CHECK_EQ(kill((pid_t)stopped_pid, SIGCONT), 0);
    }
    gshmem_finalize();
    return 0;
}
