/* Splits teams, and destroys them. */
#include <stdlib.h>

#include "gshmem.h"
#include "runtime/base/log.h"
#include "runtime/job/job.h"
#include "runtime/races/races.h"
#include "runtime/teams/group.h"
#include "runtime/teams/multicast.h"
#include "runtime/teams/slots.h"
#include "runtime/teams/team.h"
#include "runtime/teams/observer.h"

/* A PE's request: all must make the same. */
struct split {
    const char *call;
    struct team *parent;
    const gshmem_team_config_t *config;
    long config_mask;
    uint64_t hash; /* of the arguments */
};

static gshmem_status_t split_refuse(const struct split *s, gshmem_status_t status)
{
    if (GSHMEM_LIKELY(!job->races))
        return group_refuse(s->parent->group, s->call, status);
    const uint32_t round = races_arrive(s->parent->id);
    status = group_refuse(s->parent->group, s->call, status);
    races_leave(s->parent->id, round, NULL, 0, status);
    return status;
}

enum split_kind { SPLIT_STRIDED, SPLIT_ROW, SPLIT_COLUMN, SPLIT_LIST };

/* Finds the parent and checks what all splits have in common; *new_team is invalid until made. */
static gshmem_status_t split_begin(struct split *s, gshmem_team_t parent, gshmem_team_t *new_team)
{
    if (new_team)
        *new_team = GSHMEM_TEAM_INVALID;
    if (!(s->parent = team_find(parent, s->call)))
        return last_error_status();
    if (group_check(s->parent->group, s->call))
        return last_error_status();
    if (!new_team)
        return split_refuse(s, fail(GSHMEM_ERR_ARGUMENT, "%s: new_team is NULL", s->call));
    if (s->config_mask & ~GSHMEM_TEAM_NUM_CONTEXTS)
        return split_refuse(s,
                            fail(GSHMEM_ERR_ARGUMENT,
                                 "%s: config_mask 0x%lx has bits beyond GSHMEM_TEAM_NUM_CONTEXTS",
                                 s->call, (unsigned long)s->config_mask));
    if (s->config_mask && (!s->config || s->config->num_contexts < 0))
        return split_refuse(s, fail(GSHMEM_ERR_ARGUMENT, "%s: %s", s->call,
                                    s->config ? "config->num_contexts is negative"
                                              : "config_mask is not 0, but config is NULL"));
    return GSHMEM_OK;
}

/* Makes the team of the `n` PEs of the job in members, which the team owns from then on; NULL: not
 * enough memory for them. Collective over the parent. */
static gshmem_status_t split_make(const struct split *s, enum split_kind kind, int *members, int n,
                                  gshmem_team_t *new_team)
{
    uint64_t hash = signature_mix(s->hash, (uint64_t)kind << 32 | (uint32_t)s->config_mask);
    struct team *t = NULL;
    bool member = false;
    gshmem_status_t status;
    uint32_t round = 0;

    if (s->config_mask)
        hash = signature_mix(hash, (uint64_t)s->config->num_contexts);
    uint32_t signature = signature_make(COLLECTIVE_SPLIT, hash);

    if (!members)
        return split_refuse(s, fail(GSHMEM_ERR_MEMORY, "%s: out of memory for %d PEs", s->call, n));
    for (int i = 0; i < n && !member; i++)
        member = members[i] == job->pe;
    if (!member)
        free(members);
    else if (!(t = team_create(job, members, n, s->call)))
        return split_refuse(s, GSHMEM_ERR_MEMORY);
    else if (s->config_mask)
        t->config = *s->config;

    if (GSHMEM_UNLIKELY(job->races != NULL))
        round = races_arrive(s->parent->id);
    status = slots_install(s->parent, t, signature, s->call);
    if (GSHMEM_UNLIKELY(job->races != NULL))
        races_leave(s->parent->id, round, s->parent->members, s->parent->n_pes, status);
    if (status) {
        if (t && t->id == GSHMEM_TEAM_INVALID)
            team_free(job, t); /* otherwise it is freed with the job */
        return status;
    }
    if (t) {
        multicast_begin(job, t);
        *new_team = t->id;
    }
    return GSHMEM_OK;
}

/* The PEs of the job that have numbers start, start + stride, … in the parent. */
static int *list_strided(const struct team *parent, int start, int stride, int n)
{
    int *members = malloc((size_t)n * sizeof *members);

    for (int i = 0; members && i < n; i++)
        members[i] = parent->members[start + i * stride];
    return members;
}

gshmem_status_t gshmem_team_split_strided(gshmem_team_t parent, int start, int stride, int size,
                                          const gshmem_team_config_t *config, long config_mask,
                                          gshmem_team_t *new_team)
{
    struct split s = {"gshmem_team_split_strided", NULL, config, config_mask, 0};
    gshmem_status_t status = split_begin(&s, parent, new_team);

    if (status)
        return status;
    int last_pe = s.parent->n_pes - 1;
    int64_t last = start + (int64_t)(size - 1) * stride;
    if (size < 1 || start < 0 || start > last_pe || last < 0 || last > last_pe ||
        (stride == 0 && size > 1))
        return split_refuse(
            &s, fail(GSHMEM_ERR_ARGUMENT,
                     "%s: %d PEs from %d with stride %d: the parent team has PEs 0..%d, "
                     "and none may be in the new one twice",
                     s.call, size, start, stride, last_pe));
    /* A team of one PE concerns no other PE, so that each may request its own. */
    s.hash = (uint64_t)size;
    if (size > 1)
        s.hash = signature_mix(signature_mix((uint64_t)start, (uint64_t)stride), s.hash);
    return split_make(&s, SPLIT_STRIDED, list_strided(s.parent, start, stride, size), size,
                      new_team);
}

