/* Numbers of rounds wrap: a round is not taken for a rooted one of 2^32 rounds before. The test moves the number on, where a
 * program would make so many barriers. */
#include <stdbool.h>
#include <unistd.h>

#include "gshmem.h"

#include "check.h"
#include "runtime/job/job.h"
#include "runtime/teams/group.h"
#include "runtime/teams/team.h"

enum { LATE_US = 300 * 1000 };

/* All are between two rounds. */
static void move_to(struct group *g, uint32_t round)
{
    usleep(LATE_US);
    g->round = round;
    usleep(LATE_US);
}

int main(void)
{
    static long here, given = 7;

    CHECK_OK(gshmem_init());
    struct group *g = job->team[GSHMEM_TEAM_WORLD]->group;
    while ((g->round & (ROOTED_EVERY - 1)) != 3)
        CHECK_OK(gshmem_sync_all());
    CHECK_OK(gshmem_broadcastmem(GSHMEM_TEAM_WORLD, &here, &given, sizeof given, 0));
    const uint32_t before = g->round - 1;
    CHECK(rooted_is_allowed(g->round));
    for (int i = 0; i < 8; i++)
        CHECK_OK(gshmem_sync_all());
    move_to(g, ROOTED_REMEMBERED - 1);
    CHECK_OK(gshmem_sync_all());
    move_to(g, before);
    if (gshmem_my_pe() == 1)
        usleep(LATE_US); /* others look whether it is in a rooted round instead */
    CHECK_OK(gshmem_sync_all());
    given = 8;
    move_to(g, before);
    CHECK_OK(gshmem_broadcastmem(GSHMEM_TEAM_WORLD, &here, &given, sizeof given, 0));
    CHECK_EQ(here, 8);
    return gshmem_finalize();
}
