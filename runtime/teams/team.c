/* Teams as objects: making, finding, querying and freeing them. split.c has the agreement on new
 * ones. */
#include "runtime/teams/team.h"

#include <stdlib.h>
#include <string.h>

#include "bootstrap/bootstrap.h"
#include "gshmem.h"
#include "runtime/base/log.h"
#include "runtime/job/job.h"
#include "runtime/memory/map.h"
#include "runtime/node/node.h"
#include "runtime/races/races.h"
#include "runtime/teams/group.h"
#include "runtime/teams/internode.h"
#include "runtime/teams/observer.h"
#include "runtime/trace/trace.h"

size_t team_system_bytes(void)
{
    /* an inter-node group has an inner group */
    return 2 * (size_t)TEAM_RANGE * sizeof(struct team_sync)
           + internode_system_bytes();
}

size_t team_later_bytes(void)
{
    return 2 * (size_t)(TEAM_MAX - TEAM_RANGE) * sizeof(struct team_sync);
}

/* Both blocks of a later slot are side by side, in pages of their own. */
uint64_t team_block_offset(const struct job *j, gshmem_team_t slot, bool inner)
{
    const uint64_t bytes = sizeof(struct team_sync);

    if (slot < TEAM_RANGE)
        return ((uint64_t)slot + (inner ? TEAM_RANGE : 0)) * bytes;
    return j->later_at + (2 * (uint64_t)(slot - TEAM_RANGE) + inner) * bytes;
}

/* ---- Making and freeing ---- */

/* What inline code sees of a segment: it updates in place what CPUs update. Objects of any other
 * domain are in no view, so that calls on them go out of line. */
static struct gshmem_segment team_view_of(const struct segment *s, const uintptr_t *peer)
{
    switch ((enum atomicity)s->atomicity) {
    case ATOMICITY_CPU:
        return (struct gshmem_segment){s->base, s->bytes, peer};
    case ATOMICITY_GPU:
    case ATOMICITY_NIC:
        break;
    }
    return (struct gshmem_segment){s->base, 0, peer};
}

/* A team in which every PE of the job has its own number uses the job's tables. */
static bool team_make_tables(struct job *j, struct team *t)
{
    size_t n = (size_t)t->n_pes;
    const struct segment *heaps = &j->map->segment[SEGMENT_HEAP];
    const struct segment *variables = &j->map->segment[SEGMENT_DATA];
    uintptr_t *heap = heaps->mapped, *data = variables->mapped;
    bool all = t->n_pes == j->n_pes;

    t->my_pe = -1;
    t->data_mapped = true;
    for (int i = 0; i < t->n_pes; i++) {
        all &= t->members[i] == i;
        /* PEs of other nodes are not mapped in any case; whether they run the same program is found
         * out at the first use. */
        t->data_mapped &= variables->mapped[t->members[i]] || !j->map->local[t->members[i]];
        if (t->members[i] == j->pe)
            t->my_pe = i;
    }
    if (!all) {
        heap = calloc(2 * n, sizeof *heap);
        if (!heap)
            return false;
        data = heap + n;
        for (size_t i = 0; i < n; i++) {
            heap[i] = heaps->mapped[t->members[i]];
            data[i] = variables->mapped[t->members[i]];
        }
    }
    t->owns_tables = !all;
    t->view = (struct gshmem_ctx){
        .heap = team_view_of(heaps, heap),
        .data = team_view_of(variables, data),
        .n_pes = t->n_pes,
        .my_pe = t->my_pe,
        .team = GSHMEM_TEAM_INVALID,
    };
    if (j->observed) /* calls find no object in the views, and so go out of line */
        t->view.heap.bytes = t->view.data.bytes = 0;
    return true;
}

struct team *team_create(struct job *j, int *members, int n, const char *call)
{
    struct team *t = calloc(1, sizeof *t);

    if (t) {
        const int cpus = j->node->oversubscribed ? node_cpus(j->node) : 0;
        *t = (struct team){.id = GSHMEM_TEAM_INVALID, .n_pes = n, .members = members};
        if (team_make_tables(j, t) && (t->group = group_create(n, t->my_pe, members, cpus)) &&
            internode_prepare(t->group, j) && j->observer->make_team(j, t)) {
            if (trace_is_on())
                group_trace(t->group);
            return t;
        }
        team_free(j, t);
    } else {
        free(members);
    }
    fail(GSHMEM_ERR_MEMORY, "%s: out of memory for a team of %d PEs", call, n);
    return NULL;
}

void team_free(struct job *j, struct team *t)
{
    if (!t)
        return;
    j->observer->free_team(t);
    group_destroy(t->group);
    if (t->owns_tables)
        free((void *)t->view.heap.peer);
    free(t->members);
    free(t);
}

void team_install(struct job *j, struct team *t, gshmem_team_t slot)
{
    const uint64_t block = team_block_offset(j, slot, false);
    const uintptr_t system = j->map->segment[SEGMENT_SYSTEM].base;

    /* Clears what an earlier team left: that team's members are done with this block (see
     * group_farewell), and the members of this team synchronize before they read it. */
    if (slot >= TEAM_FIRST_OWN) {
        if (j->races)
            races_new_team(slot);
        memset((void *)(system + block), 0, sizeof(struct team_sync));
        if (t->group->internode)
            memset((void *)(system + team_block_offset(j, slot, true)), 0,
                   sizeof(struct team_sync));
    }
    for (int i = 0; i < t->n_pes; i++) {
        const uintptr_t there = map_mapped(j->map, SEGMENT_SYSTEM, t->members[i]);
        /* 0: on another node */
        t->group->sync[i] = there ? (struct team_sync *)(there + block) : NULL;
    }
    if (t->group->internode)
        internode_install(t->group, j, slot);
    t->group->team = slot;
    t->group->block = block;
    t->view.team = slot;
    t->id = slot;
    j->team[slot] = t;
    atomic_fetch_or_explicit(&j->teams[slot / 64], UINT64_C(1) << slot % 64, memory_order_relaxed);
    j->observer->show_team(j, t);
}

