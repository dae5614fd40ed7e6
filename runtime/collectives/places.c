#include "runtime/collectives/places.h"

#include "gshmem.h"
#include "runtime/base/log.h"
#include "runtime/job/job.h"
#include "runtime/memory/checked.h"
#include "runtime/memory/data.h"
#include "runtime/memory/map.h"
#include "runtime/teams/context.h"

static __attribute__((cold)) gshmem_status_t refuse_place(const struct call *c,
                                                          const struct team *t, const char *which,
                                                          const struct location *l,
                                                          const void *address, size_t bytes)
{
    const struct segment *s = &job->map->segment[l->segment];
    const bool ours = l->segment != SEGMENT_NONE && !l->reserved;

    if (ours && atomicity_is_device(l->atomicity))
        return context_refuse_device(address, c->name);
    if (ours && s->variables && !t->data_mapped)
        return fail(GSHMEM_ERR_NOT_SYMMETRIC,
                    "%s on team %d: %s (%p) is a variable of the program, and not all members run "
                    "the same program",
                    c->name, t->id, which, address);
    if (ours)
        return fail(GSHMEM_ERR_NOT_SYMMETRIC,
                    "%s on team %d: %s (%p, %zu B) runs past the end of symmetric memory", c->name,
                    t->id, which, address, bytes);
    return fail(GSHMEM_ERR_NOT_SYMMETRIC,
                "%s on team %d: %s (%p, %zu B) is not symmetric: it is neither from gshmem_malloc "
                "nor a global or static variable of the program",
                c->name, t->id, which, address, bytes);
}

/* The tables of the team's view say where members' copies are, for objects in the heap or in the
 * executable's variables. The NIC heap is behind the heap, and variables of libraries are behind
 * the executable's. With GSHMEM_CHECK=memory the heap's objects come here, too. */
gshmem_status_t places_find_other(const struct call *c, const struct team *t, struct place *p,
                                        const char *which, size_t bytes)
{
    struct location l;
    const bool found = map_find(job->map, p->mine, bytes, &l);
    const struct segment *s = &job->map->segment[l.segment];

    if (!found || l.reserved || atomicity_is_device(l.atomicity) ||
        (s->variables && !t->data_mapped))
        return refuse_place(c, t, which, &l, p->mine, bytes);
    gshmem_status_t status = context_check(&l, p->mine, bytes, c->name, true);
    if (status)
        return status;
    p->room = s->bytes - l.offset;
    if (job->checked)
        p->room = checked_room(job->checked, p->mine, p->room);
    if (s->variables) {
        const struct data_segment *of = &job->data->segment[l.segment - SEGMENT_DATA];
        p->peer = t->view.data.peer;
        p->offset = of->offset - job->data->segment[0].offset + l.offset;
        p->name = PLACE_IN_DATA + p->offset;
    } else if (l.segment == SEGMENT_HEAP) { /* objects are checked */
        p->offset = p->name = l.offset;
    } else {
        p->offset = job->map->segment[SEGMENT_HEAP].bytes + l.offset;
        p->name = PLACE_IN_NICS + l.offset;
    }
    return GSHMEM_OK;
}

gshmem_status_t places_refuse_overlap(const struct call *c, const struct team *t,
                                                 const void *dest, size_t to, const void *source,
                                                 size_t from, bool in_place)
{
    return fail(GSHMEM_ERR_ARGUMENT,
                "%s on team %d: dest (%p, %zu B) and source (%p, %zu B) overlap%s", c->name, t->id,
                dest, to, source, from, in_place ? " and are not the same" : "");
}