gshmem_status_t gshmem_team_split_2d(gshmem_team_t parent, int xrange,
                                     const gshmem_team_config_t *xaxis_config, long xaxis_mask,
                                     gshmem_team_t *xaxis_team,
                                     const gshmem_team_config_t *yaxis_config, long yaxis_mask,
                                     gshmem_team_t *yaxis_team)
{
    struct split row = {"gshmem_team_split_2d", NULL, xaxis_config, xaxis_mask, 0};
    struct split column = {row.call, NULL, yaxis_config, yaxis_mask, 0};
    gshmem_status_t status = split_begin(&row, parent, xaxis_team);

    if (status || (status = split_begin(&column, parent, yaxis_team)))
        return status;
    struct team *p = row.parent;
    if (xrange < 1)
        return split_refuse(&row,
                            fail(GSHMEM_ERR_ARGUMENT, "%s: xrange is %d, and must be at least 1",
                                 row.call, xrange));
    if (xrange > p->n_pes)
        xrange = p->n_pes;

    int x = p->my_pe % xrange, first = p->my_pe - x;
    int width = first + xrange <= p->n_pes ? xrange : p->n_pes - first;
    int height = (p->n_pes - x + xrange - 1) / xrange;
    row.hash = column.hash = (uint64_t)xrange;
    if ((status = split_make(&row, SPLIT_ROW, list_strided(p, first, 1, width), width, xaxis_team)))
        return status;
    status =
        split_make(&column, SPLIT_COLUMN, list_strided(p, x, xrange, height), height, yaxis_team);
    if (status && !p->group->broken) { /* all PEs have arrived */
        const gshmem_status_t destroyed = gshmem_team_destroy(*xaxis_team);
        (void)destroyed; /* a line of its own has said why; the split's failure is returned */
        *xaxis_team = GSHMEM_TEAM_INVALID;
    }
    return status;
}

/* Whether a list of the parent's PEs can be a team: all exist, and none occurs twice. */
static gshmem_status_t check_list(const struct split *s, const int *list, int n)
{
    int n_pes = s->parent->n_pes;
    unsigned char *seen;

    if (n < 1 || n > n_pes || !list)
        return fail(GSHMEM_ERR_ARGUMENT, "%s: a list of %d members%s, of %d PEs in the parent team",
                    s->call, n, list ? "" : " that is NULL", n_pes);
    if (!(seen = calloc((size_t)n_pes, 1)))
        return fail(GSHMEM_ERR_MEMORY, "%s: out of memory for a team of %d PEs", s->call, n);
    gshmem_status_t status = GSHMEM_OK;
    for (int i = 0; i < n && !status; i++) {
        if (list[i] < 0 || list[i] >= n_pes)
            status = fail(GSHMEM_ERR_ARGUMENT,
                          "%s: members[%d] is %d, and the parent team has PEs 0..%d", s->call, i,
                          list[i], n_pes - 1);
        else if (seen[list[i]]++)
            status = fail(GSHMEM_ERR_ARGUMENT, "%s: members[%d] is PE %d, which is there twice",
                          s->call, i, list[i]);
    }
    free(seen);
    return status;
}

gshmem_status_t gshmem_team_split_list(gshmem_team_t parent, const int *members, int n,
                                       const gshmem_team_config_t *config, long config_mask,
                                       gshmem_team_t *new_team)
{
    struct split s = {"gshmem_team_split_list", NULL, config, config_mask, (uint64_t)n};
    gshmem_status_t status = split_begin(&s, parent, new_team);
    int *pes;

    if (status)
        return status;
    if ((status = check_list(&s, members, n)))
        return split_refuse(&s, status);
    pes = malloc((size_t)n * sizeof *pes);
    for (int i = 0; i < n; i++) {
        s.hash = signature_mix(s.hash, (uint64_t)members[i]);
        if (pes)
            pes[i] = s.parent->members[members[i]];
    }
    return split_make(&s, SPLIT_LIST, pes, n, new_team);
}

gshmem_status_t gshmem_team_destroy(gshmem_team_t handle)
{
    static const char call[] = "gshmem_team_destroy";
    struct team *t = team_find(handle, call);
    gshmem_status_t status;

    if (!t)
        return last_error_status();
    if (handle < TEAM_FIRST_OWN)
        return fail(GSHMEM_ERR_ARGUMENT, "%s: team %d is predefined and stays", call, handle);
    if ((status = group_check(t->group, call)))
        return status;
    if (t->contexts > 0)
        return group_refuse(t->group, call,
                            fail(GSHMEM_ERR_STATE,
                                 "%s: %d contexts made from team %d are open: destroy them first",
                                 call, t->contexts, handle));
    if ((status = group_meet(t->group, signature_make(COLLECTIVE_DESTROY, 0), call)) ||
        (status = group_farewell(t->group, call)))
        return status;

    pthread_mutex_lock(&job->lock);
    team_remove(job, handle);
    pthread_mutex_unlock(&job->lock);
    multicast_end(job, t);
    team_free(job, t);
    return GSHMEM_OK;
}
