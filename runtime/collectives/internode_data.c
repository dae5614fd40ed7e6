/* Collectives of internode groups whose data moves by the library's own put and get, from member to
 * member, all of a phase in flight at once; rounds separate the phases. Results are combined in the
 * order of the members. Data that fits into rounds is sent with them: internode_payload.c. */
#include <stdlib.h>
#include <string.h>

#include "gshmem.h"
#include "runtime/base/log.h"
#include "runtime/teams/internode.h"
#include "runtime/collectives/table.h"

enum {
    PIECE_BYTES = 256 * 1024, /* of every member's data, combined at a time */
    SHARED_BYTES = 32 * 1024, /* data larger than that is reduced by shares */
};

/* ---- Rounds ---- */

/* Rounds whose slots carry at most a number: nothing more is fetched from other nodes. */
static gshmem_status_t internode_data_meet(struct call *c)
{
    c->group->brought = 0;
    return call_meet(c);
}

static gshmem_status_t internode_data_enter(struct call *c)
{
    c->group->brought = 0;
    return call_enter(c);
}

/* A round in which each member reports its status: the first failure of any is that of all. */
static gshmem_status_t meet_and_tell(struct call *c, gshmem_status_t mine)
{
    struct group *g = c->group;

    g->brought = 0;
    group_note(g)->value = (uint64_t)mine;
    gshmem_status_t status = internode_data_meet(c);
    for (int i = 0; i < g->n && !status && !mine; i++) {
        if (group_read(g, i)->value)
            status = fail((gshmem_status_t)group_read(g, i)->value, "%s on team %d: PE %d failed",
                          c->name, g->team, g->pe[i]);
    }
    return mine ? mine : status;
}

/* ---- Moving ---- */

/* Completes this member's puts and gets, and synchronizes with the others, whose data is incomplete
 * if that failed. */
static gshmem_status_t internode_data_finish(struct call *c, gshmem_status_t status)
{
    gshmem_status_t quiet = gshmem_ctx_quiet(internode_context(c->group));

    return meet_and_tell(c, status ? status : quiet);
}

/* Puts this member's bytes to the same place of every member's dest. */
static gshmem_status_t internode_data_give_to_all(struct call *c, size_t at)
{
    struct group *g = c->group;
    gshmem_status_t status = GSHMEM_OK;

    for (int step = 1; step <= g->n && c->bytes && !status; step++) {
        int i = call_after(g, step);
        if (i != g->my || (c->dest.mine + at != c->source.mine && !c->spare_root))
            status = gshmem_ctx_putmem_nbi(internode_context(g), c->dest.mine + at, c->source.mine,
                                           c->bytes, g->pe[i]);
    }
    return status;
}

gshmem_status_t broadcast_put(struct call *c)
{
    gshmem_status_t status = internode_data_enter(c);

    if (status)
        return status;
    if (c->group->my == c->root)
        status = internode_data_give_to_all(c, 0);
    return internode_data_finish(c, status);
}

gshmem_status_t collect_put(struct call *c)
{
    gshmem_status_t status = internode_data_enter(c);

    return status ? status
                  : internode_data_finish(
                        c, internode_data_give_to_all(c, (size_t)c->group->my * c->bytes));
}

gshmem_status_t collect_put_at(struct call *c, size_t my_place, bool mine)
{
    return internode_data_finish(c, mine ? internode_data_give_to_all(c, my_place) : GSHMEM_OK);
}

gshmem_status_t alltoall_put(struct call *c)
{
    struct group *g = c->group;
    gshmem_status_t status = internode_data_enter(c);

    if (status)
        return status;
    for (int step = 1; step <= g->n && !status; step++) {
        int i = call_after(g, step);
        status =
            gshmem_ctx_putmem_nbi(internode_context(g), c->dest.mine + (size_t)g->my * c->bytes,
                                  c->source.mine + (size_t)i * c->bytes, c->bytes, g->pe[i]);
    }
    return internode_data_finish(c, status);
}

gshmem_status_t internode_alltoalls(struct call *c)
{
    struct group *g = c->group;
    size_t to = (size_t)c->dst * c->element * c->n, from = (size_t)c->sst * c->element * c->n;
    gshmem_status_t status = internode_data_enter(c);

    if (status)
        return status;
    for (int step = 1; step <= g->n && !status; step++) {
        int i = call_after(g, step);
        status = gshmem_ctx_iputmem(internode_context(g), c->dest.mine + (size_t)g->my * to,
                                    c->source.mine + (size_t)i * from, c->dst, c->sst, c->element,
                                    c->n, g->pe[i]);
    }
    return internode_data_finish(c, status);
}

/* ---- Combining ---- */

/* The members whose data this one combines, and where in their sources it begins. */
struct range {
    int first;
    int last; /* before first: no members, and the result is zero */
    size_t offset;
};

