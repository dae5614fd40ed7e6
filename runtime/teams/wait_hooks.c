/* What waits ask of teams: their members, who is missing, and who has left. */
#include "runtime/job/job.h"
#include "runtime/network/wait.h"
#include "runtime/network/wait_shown.h"
#include "runtime/node/node.h"
#include "runtime/teams/departures.h"
#include "runtime/teams/group.h"
#include "runtime/teams/internode.h"
#include "runtime/teams/team.h"
#include "runtime/where/record.h"

static const int *wait_hooks_members(gshmem_team_t handle, int *n)
{
    const struct team *t = job && handle >= 0 && handle < TEAM_MAX ? job->team[handle] : NULL;

    if (t)
        *n = t->n_pes;
    return t ? t->members : NULL;
}

static void wait_hooks_missing(gshmem_team_t handle, char *text, size_t size)
{
    const struct team *t = job && handle >= 0 && handle < TEAM_MAX ? job->team[handle] : NULL;

    if (t)
        group_missing(t->group, text, size);
}

/* Members of the group on this node that have not arrived at its latest round; of a rooted one, the
 * root. */
static void wait_hooks_show_missing(const struct group *g, struct where_wait *record)
{
    const int awaited = group_awaited(g);

    for (int i = 0; i < g->n; i++) {
        if (awaited >= 0 ? i == awaited
                         : job->node->index_of[g->pe[i]] >= 0 && i != g->my &&
                               !group_has_come(g, i))
            wait_show_peer(record, g->pe[i]);
    }
}

/* Between nodes a member knows only who of its own node has arrived. If all have, it waits for
 * other nodes, or for the leader, who does: any of their members may be missing. Members of its own
 * node are among those beyond the list, whose order would else have holes (where_add_peer); whoever
 * reads the record leaves out members that wait in the same team's call. */
static void wait_hooks_peers(const struct wait *w, struct where_wait *record)
{
    const struct team *t =
        job && w->team >= 0 && w->team < TEAM_MAX ? job->team[w->team] : NULL;

    if (w->only >= 0) {
        wait_show_peer(record, w->only);
        return;
    }
    if (!t || !t->group)
        return;
    const struct group *g = t->group;
    const int awaited = group_awaited(g);
    record->kind = WHERE_COLLECTIVE;
    record->team = t->id;
    if (g->internode && awaited >= 0) {
        wait_show_peer(record, g->pe[awaited]);
        return;
    }
    wait_hooks_show_missing(g->internode ? internode_neighbours(g) : g, record);
    const bool all_are_here = record->peers == 0;
    for (int i = 0; g->internode && all_are_here && i < g->n; i++) {
        if (job->node->index_of[g->pe[i]] < 0 || record->peers >= WHERE_PEERS)
            wait_show_peer(record, g->pe[i]);
    }
}

static gshmem_status_t wait_hooks_left(const char *call, int pe, uint64_t noted)
{
    return departures_fail(call, pe, departures_way(pe, noted));
}

const struct wait_hooks teams_wait_hooks = {wait_hooks_members, wait_hooks_missing,
                                                 wait_hooks_peers, departures_check,
                                                 wait_hooks_left};
