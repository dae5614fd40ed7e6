/* Where all members' copies of a collective's objects are. */
#ifndef GSHMEM_RUNTIME_COLLECTIVES_PLACES_H
#define GSHMEM_RUNTIME_COLLECTIVES_PLACES_H

#include "runtime/collectives/call.h"
#include "runtime/teams/team.h"

/* Of an object that is not in the heap. */
gshmem_status_t places_find_other(const struct call *c, const struct team *t, struct place *p,
                                  const char *which, size_t bytes);
gshmem_status_t places_refuse_overlap(const struct call *c, const struct team *t, const void *dest,
                                      size_t to, const void *source, size_t from, bool in_place);

/* Finds where all members' copies of the object at address are. Any address will do for 0 bytes. */
static inline gshmem_status_t places_find_one(const struct call *c, const struct team *t,
                                                    struct place *p, const char *which,
                                                    const void *address, size_t bytes)
{
    const struct gshmem_ctx *view = &t->view;
    size_t offset = (uintptr_t)address - view->heap.base;

    *p = (struct place){(char *)(uintptr_t)address, view->heap.peer, offset, offset,
                        view->heap.bytes - offset};
    if (GSHMEM_LIKELY(offset < view->heap.bytes && bytes <= view->heap.bytes - offset))
        return GSHMEM_OK;
    if (bytes == 0) {
        p->offset = p->room = 0;
        p->name = PLACE_NOWHERE;
        return GSHMEM_OK;
    }
    return places_find_other(c, t, p, which, bytes);
}

/* Both objects, dest of `to` and source of `from` bytes. */
static inline gshmem_status_t places_find_both(struct call *c, const struct team *t, void *dest,
                                               size_t to, const void *source, size_t from)
{
    gshmem_status_t status = places_find_one(c, t, &c->dest, "dest", dest, to);

    c->to = to;
    c->from = from;
    return status ? status : places_find_one(c, t, &c->source, "source", source, from);
}

static inline bool places_overlap(const void *dest, size_t to, const void *source, size_t from)
{
    uintptr_t d = (uintptr_t)dest, s = (uintptr_t)source;

    return d + to > s && s + from > d && to && from;
}

/* The objects may not overlap, except that they may be the same where in_place. */
static inline gshmem_status_t places_find(struct call *c, const struct team *t,
                                                     void *dest, size_t to, const void *source,
                                                     size_t from, bool in_place)
{
    gshmem_status_t status = places_find_both(c, t, dest, to, source, from);

    if (GSHMEM_LIKELY(status || !places_overlap(dest, to, source, from) ||
                      (in_place && dest == source)))
        return status;
    return places_refuse_overlap(c, t, dest, to, source, from, in_place);
}

#endif