/* Gets `bytes` of each member of the range into a buffer, one after another. */
static gshmem_status_t get_pieces(struct call *c, const struct range *r, size_t at, size_t bytes,
                                  char *pieces)
{
    gshmem_status_t status = GSHMEM_OK, quiet;

    for (int i = r->first; i <= r->last && !status; i++)
        status = gshmem_ctx_getmem_nbi(internode_context(c->group),
                                       pieces + (size_t)(i - r->first) * bytes,
                                       c->source.mine + r->offset + at, bytes, c->group->pe[i]);
    quiet = gshmem_ctx_quiet(internode_context(c->group));
    return status ? status : quiet;
}

static void combine_pieces(struct call *c, const struct range *r, size_t bytes, char *pieces)
{
    for (int i = r->first + 1; i <= r->last; i++)
        c->combine(pieces, pieces, pieces + (size_t)(i - r->first) * bytes, bytes / c->element);
}

/* Chunk by chunk: each member gets what it combines, and writes only after all have got theirs,
 * since dest may be another's source. */
static gshmem_status_t internode_combine(struct call *c, struct range r)
{
    size_t piece = PIECE_BYTES / c->element * c->element;
    size_t members = r.last >= r.first ? (size_t)(r.last - r.first + 1) : 1;
    gshmem_status_t status = internode_data_enter(c), lost = GSHMEM_OK;

    if (status)
        return status;
    if (piece > c->bytes)
        piece = c->bytes;
    char *pieces = malloc(members * piece + 1);
    if (!pieces)
        lost = fail(GSHMEM_ERR_MEMORY, "%s: out of memory for %zu pieces of %zu B", c->name,
                    members, piece);
    for (size_t at = 0; at < c->bytes && !status; at += piece) {
        size_t bytes = c->bytes - at < piece ? c->bytes - at : piece;
        if (!lost)
            lost = get_pieces(c, &r, at, bytes, pieces);
        status = internode_data_meet(c);
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

/* Reduces `bytes` bytes of every member's source, at `at`, to those of every dest. All members have
 * got theirs before any of them puts, since dest may be another's source. */
static gshmem_status_t reduce_share(struct call *c, size_t at, size_t bytes, char *pieces,
                                    gshmem_status_t lost)
{
    const struct range all = {0, c->group->n - 1, 0};
    gshmem_status_t met, quiet;

    if (!lost && bytes)
        lost = get_pieces(c, &all, at, bytes, pieces);
    if ((met = internode_data_meet(c)) || lost || !bytes)
        return met ? met : lost;
    combine_pieces(c, &all, bytes, pieces);
    for (int step = 1; step <= c->group->n && !lost; step++)
        lost = gshmem_ctx_putmem_nbi(internode_context(c->group), c->dest.mine + at, pieces, bytes,
                                     c->group->pe[call_after(c->group, step)]);
    quiet = gshmem_ctx_quiet(internode_context(c->group)); /* the buffer is free again */
    return lost ? lost : quiet;
}

/* Each member combines its share of the data, and puts the result to all: every byte is sent to a
 * member and back once, however many members there are. */
static gshmem_status_t reduce_by_shares(struct call *c)
{
    size_t n = (size_t)c->group->n, most = PIECE_BYTES / c->element * c->element;
    size_t share = (c->bytes / c->element + n - 1) / n * c->element;
    gshmem_status_t status = internode_data_enter(c), lost = GSHMEM_OK;

    if (status)
        return status;
    if (share > most)
        share = most;
    char *pieces = malloc(n * share);
    if (!pieces)
        lost =
            fail(GSHMEM_ERR_MEMORY, "%s: out of memory for %zu pieces of %zu B", c->name, n, share);
    for (size_t at = 0; at < c->bytes && !c->group->broken; at += n * share) {
        size_t mine = at + (size_t)c->group->my * share;
        size_t left = mine < c->bytes ? c->bytes - mine : 0;
        lost = reduce_share(c, mine, left < share ? left : share, pieces, lost);
    }
    free(pieces);
    return c->group->broken ? lost : meet_and_tell(c, lost);
}

/* Little data is not split into shares. */
gshmem_status_t reduce_put(struct call *c)
{
    if (c->group->n > 2 && c->bytes >= SHARED_BYTES)
        return reduce_by_shares(c);
    return internode_combine(c, (struct range){0, c->group->n - 1, 0});
}

gshmem_status_t internode_reducescatter(struct call *c)
{
    return internode_combine(c,
                             (struct range){0, c->group->n - 1, (size_t)c->group->my * c->bytes});
}

gshmem_status_t internode_inscan(struct call *c)
{
    return internode_combine(c, (struct range){0, c->group->my, 0});
}

gshmem_status_t internode_exscan(struct call *c)
{
    return internode_combine(c, (struct range){0, c->group->my - 1, 0});
}