static void team_forget(struct job *j, gshmem_team_t slot)
{
    atomic_fetch_and_explicit(&j->teams[slot / 64], ~(UINT64_C(1) << slot % 64),
                              memory_order_relaxed);
    j->team[slot] = NULL;
}

void team_remove(struct job *j, gshmem_team_t slot)
{
    j->observer->hide_team(j, slot);
    team_forget(j, slot);
}

static gshmem_status_t start_predefined(struct job *j, gshmem_team_t slot, const int *pes, int n)
{
    int *members = malloc((size_t)n * sizeof *members);
    struct team *t;

    if (!members)
        return fail(GSHMEM_ERR_MEMORY, "start-up: out of memory for a team of %d PEs", n);
    for (int i = 0; i < n; i++)
        members[i] = pes ? pes[i] : i;
    t = team_create(j, members, n, "start-up");
    if (!t)
        return GSHMEM_ERR_MEMORY;
    team_install(j, t, slot);
    return GSHMEM_OK;
}

/* The PEs that have this PE's number within their nodes. */
static gshmem_status_t start_same_index(struct job *j)
{
    const struct bootstrap *b = j->bootstrap;
    int *before = calloc((size_t)b->n_hosts + (size_t)j->n_pes, sizeof *before);
    int *pe = before ? before + b->n_hosts : NULL, n = 0;

    if (!before)
        return fail(GSHMEM_ERR_MEMORY, "start-up: out of memory for a team of %d PEs", j->n_pes);
    for (int i = 0; i < j->n_pes; i++) {
        if (before[b->host[i]]++ == j->node->index)
            pe[n++] = i;
    }
    const gshmem_status_t status = start_predefined(j, GSHMEM_TEAM_SAME_INDEX, pe, n);
    free(before);
    return status;
}

gshmem_status_t team_start(struct job *j)
{
    gshmem_status_t status = start_predefined(j, GSHMEM_TEAM_WORLD, NULL, j->n_pes);

    if (!status)
        status = start_predefined(j, GSHMEM_TEAM_SHARED, j->node->pe, j->node->n);
    if (!status)
        status = start_predefined(j, GSHMEM_TEAM_HOST, j->node->pe, j->node->n);
    if (!status)
        status = start_same_index(j);
    return status;
}

void team_stop(struct job *j)
{
    TEAM_FOR_ALL (j, i) {
        team_free(j, j->team[i]);
        team_forget(j, i);
    }
}

/* ---- Finding and querying ---- */

static struct team *team_look_up(gshmem_team_t handle)
{
    return job && handle >= 0 && handle < TEAM_MAX ? job->team[handle] : NULL;
}

struct team *team_find(gshmem_team_t handle, const char *call)
{
    struct team *t = team_look_up(handle);

    if (GSHMEM_LIKELY(t != NULL) || job_require(call))
        return t;
    if (handle == GSHMEM_TEAM_INVALID)
        fail(GSHMEM_ERR_ARGUMENT, "%s: the team is GSHMEM_TEAM_INVALID: this PE is not a member",
             call);
    else if (handle < 0 || handle >= TEAM_MAX)
        fail(GSHMEM_ERR_ARGUMENT, "%s: %d is not a team handle", call, handle);
    else
        fail(GSHMEM_ERR_ARGUMENT, "%s: team %d was destroyed, or never made, on this PE", call,
             handle);
    return NULL;
}

int gshmem_team_my_pe(gshmem_team_t handle)
{
    const struct team *t = team_look_up(handle);

    return t ? t->my_pe : -1;
}

int gshmem_team_n_pes(gshmem_team_t handle)
{
    const struct team *t = team_look_up(handle);

    return t ? t->n_pes : -1;
}

gshmem_status_t gshmem_team_get_config(gshmem_team_t handle, long config_mask,
                                       gshmem_team_config_t *config)
{
    const struct team *t = team_find(handle, "gshmem_team_get_config");

    if (!t)
        return last_error_status();
    if (config_mask & ~GSHMEM_TEAM_NUM_CONTEXTS)
        return fail(GSHMEM_ERR_ARGUMENT,
                    "gshmem_team_get_config: config_mask 0x%lx has bits beyond "
                    "GSHMEM_TEAM_NUM_CONTEXTS",
                    (unsigned long)config_mask);
    if (config_mask && !config)
        return fail(GSHMEM_ERR_ARGUMENT, "gshmem_team_get_config: config is NULL");
    if (config_mask & GSHMEM_TEAM_NUM_CONTEXTS)
        config->num_contexts = t->config.num_contexts;
    return GSHMEM_OK;
}

int gshmem_team_translate_pe(gshmem_team_t src_team, int src_pe, gshmem_team_t dest_team)
{
    const struct team *from = team_look_up(src_team), *to = team_look_up(dest_team);
    int pe = from ? team_world_pe(from, src_pe) : -1;

    if (pe < 0 || !to)
        return -1;
    if (!to->owns_tables) /* numbers in that team are those of the job */
        return pe;
    for (int i = 0; i < to->n_pes; i++) {
        if (to->members[i] == pe)
            return i;
    }
    return -1;
}
