/* Large collectives that move data: members read and write each other's objects in place.
 *
 * A round at the beginning ensures that all dests may be written and all sources are ready; a round
 * at the end, that all has been copied. Each member begins with the one after itself, so that pairs
 * are served at different times. */
#include <string.h>

#include "runtime/base/log.h"
#include "runtime/collectives/table.h"
#include "runtime/memory/copy.h"

/* Copies are split between members at cache lines, so that no two write to the same one. */
static size_t share_of(size_t bytes, int n)
{
    return (bytes / (size_t)n + SYNC_LINE - 1) & ~(size_t)(SYNC_LINE - 1);
}

/* Each member copies from the root. Where the root has nothing to copy itself (dest is source, or
 * keeps its contents), it takes a share of the others' work: the first of n shares of each. */
gshmem_status_t broadcast_shared(struct call *c)
{
    struct group *g = c->group;
    bool in_place = c->dest.mine == c->source.mine;
    bool is_free = in_place || c->spare_root;
    size_t pushed = is_free ? share_of(c->bytes, g->n) : 0;
    gshmem_status_t status = call_enter(c);

    if (status)
        return status;
    if (pushed > c->bytes)
        pushed = c->bytes;
    if (g->my != c->root) {
        gshmem_copy(c->dest.mine + pushed, place_at(g, &c->source, c->root) + pushed,
                    c->bytes - pushed);
    } else if (is_free) {
        for (int step = 1; step < g->n; step++)
            gshmem_copy(place_at(g, &c->dest, call_after(g, step)), c->source.mine, pushed);
    } else {
        gshmem_copy(c->dest.mine, c->source.mine, c->bytes);
    }
    return call_meet(c);
}

static void shared_copy_run(char *to, const char *from, size_t bytes, bool past_caches)
{
    if (past_caches)
        copy_past_caches(to, from, bytes);
    else
        gshmem_copy(to, from, bytes);
}

/* Puts this member's bytes at the same place in every member's dest, which are `all` bytes
 * together. In chunks, so that each is read from memory for the first member alone
 * (docs/decisions/0006). */
static void shared_copy_give_to_all(const struct call *c, size_t at, size_t all)
{
    enum { PIECE = 128 * 1024, PIECE_PAST = 512 * 1024 };
    const struct group *g = c->group;
    bool past = all > copy_cache_bytes();
    size_t piece = past ? PIECE_PAST : PIECE;

    for (size_t done = 0, n; done < c->bytes; done += n) {
        n = c->bytes - done < piece ? c->bytes - done : piece;
        for (int step = 1; step <= g->n; step++) {
            char *to = place_at(g, &c->dest, call_after(g, step)) + at;
            if (to != c->source.mine)
                shared_copy_run(to + done, c->source.mine + done, n, past);
        }
    }
}

gshmem_status_t collect_shared(struct call *c)
{
    gshmem_status_t status = call_enter(c);

    if (status)
        return status;
    size_t n = (size_t)c->group->n;
    shared_copy_give_to_all(c, (size_t)c->group->my * c->bytes, n * n * c->bytes);
    return call_meet(c);
}

static size_t size_brought_by(const struct call *c, int i)
{
    return i == c->group->my ? c->bytes : group_read(c->group, i)->value;
}

/* What a member of a collect reports of its objects, behind the data in its slot: from this all
 * come to the same decision whether the call can be made. */
struct objects {
    uint64_t room; /* from dest on; nodes can have heaps of different sizes */
    int64_t ahead; /* how far behind dest source begins */
};
static_assert(NOTE_BYTES % _Alignof(struct objects) == 0 &&
                  NOTE_BYTES + sizeof(struct objects) <= NOTE_ROOM,
              "they fit behind the data");

static size_t objects_at(size_t bytes)
{
    const size_t align = _Alignof(struct objects), data = bytes <= NOTE_BYTES ? bytes : 0;

    return (data + align - 1) / align * align;
}

static void say_objects(const struct call *c, struct note *note)
{
    const struct objects o = {c->dest.room,
                              (int64_t)((uintptr_t)c->source.mine - (uintptr_t)c->dest.mine)};

    memcpy(note->data + objects_at(c->bytes), &o, sizeof o);
}

static struct objects objects_of(const struct call *c, int i)
{
    const struct note *note = group_read(c->group, i);
    struct objects o;

    memcpy(&o, note->data + objects_at(size_brought_by(c, i)), sizeof o);
    return o;
}

static size_t least_room(const struct call *c)
{
    size_t least = c->dest.room;

    for (int i = 0; i < c->group->n; i++) {
        const struct objects o = objects_of(c, i);
        least = o.room < least ? o.room : least;
    }
    return least;
}

/* Each member's source may be where it is copied to, and nowhere else in the `all` bytes of
 * dest. */
