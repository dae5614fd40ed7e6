/* Collectives of far groups whose data does not fit into notes.
 *
 * Data moves between members by the library's own put and get, all of a phase in flight at once;
 * rounds separate the phases. Results are combined in the order of the members, as everywhere. */
#include <stdlib.h>
#include <string.h>

#include "gshmem.h"
#include "runtime/base/log.h"
#include "runtime/collectives/far.h"
#include "runtime/collectives/table.h"

enum { PIECE_BYTES = 256 * 1024 }; /* of every member's data, combined at a time */

/* ---- Moving ---- */

/* Completes what this member has put and got, and meets the others. */
static gshmem_status_t finish(struct call *c, gshmem_status_t status)
{
    gshmem_status_t quiet = gshmem_quiet(), met = call_meet(c);

    return status ? status : quiet ? quiet : met;
}

/* bytes of mine to the same place of every member's dest. */
static gshmem_status_t give_to_all(struct call *c, size_t at)
{
    struct group *g = c->group;
    gshmem_status_t status = GSHMEM_OK;

    for (int step = 1; step <= g->n && c->bytes && !status; step++) {
        int i = call_after(g, step);
        if (i != g->my || c->dest.mine + at != c->source.mine)
            status = gshmem_putmem_nbi(c->dest.mine + at, c->source.mine, c->bytes, g->pe[i]);
    }
    return status;
}

gshmem_status_t broadcast_far(struct call *c)
{
    gshmem_status_t status = call_enter(c);

    if (status)
        return status;
    if (c->group->my == c->root)
        status = give_to_all(c, 0);
    return finish(c, status);
}

gshmem_status_t collect_far(struct call *c)
{
    gshmem_status_t status = call_enter(c);

    return status ? status : finish(c, give_to_all(c, (size_t)c->group->my * c->bytes));
}

gshmem_status_t collect_far_at(struct call *c, size_t my_place, bool mine)
{
    return finish(c, mine ? give_to_all(c, my_place) : GSHMEM_OK);
}

gshmem_status_t alltoall_far(struct call *c)
{
    struct group *g = c->group;
    gshmem_status_t status = call_enter(c);

    if (status)
        return status;
    for (int step = 1; step <= g->n && !status; step++) {
        int i = call_after(g, step);
        status = gshmem_putmem_nbi(c->dest.mine + (size_t)g->my * c->bytes,
                                   c->source.mine + (size_t)i * c->bytes, c->bytes, g->pe[i]);
    }
    return finish(c, status);
}

gshmem_status_t alltoalls_far(struct call *c)
{
    struct group *g = c->group;
    size_t to = (size_t)c->dst * c->element * c->n, from = (size_t)c->sst * c->element * c->n;
    gshmem_status_t status = call_enter(c);

    if (status)
        return status;
    for (int step = 1; step <= g->n && !status; step++) {
        int i = call_after(g, step);
        status = gshmem_ctx_iputmem(GSHMEM_CTX_DEFAULT, c->dest.mine + (size_t)g->my * to,
                                    c->source.mine + (size_t)i * from, c->dst, c->sst, c->element,
                                    c->n, g->pe[i]);
    }
    return finish(c, status);
}

/* ---- Combining ---- */

/* The members whose data this one combines, and where in their sources it begins. */
struct range {
    int first;
    int last; /* before first: none, and the result is zero */
    size_t offset;
};

/* Gets `bytes` of each member of the range into pieces, one after another. */
static gshmem_status_t get_pieces(struct call *c, const struct range *r, size_t at, size_t bytes,
                                  char *pieces)
{
    gshmem_status_t status = GSHMEM_OK, quiet;

    for (int i = r->first; i <= r->last && !status; i++)
        status = gshmem_getmem_nbi(pieces + (size_t)(i - r->first) * bytes,
                                   c->source.mine + r->offset + at, bytes, c->group->pe[i]);
    quiet = gshmem_quiet();
    return status ? status : quiet;
}

static void combine_pieces(struct call *c, const struct range *r, size_t bytes, char *pieces)
{
    for (int i = r->first + 1; i <= r->last; i++)
        c->combine(pieces, pieces, pieces + (size_t)(i - r->first) * bytes, bytes / c->element);
}

/* Piece by piece: everyone gets what it combines, and writes only after all have got theirs, since
 * dest may be another's source. */
static gshmem_status_t combine_far(struct call *c, struct range r)
{
    size_t piece = PIECE_BYTES / c->element * c->element;
    size_t members = r.last >= r.first ? (size_t)(r.last - r.first + 1) : 1;
    gshmem_status_t status = call_enter(c), lost = GSHMEM_OK;

    if (status)
        return status;
    if (piece > c->bytes)
        piece = c->bytes;
    char *pieces = malloc(members * piece + 1);
    if (!pieces)
        lost = fail(GSHMEM_ERR_MEMORY, "%s: out of memory for %zu pieces of %zu B", c->name, members,
                    piece);
    for (size_t at = 0; at < c->bytes && !status; at += piece) {
        size_t bytes = c->bytes - at < piece ? c->bytes - at : piece;
        if (!lost)
            lost = get_pieces(c, &r, at, bytes, pieces);
        status = call_meet(c);
        if (status || lost)
            continue; /* the others count on this member's rounds */
        if (r.last >= r.first) {
            combine_pieces(c, &r, bytes, pieces);
            memcpy(c->dest.mine + at, pieces, bytes);
        } else {
            memset(c->dest.mine + at, 0, bytes);
        }
    }
    free(pieces);
    return status ? status : lost;
}

gshmem_status_t reduce_far(struct call *c)
{
    return combine_far(c, (struct range){0, c->group->n - 1, 0});
}

gshmem_status_t reducescatter_far(struct call *c)
{
    return combine_far(c, (struct range){0, c->group->n - 1, (size_t)c->group->my * c->bytes});
}

gshmem_status_t inscan_far(struct call *c)
{
    return combine_far(c, (struct range){0, c->group->my, 0});
}

gshmem_status_t exscan_far(struct call *c)
{
    return combine_far(c, (struct range){0, c->group->my - 1, 0});
}
