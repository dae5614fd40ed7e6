/* Slots of members on other nodes, for rounds whose payload did not come along with the leaders'
 * words: the team has no inbox, or the payload was too large for it. Once all have arrived, each
 * member gets what it needs. What is kept for that is as large as the slots are: a small collective
 * needs a cache line for each member on another node. */
#include <stdlib.h>

#include "gshmem.h"
#include "runtime/base/log.h"
#include "runtime/job/job.h"
#include "runtime/memory/map.h"
#include "runtime/network/network.h"
#include "runtime/teams/group.h"
#include "runtime/teams/internode_parts.h"

/* The members on other nodes are numbered by node, then by number, as in inboxes. */
static size_t fetched_place(const struct internode *f, int i)
{
    const int begin = f->first[f->my_host], end = f->first[f->my_host + 1];

    return (size_t)(f->place[i] < begin ? f->place[i] : f->place[i] - (end - begin));
}

struct note *internode_fetched(const struct group *g, int i)
{
    const struct internode *f = g->internode;
    const size_t place = f->fetched.one ? 0 : fetched_place(f, i);

    return (struct note *)(void *)(f->fetched.slots + place * f->fetched.each);
}

void internode_forget_fetched(struct internode *f)
{
    if (f->fetched.room <= (size_t)f->n_away * SYNC_LINE)
        return;
    free(f->fetched.slots);
    f->fetched.slots = NULL;
    f->fetched.room = 0;
}

static gshmem_status_t fetched_make_room(struct internode *f, size_t slots, const char *call)
{
    const size_t bytes = slots * f->fetched.each;

    if (f->fetched.room >= bytes)
        return GSHMEM_OK;
    free(f->fetched.slots);
    f->fetched.slots = aligned_alloc(_Alignof(struct note), bytes);
    f->fetched.room = f->fetched.slots ? bytes : 0;
    return f->fetched.slots
               ? GSHMEM_OK
               : fail(GSHMEM_ERR_MEMORY, "%s: out of memory for %zu B of other nodes", call, bytes);
}

gshmem_status_t internode_fetch(struct group *g, bool one, int from, size_t bytes, const char *call)
{
    const size_t at = offsetof(struct team_sync, note) + (g->full & 1) * sizeof(struct note);
    struct internode *f = g->internode;

    if (one && !f->away[from])
        return GSHMEM_OK;
    f->fetched.one = one;
    f->fetched.each = internode_whole_lines(internode_note_bytes(bytes));
    gshmem_status_t status = fetched_make_room(f, one ? 1 : (size_t)f->n_away, call), waited;
    for (int i = 0; i < g->n && !status; i++) {
        if (!f->away[i] || (one && i != from))
            continue;
        struct transport_request get = {
            .kind = TRANSPORT_GET,
            .flags = TRANSPORT_MORE,
            .pe = g->pe[i],
            .segment = SEGMENT_SYSTEM,
            .offset = g->block + at,
            .local = internode_fetched(g, i),
            .bytes = internode_note_bytes(bytes),
        };
        status = network_post(job->network, &f->pending, &get, call);
    }
    waited = network_quiet(&f->pending, call);
    return status ? status : waited;
}
