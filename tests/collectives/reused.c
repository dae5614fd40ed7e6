/* The blocks of a team that is destroyed are another team's on PEs that have ended its last round, while others are still in
 * it: four nodes of one PE, of which PE 2 stands still in that round.
 *
 *     collectives-reused asks    PEs 1 and 3 make a team in the same blocks, and broadcasts
 *     collectives-reused left    they make the team, and leave the job */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "gshmem.h"

#include "check.h"
#include "runtime/job/job.h"
#include "runtime/teams/group.h"
#include "runtime/teams/multicast.h"
#include "runtime/teams/team.h"

static gshmem_team_uniqueid_t id;
static struct timespec still;

static void stand_still(int signal)
{
    struct timespec left = still;

    (void)signal;
    while (nanosleep(&left, &left) != 0)
        ;
}

/* gshmem_team_destroy, in which PEs 1 and 2 lose their CPUs: PE 2 within the last round. */
static gshmem_status_t destroy(gshmem_team_t handle, int me)
{
    const struct itimerval soon = {.it_value = {.tv_usec = 15000}};
    const char *call = "gshmem_team_destroy";
    struct team *t = job->team[handle];
    gshmem_status_t status = group_meet(t->group, signature_make(COLLECTIVE_DESTROY, 0), call);

    if (status)
        return status;
    if (me == 1)
        usleep(40000);
    if (me == 2) {
        signal(SIGALRM, stand_still);
        CHECK_EQ(setitimer(ITIMER_REAL, &soon, NULL), 0);
    }
    if ((status = group_farewell(t->group, call)))
        return status;
    pthread_mutex_lock(&job->lock);
    team_remove(job, handle);
    pthread_mutex_unlock(&job->lock);
    multicast_end(job, t);
    team_free(job, t);
    return GSHMEM_OK;
}

int main(int argc, char **argv)
{
    const bool leaves = argc > 1 && strcmp(argv[1], "left") == 0;
    static long here, given = 7;
    gshmem_team_t t, next;

    still = leaves ? (struct timespec){.tv_sec = 4} : (struct timespec){.tv_nsec = 600000000};
    CHECK_OK(gshmem_init());
    const int me = gshmem_my_pe();
    CHECK_EQ(gshmem_n_pes(), 4);
    CHECK_OK(gshmem_team_split_strided(GSHMEM_TEAM_WORLD, 0, 1, 4, NULL, 0, &t));
    if (me == 1) {
        CHECK_OK(gshmem_team_get_uniqueid(&id));
        CHECK_OK(gshmem_putmem(&id, &id, sizeof id, 3));
    }
    CHECK_OK(gshmem_barrier_all());
    CHECK_OK(gshmem_team_sync(t));
    CHECK_OK(gshmem_team_sync(t));
    const gshmem_team_t was = t;
    CHECK_OK(destroy(t, me));
    if (me % 2) {
        CHECK_OK(gshmem_team_create(id, 2, me == 3, NULL, 0, &next));
        CHECK_EQ(next, was);
        for (int i = 0; i < 15 && !leaves; i++)
            CHECK_OK(gshmem_broadcastmem(next, &here, &given, sizeof given, 0));
    }
    return 0;
}
