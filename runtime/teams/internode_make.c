/* What a group has for rounds between nodes: which members are where, the inboxes of leaders. */
#include <stdlib.h>
#include <string.h>

#include "bootstrap/bootstrap.h"
#include "gshmem.h"
#include "runtime/job/job.h"
#include "runtime/memory/map.h"
#include "runtime/node/node.h"
#include "runtime/teams/context.h"
#include "runtime/teams/group.h"
#include "runtime/teams/internode.h"
#include "runtime/teams/internode_parts.h"
#include "runtime/teams/team.h"

static int host_of(const struct job *j, int pe)
{
    return j->bootstrap->host[pe];
}

/* Leaders in the order of the members, and the members on this node. number: 1 + each node's number
 * in the group, once a member of it has been seen. */
static void sort_members(struct internode *f, const struct group *g, const struct job *j,
                         int *number)
{
    int n_local = 0;

    for (int i = 0; i < g->n; i++) {
        int *seen = &number[host_of(j, g->pe[i])];
        if (!*seen) {
            f->leader[f->hosts] = i;
            *seen = ++f->hosts;
        }
        const int h = *seen - 1;
        f->node[i] = h;
        f->place[i] = f->first[h + 1]++;
        f->away[i] = j->node->index_of[g->pe[i]] < 0;
        f->n_away += f->away[i];
        if (!f->away[i]) {
            f->my_host = h;
            f->local_member[n_local] = i;
            f->local_pe[n_local++] = g->pe[i];
        }
    }
}

/* From the number of members of each node, and each member's number there, to the places where they
 * begin. */
static void internode_find_places(struct internode *f, int n)
{
    for (int h = 0; h < f->hosts; h++) {
        int pairs = f->first[h + 1] * (n - f->first[h + 1]);
        f->pairs = pairs > f->pairs ? pairs : f->pairs;
        f->first[h + 1] += f->first[h];
    }
    for (int i = 0; i < n; i++)
        f->place[i] += f->first[f->node[i]];
}

static int my_place(const struct internode *f, const struct job *j, int n)
{
    for (int i = 0; i < n; i++) {
        if (f->local_pe[i] == j->pe)
            return i;
    }
    return -1;
}

static void internode_free(struct internode *f)
{
    group_destroy(f->local);
    free(f->leader);
    free(f->first);
    free(f->away);
    free(f->context);
    free(f->fetched.slots);
    if (!pending_any(&f->moving)) /* as it may after a failure */
        open_batches_free(&f->moving);
    free(f);
}

static const struct group_remote remote_functions = {
    .note = internode_note,
    .read = internode_read,
    .signed_by = internode_signed,
    .farewell = internode_farewell,
    .is_away = internode_is_away,
    .break_off = internode_break_off,
    .free = internode_free,
    .can_be_rooted = internode_can_be_rooted,
    .rooted_data = internode_rooted_data,
    .arrive = internode_arrive_rooted,
    .give = internode_give_rooted,
    .look = internode_look_rooted,
};

bool internode_prepare(struct group *g, const struct job *j)
{
    bool internode = false;

    for (int i = 0; i < g->n && !internode; i++)
        internode = j->node->index_of[g->pe[i]] < 0;
    if (!internode)
        return true;

    struct internode *f = g->internode = calloc(1, sizeof *f);
    if (!f)
        return false;
    f->awaited = -1;
    f->pending.internal = f->moving.internal = true;
    g->remote = &remote_functions;
    f->leader = malloc((size_t)g->n * 5 * sizeof *f->leader);
    f->first = calloc((size_t)g->n + 1, sizeof *f->first);
    f->away = calloc((size_t)g->n, sizeof *f->away);
    f->context = calloc(1, sizeof *f->context);
    int *number = calloc((size_t)j->bootstrap->n_hosts, sizeof *number);
    if (!f->leader || !f->first || !f->away || !f->context || !number) {
        free(number);
        return false;
    }
    f->local_pe = f->leader + g->n;
    f->local_member = f->local_pe + g->n;
    f->node = f->local_member + g->n;
    f->place = f->node + g->n;
    sort_members(f, g, j, number);
    free(number);
    internode_find_places(f, g->n);
    int n_local = g->n - f->n_away;
    f->local = group_create(n_local, my_place(f, j, n_local), f->local_pe,
                            j->node->oversubscribed ? node_cpus(j->node) : 0);
    g->meet = internode_meet;
    g->leader = f->local_member[0];
    if (f->local)
        f->local->outer.group = g;
    return f->local != NULL;
}

size_t internode_system_bytes(void)
{
    return (size_t)INBOX_TEAMS * (2 * INBOX_BYTES + (ROOTED_EVERY - 1) * ROOTED_ROOM);
}

void internode_install(struct group *g, const struct job *j, int slot)
{
    struct internode *f = g->internode;

    f->local->block = team_block_offset(j, slot, true);
    for (int i = 0; i < f->local->n; i++) {
        const uintptr_t system = map_mapped(j->map, SEGMENT_SYSTEM, f->local_pe[i]);
        f->local->sync[i] = (struct team_sync *)(system + f->local->block);
    }
    f->local->team = slot;
    for (unsigned int parity = 0; parity < 2; parity++)
        f->inbox[parity] = slot < INBOX_TEAMS
                               ? (char *)map_mapped(j->map, SEGMENT_SYSTEM, f->local_pe[0]) +
                                     internode_inbox_offset(slot, parity)
                               : NULL;
}

gshmem_ctx_t internode_context(const struct group *g)
{
    struct context *c = g->internode->context;

    if (!c->view.n_pes) {
        *c = (struct context){.view = job->team[GSHMEM_TEAM_WORLD]->view,
                              .pending = &g->internode->moving};
        c->pending->view = &c->view;
        c->pending->batches_copy = &c->batches;
    }
    return &c->view;
}

int internode_hosts(const struct group *g)
{
    return g->internode->hosts;
}

int internode_awaited(const struct group *g)
{
    const struct internode *f = g->internode;
    /* relaxed, both: the round itself looks once more before it fails */
    const int member = atomic_load_explicit(&f->awaited, memory_order_relaxed);

    if (member < 0)
        return -1;
    const unsigned int distance = (unsigned int)(f->my_host + f->hosts - f->node[member]);
    const int step = __builtin_ctz(distance % (unsigned int)f->hosts);
    uint64_t word = atomic_load_explicit(&g->sync[g->my]->step[step].word[g->full & 1],
                                         memory_order_relaxed);

    return word >> 32 == g->round || internode_is_broken(word) ? -1 : g->pe[member];
}

int internode_my_host(const struct group *g)
{
    return g->internode->my_host;
}

bool internode_ends(const struct group *g)
{
    return g->internode->ends;
}

const struct group *internode_neighbours(const struct group *g)
{
    return g->internode->local;
}

const int *internode_local(const struct group *g)
{
    return g->internode->local_member;
}
