/* The root of a small broadcast in a team of its own gives and leaves the job, while another member, which has found
 * nothing yet, is late to look who has left: that member has the data, and the job ends well. */
#include <stdbool.h>
#include <unistd.h>

#include "gshmem.h"

#include "check.h"
#include "runtime/job/job.h"
#include "runtime/network/wait.h"
#include "runtime/teams/departures.h"

enum { GIVES_US = 300 * 1000, LATE_US = 1500 * 1000 };

static struct wait_hooks hooks;

/* As if the thread lost its CPU between its poll and the look. */
static gshmem_status_t look_late(const struct wait *w, uint64_t now)
{
    static bool was_late;

    if (!was_late) {
        usleep(LATE_US);
        now = w->since + LATE_US * UINT64_C(1000);
    }
    was_late = true;
    return departures_check(w, now);
}

int main(void)
{
    static long here, given = 7;
    gshmem_team_t team = GSHMEM_TEAM_INVALID;

    CHECK_OK(gshmem_init());
    const int me = gshmem_my_pe();
    CHECK_OK(gshmem_team_split_strided(GSHMEM_TEAM_WORLD, 0, 1, 2, NULL, 0, &team));
    CHECK_OK(gshmem_barrier_all());
    if (me == 0) {
        usleep(GIVES_US);
    } else {
        hooks = *job->waits;
        hooks.check = look_late;
        job->waits = &hooks;
    }
    CHECK_OK(gshmem_broadcastmem(team, &here, &given, sizeof given, 0));
    CHECK(me == 0 || here == 7);
    return 0; /* without gshmem_finalize, which would wait for the other */
}
