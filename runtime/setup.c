/* Questions about the job: who am I, who can be reached, which version is this. */
#include <stdio.h>

#include "runtime/context.h"
#include "runtime/memory/device_heap.h"
#include "runtime/memory/nic_heap.h"
#include "runtime/team/team.h"

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
    return job && pe >= 0 && pe < job->n_pes && (job->heap_peer[pe] != 0 || job->network);
}

/* The same translation as an operation's, without a word about what is not symmetric: these are
 * questions, and "no" is an answer. */
static void *find_mapped(const struct gshmem_ctx *view, const void *address, int pe)
{
    uint64_t offset;
    void *there;

    if (pe < 0 || pe >= view->n_pes)
        return NULL;
    there = gshmem_ctx_reach((gshmem_ctx_t)view, address, 1, pe);
    if (!there)
        there = context_reach_library(view, address, 1, pe);
    if (!there && job && nic_heap_find(job, address, 1, &offset))
        there = nic_heap_there(job, job->team[view->team]->members[pe], offset);
    if (!there && job && job->device_heap && device_heap_find(job->device_heap, address, 1, &offset))
        there = (void *)device_heap_there(job->device_heap, job->team[view->team]->members[pe],
                                          offset, true);
    return there;
}

int gshmem_addr_accessible(const void *addr, int pe)
{
    uint64_t offset;
    int segment;

    if (find_mapped(gshmem_ctx_default, addr, pe))
        return 1;
    if (!gshmem_pe_accessible(pe))
        return 0;
    if (job->device_heap && job->host.index_of[pe] >= 0)
        return device_heap_find(job->device_heap, addr, 1, &offset) &&
               device_heap_there(job->device_heap, pe, offset, false) != 0;
    return job->host.index_of[pe] < 0 &&
           network_locate(job->network, addr, 1, &segment, &offset) &&
           (segment < SEGMENT_DATA || network_same_program(job->network, pe));
}

void *gshmem_ptr(const void *dest, int pe)
{
    return find_mapped(gshmem_ctx_default, dest, pe);
}

void *gshmem_team_ptr(gshmem_team_t handle, const void *dest, int pe)
{
    const struct team *team = team_find(handle, "gshmem_team_ptr");

    return team ? find_mapped(&team->view, dest, pe) : NULL;
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
