/* Queries about the job: this PE's number, which PEs can be reached, the version. */
#include <stdio.h>

#include "gshmem.h"
#include "runtime/job/job.h"
#include "runtime/memory/map.h"
#include "runtime/teams/context.h"
#include "runtime/teams/team.h"

int gshmem_my_pe(void)
{
    return job ? job->pe : -1;
}

int gshmem_n_pes(void)
{
    return job ? job->n_pes : -1;
}

int gshmem_pe_accessible(int pe)
{
    return job && pe >= 0 && pe < job->n_pes && (job->map->local[pe] || job->network);
}

/* The same look-up as an operation's, without an error line: these are queries, and "no" is a valid
 * result. */
static void *setup_find_mapped(const struct gshmem_ctx *view, const void *address, int pe)
{
    struct location l;

    if (pe < 0 || pe >= view->n_pes)
        return NULL;
    map_resolve(job->map, address, 1, job->team[view->team]->members[pe], &l);
    if (l.reserved || l.way != WAY_DEVICE)
        return l.reserved ? NULL : l.at;
    const uintptr_t loaded = job->map->segment[l.segment].loaded[l.pe];
    return loaded ? (void *)(loaded + l.offset) : NULL;
}

int gshmem_addr_accessible(const void *addr, int pe)
{
    struct location l;

    return pe >= 0 && pe < gshmem_ctx_default->n_pes &&
           context_look_up(gshmem_ctx_default, addr, 1, pe, &l);
}

void *gshmem_ptr(const void *dest, int pe)
{
    return setup_find_mapped(gshmem_ctx_default, dest, pe);
}

void *gshmem_team_ptr(gshmem_team_t handle, const void *dest, int pe)
{
    const struct team *team = team_find(handle, "gshmem_team_ptr");

    return team ? setup_find_mapped(&team->view, dest, pe) : NULL;
}

void gshmem_info_get_version(int *major, int *minor)
{
    *major = GSHMEM_MAJOR_VERSION;
    *minor = GSHMEM_MINOR_VERSION;
}

void gshmem_info_get_name(char name[64])
{
    snprintf(name, 64, "GSHMEM " GSHMEM_VERSION_TEXT);
}
