/* Small collectives: the data is in the slots of one round.
 *
 * Each member copies its data into its slot, takes part in the round, and takes what it needs from
 * the others' slots. A member writes only its own dest, so that none has to wait afterwards. */
#include <string.h>

#include "runtime/collectives/table.h"
#include "runtime/teams/rooted.h"

gshmem_status_t broadcast_noted(struct call *c)
{
    struct group *g = c->group;
    gshmem_status_t status;

    g->brought = c->bytes;
    if (g->my == c->root && c->bytes)
        gshmem_copy(group_note(g)->data, c->source.mine, c->bytes);
    if ((status = call_meet(c)))
        return status;
    if (c->bytes && !(c->spare_root && g->my == c->root))
        gshmem_copy(c->dest.mine, group_read(g, c->root)->data, c->bytes);
    return GSHMEM_OK;
}

gshmem_status_t broadcast_rooted(struct call *c)
{
    struct group *g = c->group;

    if (!rooted_can_come(g, c->bytes))
        return broadcast_noted(c);
    if (g->my != c->root)
        return rooted_take(g, c->root, c->signature, c->dest.mine, c->bytes, c->name);
    const gshmem_status_t status =
        rooted_give(g, c->signature, c->source.mine, c->bytes, c->name);
    if (!status && c->bytes && !c->spare_root && c->dest.mine != c->source.mine)
        gshmem_copy(c->dest.mine, c->source.mine, c->bytes);
    return status;
}

gshmem_status_t collect_noted(struct call *c)
{
    struct group *g = c->group;
    gshmem_status_t status;

    g->brought = c->bytes;
    if (c->bytes)
        gshmem_copy(group_note(g)->data, c->source.mine, c->bytes);
    if ((status = call_meet(c)))
        return status;
    for (int i = 0; i < g->n && c->bytes; i++)
        gshmem_copy(c->dest.mine + (size_t)i * c->bytes, call_brought_by(c, i), c->bytes);
    return GSHMEM_OK;
}

/* bytes: of one block. The slot has room for the blocks for all members, this one's own included,
 * which is not copied there. */
gshmem_status_t alltoall_noted(struct call *c)
{
    struct group *g = c->group;
    size_t before = (size_t)g->my * c->bytes, after = (size_t)(g->n - 1 - g->my) * c->bytes;
    gshmem_status_t status;

    g->brought = (size_t)g->n * c->bytes;
    if (before)
        gshmem_copy(group_note(g)->data, c->source.mine, before);
    if (after)
        gshmem_copy(group_note(g)->data + before + c->bytes, c->source.mine + before + c->bytes,
                    after);
    if ((status = call_meet(c)))
        return status;
    for (int i = 0; i < g->n && c->bytes; i++)
        gshmem_copy(c->dest.mine + (size_t)i * c->bytes,
                    call_brought_by(c, i) + (size_t)g->my * c->bytes, c->bytes);
    return GSHMEM_OK;
}

gshmem_status_t alltoalls_noted(struct call *c)
{
    struct group *g = c->group;
    size_t all = (size_t)g->n * c->n;
    char *note, *dest = c->dest.mine;
    gshmem_status_t status;

    g->brought = all * c->element;
    note = group_note(g)->data;
    for (size_t i = 0; i < all; i++)
        memcpy(note + i * c->element, c->source.mine + i * (size_t)c->sst * c->element, c->element);
    if ((status = call_meet(c)))
        return status;
    for (int i = 0; i < g->n; i++) {
        const char *block = group_read(g, i)->data + (size_t)g->my * c->bytes;
        for (size_t j = 0; j < c->n; j++, dest += (size_t)c->dst * c->element)
            memcpy(dest, block + j * c->element, c->element);
    }
    return GSHMEM_OK;
}

/* ---- Reductions and scans ---- */

/* out = the combination of the data of members first … last at `offset` in their slots, in this
 * order. */
static void combine_notes(const struct call *c, int first, int last, size_t offset, void *out)
{
    if (!c->bytes)
        return;
    const void *value = call_brought_by(c, first) + offset;
    if (first == last)
        gshmem_copy(out, value, c->bytes);
    for (int i = first + 1; i <= last; i++) {
        c->combine(out, value, call_brought_by(c, i) + offset, c->n);
        value = out;
    }
}

static gshmem_status_t noted_exchange(struct call *c, size_t bytes)
{
    c->group->brought = bytes;
    if (bytes)
        gshmem_copy(group_note(c->group)->data, c->source.mine, bytes);
    return call_meet(c);
}

gshmem_status_t reduce_noted(struct call *c)
{
    gshmem_status_t status = noted_exchange(c, c->bytes);

    if (!status)
        combine_notes(c, 0, c->group->n - 1, 0, c->dest.mine);
    return status;
}

/* bytes: of a member's part; the slot contains all parts. */
gshmem_status_t reducescatter_noted(struct call *c)
{
    struct group *g = c->group;
    gshmem_status_t status = noted_exchange(c, (size_t)g->n * c->bytes);

    if (!status)
        combine_notes(c, 0, g->n - 1, (size_t)g->my * c->bytes, c->dest.mine);
    return status;
}

gshmem_status_t inscan_noted(struct call *c)
{
    gshmem_status_t status = noted_exchange(c, c->bytes);

    if (!status)
        combine_notes(c, 0, c->group->my, 0, c->dest.mine);
    return status;
}

gshmem_status_t exscan_noted(struct call *c)
{
    gshmem_status_t status = noted_exchange(c, c->bytes);

    if (status)
        return status;
    if (c->group->my > 0)
        combine_notes(c, 0, c->group->my - 1, 0, c->dest.mine);
    else if (c->bytes)
        memset(c->dest.mine, 0, c->bytes);
    return GSHMEM_OK;
}