static gshmem_status_t check_apart(const struct call *c, size_t all)
{
    struct group *g = c->group;
    int other = -1;
    size_t at = 0;

    for (int i = 0; i < g->n; i++) {
        const size_t bytes = size_brought_by(c, i);
        const int64_t ahead = objects_of(c, i).ahead;
        bool apart =
            !bytes || ahead + (int64_t)bytes <= 0 || ahead >= (int64_t)all || ahead == (int64_t)at;
        if (!apart && i == g->my)
            return fail(
                GSHMEM_ERR_ARGUMENT,
                "%s on team %d: dest (%p, %zu B of all members) and source (%p, %zu B) overlap",
                c->name, g->team, (void *)c->dest.mine, all, (void *)c->source.mine, bytes);
        other = apart ? other : i;
        at += bytes;
    }
    if (other < 0)
        return GSHMEM_OK;
    return fail(
        GSHMEM_ERR_MISMATCH,
        "%s on team %d: dest and source of PE %d overlap, so this collective did not take place",
        c->name, g->team, g->pe[other]);
}

/* Sizes are exchanged in the first round, and with them all blocks that fit into slots. Larger
 * blocks are then put to all members by their own members. */
gshmem_status_t collect_sized(struct call *c)
{
    struct group *g = c->group;
    size_t at = 0, my_place = 0;
    size_t largest = 0;
    gshmem_status_t status;

    /* the size for the members with the most data */
    g->brought = NOTE_BYTES + sizeof(struct objects);
    struct note *note = group_note(g);
    note->value = c->bytes;
    say_objects(c, note);
    if (c->bytes && c->bytes <= NOTE_BYTES)
        gshmem_copy(note->data, c->source.mine, c->bytes);
    c->signature = signature_make(c->what, signature_mix(0, c->dest.name));
    if ((status = call_meet(c)))
        return status;

    const size_t room = g->internode ? least_room(c) : c->dest.room;
    for (int i = 0; i < g->n; i++) {
        size_t bytes = size_brought_by(c, i);
        if (bytes > room - at)
            return fail(GSHMEM_ERR_NOT_SYMMETRIC,
                        "%s: with the %zu B of PE %d, dest runs past the end of symmetric memory, "
                        "%zu B from its start",
                        c->name, bytes, g->pe[i], room);
        if (i == g->my)
            my_place = at;
        at += bytes;
        largest = bytes > largest ? bytes : largest;
    }
    if ((status = check_apart(c, at)))
        return status;
    at = 0;
    for (int i = 0; i < g->n; i++) {
        size_t bytes = size_brought_by(c, i);
        if (bytes && bytes <= NOTE_BYTES)
            gshmem_copy(c->dest.mine + at, call_brought_by(c, i), bytes);
        at += bytes;
    }
    if (largest <= NOTE_BYTES)
        return GSHMEM_OK;
    if (g->internode)
        return internode_collect(c, my_place, largest);
    if (c->bytes > NOTE_BYTES)
        shared_copy_give_to_all(c, my_place, (size_t)g->n * at);
    return call_meet(c);
}

/* alltoall: copies one member's block for another. */
static void give_block(const struct call *c, int from, int to, bool past)
{
    const struct group *g = c->group;

    shared_copy_run(place_at(g, &c->dest, to) + (size_t)from * c->bytes,
                    place_at(g, &c->source, from) + (size_t)to * c->bytes, c->bytes, past);
}

gshmem_status_t alltoall_shared(struct call *c)
{
    struct group *g = c->group;
    gshmem_status_t status = call_enter(c);

    if (status)
        return status;
    size_t n = (size_t)g->n;
    bool past = n * n * c->bytes > copy_cache_bytes();
    for (int step = 1; step <= g->n; step++)
        give_block(c, g->my, call_after(g, step), past);
    return call_meet(c);
}

/* Copies n elements; strides in bytes. */
static void copy_strided(char *to, size_t to_stride, const char *from, size_t from_stride,
                         size_t element, size_t n)
{
    if (element == 8) {
        for (size_t i = 0; i < n; i++, to += to_stride, from += from_stride)
            memcpy(to, from, 8);
    } else if (element == 4) {
        for (size_t i = 0; i < n; i++, to += to_stride, from += from_stride)
            memcpy(to, from, 4);
    } else {
        for (size_t i = 0; i < n; i++, to += to_stride, from += from_stride)
            memcpy(to, from, element);
    }
}

gshmem_status_t alltoalls_shared(struct call *c)
{
    struct group *g = c->group;
    size_t to_stride = (size_t)c->dst * c->element, from_stride = (size_t)c->sst * c->element;
    gshmem_status_t status = call_enter(c);

    if (status)
        return status;
    for (int step = 1; step <= g->n; step++) {
        int i = call_after(g, step);
        copy_strided(place_at(g, &c->dest, i) + (size_t)g->my * c->n * to_stride, to_stride,
                     c->source.mine + (size_t)i * c->n * from_stride, from_stride, c->element,
                     c->n);
    }
    return call_meet(c);
}
