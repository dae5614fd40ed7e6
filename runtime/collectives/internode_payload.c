/* Collectives of internode groups whose data is sent with rounds: one message for a pair of nodes,
 * which the leaders send, from an inbox that their node's members fill to an inbox from which
 * others read their parts.
 *
 * No member writes another's dest, so no round is needed before or after, and nothing needs a
 * response. Data larger than an inbox is sent in chunks. Results are combined in an order that is
 * always the same: the members of a node in theirs, then nodes in the order of their first
 * members. */
#include <string.h>

#include "runtime/teams/internode.h"
#include "runtime/teams/rooted.h"
#include "runtime/collectives/table.h"

enum {
    /* Where each node has one member, larger data is put: it goes over the network as often, and is
     * copied once less on each side. */
    ALONE_BROADCAST = 64 * 1024,
    ALONE_COLLECT = 128 * 1024,
    NOTED_PAIRS = 8 * 1024,  /* alltoall: below this, data goes in slots, with parts that their
                                readers do not need */
    NOTED_ALONE = 1024,      /* the same where each node has one member */
    NOTED_SUMS = 4 * 1024,   /* reductions: below this, all members combine all data */
    PAIR_BYTES = 128 * 1024, /* alltoall: above this, data is put to its place directly */
    PAIR_LEAST = 4 * 1024,   /* and so is data that would take many rounds */
};

/* Data that does not fit into a slot may be moved by other algorithms in other teams: the calls are
 * the same only if the objects are. */
static gshmem_status_t internode_payload_run(struct call *c, algorithm_fn *algorithm,
                                             size_t brought)
{
    if (brought > NOTE_BYTES)
        call_name_objects(c);
    return algorithm(c);
}

static size_t internode_payload_least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static bool each_node_has_one(const struct group *g)
{
    return g->n == internode_hosts(g);
}

/* ---- Moving ---- */

static gshmem_status_t broadcast_pieces(struct call *c)
{
    struct group *g = c->group;
    size_t most = internode_most(g, PAYLOAD_ONE);
    bool keeps = g->my == c->root && (c->spare_root || c->dest.mine == c->source.mine);
    gshmem_status_t status = GSHMEM_OK;
    size_t at = 0;

    do {
        size_t bytes = internode_payload_least(c->bytes - at, most);
        internode_load(g, PAYLOAD_ONE, c->root, bytes);
        if (g->my == c->root && bytes)
            memcpy(group_note(g)->data, c->source.mine + at, bytes);
        status = call_meet(c);
        if (!status && !keeps && bytes)
            memcpy(c->dest.mine + at, group_read(g, c->root)->data, bytes);
        at += bytes;
    } while (at < c->bytes && !status);
    return status;
}

gshmem_status_t internode_broadcast(struct call *c)
{
    const size_t most = internode_most(c->group, PAYLOAD_ONE);
    const bool alone = each_node_has_one(c->group);

    if (rooted_can_come(c->group, c->bytes))
        return broadcast_rooted(c);
    if (most && (!alone || c->bytes <= internode_payload_least(most, ALONE_BROADCAST)))
        return internode_payload_run(c, broadcast_pieces, c->bytes);
    if (c->bytes > NOTE_BYTES)
        return broadcast_put(c);
    internode_load(c->group, PAYLOAD_ONE, c->root, c->bytes);
    return broadcast_noted(c);
}

/* The most that goes by slots if every member's data is for all. */
static size_t internode_collect_most(const struct group *g)
{
    const size_t most = internode_most(g, PAYLOAD_NOTES);

    return each_node_has_one(g) ? internode_payload_least(most, ALONE_COLLECT) : most;
}

gshmem_status_t internode_fcollect(struct call *c)
{
    if (c->bytes <= NOTE_BYTES || c->bytes <= internode_collect_most(c->group))
        return internode_payload_run(c, collect_noted, c->bytes);
    return collect_put(c);
}

/* The second round of collect: all know how large the largest block is. */
gshmem_status_t internode_collect(struct call *c, size_t my_place, size_t largest)
{
    struct group *g = c->group;
    gshmem_status_t status;
    size_t at = 0;

    if (largest > internode_collect_most(g))
        return collect_put_at(c, my_place, c->bytes > NOTE_BYTES);
    g->brought = largest;
    group_note(g)->value = c->bytes;
    if (c->bytes)
        memcpy(group_note(g)->data, c->source.mine, c->bytes);
    if ((status = call_meet(c)))
        return status;
    for (int i = 0; i < g->n; i++) {
        const struct note *note = group_read(g, i);
        if (note->value)
            memcpy(c->dest.mine + at, note->data, note->value);
        at += note->value;
    }
    return GSHMEM_OK;
}

/* Reads from local members their data for this member. They stay until all have. */
static gshmem_status_t take_from_neighbours(struct call *c)
{
    struct group *g = c->group;

    for (int l = 0; l < internode_neighbours(g)->n; l++) {
        int i = internode_local(g)[l];
        memcpy(c->dest.mine + (size_t)i * c->bytes,
               place_at(g, &c->source, i) + (size_t)g->my * c->bytes, c->bytes);
    }
    return internode_meet_neighbours(g, signature_make(COLLECTIVE_SYNC, 0), c->name);
}

