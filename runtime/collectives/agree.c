/* An agreement: one round that carries a few numbers of each member. */
#include "runtime/collectives/collectives.h"

#include <string.h>

#include "runtime/teams/group.h"
#include "runtime/teams/team.h"
#include "gshmem.h"
#include "runtime/base/log.h"
#include "runtime/job/job.h"

static_assert(COLLECTIVE_AGREE_MAX * sizeof(uint64_t) <= NOTE_BYTES, "the numbers fit into a note");

/* The signature of this round is the same on all, whatever they have broadcast before: a PE that
 * leaves the job is waited for all the same. */
static gshmem_status_t compare_earlier(const struct group *g, const char *call, uint32_t earlier)
{
    for (int i = 0; i < g->n; i++) {
        if (g->sync[i]->note[g->full & 1].value >> 32 != earlier)
            return fail(GSHMEM_ERR_MISMATCH,
                        "%s: an earlier broadcast of PE %d was not that of this PE", call,
                        g->pe[i]);
    }
    return GSHMEM_OK;
}

gshmem_status_t collective_finalize(struct job *j, const char *call, enum departure_way way,
                                    gshmem_status_t *differed)
{
    struct group *g = j->team[GSHMEM_TEAM_WORLD]->group;
    gshmem_status_t completed = gshmem_quiet(), status = group_check(g, call);
    const uint32_t earlier = g->earlier;

    if (!status) {
        /* also where the payload travels elsewhere: group_left reads it */
        g->sync[g->my]->note[(g->full + 1) & 1].value = (uint64_t)earlier << 32 | way;
        departures_begin(j, way);
        status = group_meet(g, GROUP_FINALIZE, call);
        if (!status && !g->internode && !*differed)
            *differed = compare_earlier(g, call, earlier);
    }
    return completed ? completed : status;
}

gshmem_status_t collective_agree(struct team *t, const char *call, const uint64_t *mine,
                                 uint64_t *min, uint64_t *max, int n)
{
    struct group *g = t->group;
    uint64_t theirs[COLLECTIVE_AGREE_MAX];
    size_t bytes = (size_t)n * sizeof *mine;
    gshmem_status_t status;

    if ((status = group_check(g, call)))
        return status;
    g->brought = sizeof theirs; /* the same for every call, since members must agree on it */
    memcpy(group_note(g)->data, mine, bytes);
    if ((status = group_meet(g, signature_make(COLLECTIVE_AGREE, 0), call)))
        return status;
    memcpy(min, mine, bytes);
    memcpy(max, mine, bytes);
    for (int i = 0; i < g->n; i++) {
        memcpy(theirs, group_read(g, i)->data, bytes);
        for (int w = 0; w < n; w++) {
            min[w] = theirs[w] < min[w] ? theirs[w] : min[w];
            max[w] = theirs[w] > max[w] ? theirs[w] : max[w];
        }
    }
    return GSHMEM_OK;
}
