/* One collective call: its arguments after they are checked, and how the algorithms access them. */
#ifndef GSHMEM_RUNTIME_CALL_H
#define GSHMEM_RUNTIME_CALL_H

#include "gshmem/rma.h"
#include "runtime/collectives/combine.h"
#include "runtime/teams/group.h"

/* A symmetric object: where each member's copy is mapped here. */
struct place {
    char *mine;
    const uintptr_t *peer; /* [member]: where the segment begins */
    uintptr_t offset;      /* in that segment */
    uint64_t name;         /* the same on all PEs of the job: the offset, and PLACE_IN_… */
    size_t room;           /* bytes from there to the end of the symmetric segment */
};

/* Added to a place's offset in its part of symmetric memory, since parts can begin at different
 * offsets on different nodes. */
#define PLACE_IN_DATA (UINT64_C(1) << 62)
#define PLACE_IN_NICS (UINT64_C(2) << 62)
#define PLACE_NOWHERE (UINT64_C(3) << 62) /* of 0 bytes: at any address, also NULL */

struct call {
    const char *name; /* the name of the public function */
    enum collective what;
    struct group *group;
    gshmem_team_t team;
    uint32_t signature;
    struct place dest, source;
    size_t to, from; /* bytes of this PE's dest and source */
    size_t bytes; /* what one member has for one other, or for all */
    int root;
    bool spare_root; /* broadcast: the root's dest keeps its contents */
    bool bounded;    /* collect: dest.room ends with the caller's array, not with the segment */
    /* reductions and scans: bytes is n elements */
    combine_fn *combine;
    size_t n, element;
    /* alltoalls */
    ptrdiff_t dst, sst;
};

typedef gshmem_status_t algorithm_fn(struct call *c);

static inline char *place_at(const struct group *g, const struct place *p, int i)
{
    return i == g->my ? p->mine : (char *)(p->peer[i] + p->offset);
}

/* One round within the call. */
static inline gshmem_status_t call_meet(struct call *c)
{
    return group_meet(c->group, c->signature, c->name);
}

/* From now on the members compare their objects, too, which must be the same on all. */
static inline void call_name_objects(struct call *c)
{
    uint64_t hash = signature_mix(c->signature, c->dest.name);

    c->signature = signature_make(c->what, signature_mix(hash, c->source.name));
}

/* The first round of an algorithm that accesses those objects. */
static inline gshmem_status_t call_enter(struct call *c)
{
    call_name_objects(c);
    return call_meet(c);
}

/* Member i's data of the last round, where all of it fits into slots. A member does not read its
 * own slot but its source, unless dest has overwritten that. A load from a line that is on its way
 * from another CPU, because that CPU has read its old contents, delays the loads behind it. */
static inline const char *call_brought_by(const struct call *c, int i)
{
    if (i == c->group->my && c->source.mine != c->dest.mine)
        return c->source.mine;
    return group_read(c->group, i)->data;
}

/* The members in an order that begins after this one, so that members begin at different ones. */
static inline int call_after(const struct group *g, int step)
{
    int i = g->my + step;

    return i < g->n ? i : i - g->n;
}

#endif