static gshmem_status_t alltoall_pairs(struct call *c)
{
    struct group *g = c->group;
    size_t most = internode_most(g, PAYLOAD_PAIRS);
    gshmem_status_t status = GSHMEM_OK;

    for (size_t at = 0, bytes; at < c->bytes && !status; at += bytes) {
        bytes = internode_payload_least(c->bytes - at, most);
        internode_load(g, PAYLOAD_PAIRS, 0, bytes);
        for (int i = 0; i < g->n; i++) {
            if (internode_is_away(g, i))
                memcpy(internode_out(g, i), c->source.mine + (size_t)i * c->bytes + at, bytes);
        }
        if ((status = call_meet(c)))
            break;
        for (int i = 0; i < g->n; i++) {
            if (internode_is_away(g, i))
                memcpy(c->dest.mine + (size_t)i * c->bytes + at, internode_in(g, i), bytes);
        }
    }
    return status ? status : take_from_neighbours(c);
}

gshmem_status_t internode_alltoall(struct call *c)
{
    size_t all = (size_t)c->group->n * c->bytes, most = internode_most(c->group, PAYLOAD_PAIRS);

    /* without local members to synchronize with */
    bool alone = c->group->n == internode_hosts(c->group);
    size_t noted = alone && most >= c->bytes ? NOTED_ALONE : NOTED_PAIRS;

    if (all <= noted && (all <= NOTE_BYTES || all <= internode_most(c->group, PAYLOAD_NOTES)))
        return internode_payload_run(c, alltoall_noted, all);
    if (c->bytes <= PAIR_BYTES && (c->bytes <= most || most >= PAIR_LEAST))
        return internode_payload_run(c, alltoall_pairs, all);
    return alltoall_put(c);
}

/* ---- Combining ---- */

/* Combines `bytes` bytes of the local members' sources, at `at`: this member's share, to its place
 * in their node's part. Shares are whole lines. */
static void combine_share(struct call *c, size_t at, size_t bytes)
{
    struct group *g = c->group;
    const int *local = internode_local(g);
    size_t members = (size_t)internode_neighbours(g)->n, my = (size_t)internode_neighbours(g)->my;
    size_t lines = (bytes + SYNC_LINE - 1) / SYNC_LINE;
    size_t share = (lines + members - 1) / members * SYNC_LINE / c->element * c->element;
    size_t first = internode_payload_least(my * share, bytes),
           end = my + 1 == members ? bytes : internode_payload_least(first + share, bytes);
    char *out = internode_part(g, internode_my_host(g)) + first;
    const char *value = place_at(g, &c->source, local[0]) + at + first;

    if (members == 1 && end > first)
        memcpy(out, value, end - first);
    for (size_t l = 1; l < members && end > first; l++, value = out)
        c->combine(out, value, place_at(g, &c->source, local[l]) + at + first,
                   (end - first) / c->element);
}

static void combine_parts(struct call *c, size_t at, size_t bytes)
{
    const struct group *g = c->group;
    const char *value = internode_part_read(g, 0);
    char *out = c->dest.mine + at;

    for (int h = 1; h < internode_hosts(g); h++, value = out)
        c->combine(out, value, internode_part_read(g, h), bytes / c->element);
}

/* Local members read each other's sources only when all have arrived, and before the round in which
 * they send to other nodes. The result is written after that round, so dest may be source. */
static gshmem_status_t reduce_by_hosts(struct call *c)
{
    struct group *g = c->group;
    size_t most = internode_most(g, PAYLOAD_HOSTS) / c->element * c->element;
    gshmem_status_t status;

    if ((status = internode_enter_neighbours(g, c->signature, c->name)))
        return status;
    for (size_t at = 0, bytes; at < c->bytes && !status; at += bytes) {
        bytes = internode_payload_least(c->bytes - at, most);
        internode_load(g, PAYLOAD_HOSTS, 0, bytes);
        combine_share(c, at, bytes);
        if (!(status = call_meet(c)))
            combine_parts(c, at, bytes);
    }
    return status;
}

/* Where there are many nodes with few members each, sending all parts takes more than sending all
 * members' shares twice. */
gshmem_status_t internode_reduce(struct call *c)
{
    const struct group *g = c->group;
    size_t most = internode_most(g, PAYLOAD_HOSTS);
    bool few = internode_hosts(g) <= 2 ||
               (size_t)internode_hosts(g) * (size_t)internode_hosts(g) <= 2 * (size_t)g->n;

    if (c->bytes <= NOTE_BYTES ||
        (c->bytes <= NOTED_SUMS && c->bytes <= internode_most(g, PAYLOAD_NOTES)))
        return internode_payload_run(c, reduce_noted, c->bytes);
    return most >= SYNC_LINE && few ? internode_payload_run(c, reduce_by_hosts, c->bytes)
                                    : reduce_put(c);
}
