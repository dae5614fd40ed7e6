/* An operation on a PE that is lost fails, and others who have nothing to do with that PE meet all the same:
 * a barrier joins although its quiet failed, and other collectives know nothing of it.
 *
 * Three PEs on a host each, or PEs 0 and 1 on one; PE 0 stops the last, once nobody waits for it any more, until it
 * has given that one up. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "gshmem.h"
#include "../check.h"
#include "stopped.h"

enum { N = 2000 };

static long pid;
static uint64_t through;   /* at PE 0: PE 1 has left the barrier */
static volatile long go_on;
static int64_t numbers[N], sums[N];
static gshmem_team_t team; /* of PEs 0 and 1 */
static int lost;

static void nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

/* Until then a put succeeds and its failure waits for the next quiet; from then on each fails at once. */
static void put_and_lose(long stopped)
{
    long word = 1, seen;

    CHECK_OK(gshmem_uint64_wait_until(&through, GSHMEM_CMP_EQ, 1));
    CHECK_EQ(kill((pid_t)stopped, SIGSTOP), 0);
    while (!is_stopped(stopped))
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
    pid = getpid();
    CHECK_OK(gshmem_barrier_all());
    long stopped = pid;
    CHECK_OK(gshmem_getmem(&stopped, &pid, sizeof pid, lost)); /* a first contact has more time */
    if (me == lost) {
        for (;;) /* it has no part in what follows */
            pause();
    }
    if (me > 1) /* the lost one's neighbour, if it has one */
        return gshmem_finalize() == GSHMEM_OK;
    if (me == 1)
        CHECK_OK(gshmem_uint64_atomic_inc(&through, 0));
    if (me == 0)
        put_and_lose(stopped);
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
        CHECK_EQ(kill((pid_t)stopped, SIGKILL), 0); /* which ends the job */
    }
    gshmem_finalize();
    return 0;
}
