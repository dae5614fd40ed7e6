/* The last accesses to each 8 bytes of symmetric memory, and whether a new one is ordered after
 * them. */
#define _GNU_SOURCE
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/memory/map.h"
#include "runtime/node/node.h"
#include "runtime/races/parts.h"

enum {
    GROUP_LOG2 = 6, /* cells that one lock covers */
    LARGE = 65536, /* bytes of an object whose cells are given back */
    LOCK_NS = 1000000000, /* between two looks whether the PE that holds a lock has died with it */
};

/* ---- Where the cells are ---- */

/* The cell of the first byte in all PEs' tables; false: such memory has none. */
static bool find_cell(const struct races *r, const void *at, size_t bytes, uint64_t *cell,
                      unsigned *first)
{
    const struct memory_map *map = job->map;
    uint64_t data = r->data_cell;
    struct location l;

    if (bytes == 0 || !r->cells || !map_find(map, at, bytes, &l) || l.reserved)
        return false;
    if (l.segment >= SEGMENT_DATA) {
        for (int i = SEGMENT_DATA; i < l.segment; i++)
            data += map->segment[i].bytes / 8 + 1;
        *cell = data + l.offset / 8;
    } else if (l.segment == SEGMENT_HEAP) {
        *cell = l.offset / 8;
    } else {
        return false;
    }
    *first = (unsigned)(l.offset % 8);
    return *cell + (*first + bytes + 7) / 8 <= r->cells_each;
}

static bool cells_holder_has_died(int pe)
{
    const int index = job->node->index_of[pe];

    return index >= 0 ? !node_alive(job->node, index) : node_lost(job->node, pe);
}

/* A PE that lives gives its lock back, however late: it may be stopped, or have no CPU. */
static void lock_group(struct races *r, int pe, uint64_t cell)
{
    _Atomic uint32_t *lock = &r->shared->pe[pe].lock[(cell >> GROUP_LOG2) % RACES_LOCKS];
    uint64_t looks = clock_ns() + LOCK_NS;
    uint32_t holder = 0; /* 0: nobody, or a dead PE's number + 1 */

    /* acquire: pairs with the release in unlock_group */
    while (!atomic_compare_exchange_weak_explicit(lock, &holder, (uint32_t)r->me + 1,
                                                  memory_order_acquire, memory_order_relaxed)) {
        if (holder && clock_ns() > looks) {
            looks = clock_ns() + LOCK_NS;
            if (cells_holder_has_died((int)holder - 1))
                continue; /* taken from this holder, if it is still the same */
        }
        holder = 0;
        clock_yield();
    }
}

static void unlock_group(struct races *r, int pe, uint64_t cell)
{
    atomic_store_explicit(&r->shared->pe[pe].lock[(cell >> GROUP_LOG2) % RACES_LOCKS], 0,
                          memory_order_release);
}

/* ---- Order ---- */

static bool writes(unsigned kind)
{
    return kind == RACES_WRITE || kind == RACES_PUT || kind == RACES_ATOMIC ||
           kind == RACES_DISTRIBUTED;
}

static bool conflict(const struct races_slot *a, const struct races_slot *b)
{
    if ((a->kind == RACES_ATOMIC || a->kind == RACES_FETCH) &&
        (b->kind == RACES_ATOMIC || b->kind == RACES_FETCH))
        return false;
    return writes(a->kind) || writes(b->kind);
}

/* Whether this PE itself may make the access after an earlier one of its own: where that does not
 * wait, only after a quiet; a flush is enough for the sources of puts. Puts to one place may follow
 * each other. */
static bool is_ordered_here(const struct races *r, const struct races_slot *s,
                            const struct races_slot *now)
{
    if (!(s->flags & RACES_NBI) || !(s->flags & RACES_OPEN) || s->epoch <= r->quiet)
        return true;
    if (s->kind == RACES_READ && s->epoch <= r->flushed)
        return true;
    return s->kind == RACES_PUT && (now->kind == RACES_PUT || now->kind == RACES_ATOMIC);
}

static bool is_ordered(const struct races *r, const struct races_slot *s,
                       const struct races_slot *now, int pe)
{
    if (s->pe == r->me)
        return is_ordered_here(r, s, now);
    if (s->flags & RACES_OPEN)
        return s->epoch <= r->clock[races_entry(r, s->pe, pe)];
    return s->epoch <= r->clock[s->pe];
}

/* ---- A cell ---- */

/* Who sees the bytes of `s` acquires from now on the snapshot of `now`. */
static void cells_take_over(struct races *r, struct races_slot *now, const struct races_slot *s)
{
    races_merge_into(r, now->snapshot, s->pe, s->snapshot);
    now->sees |= s->sees;
}

/* The slot for a new access. Those that it makes superfluous become free: ones of the same PE, and
 * for a write also those that it is ordered after. NULL: the access is not kept, since all slots
 * have writes whose order others may need. */
static struct races_slot *make_room(struct races *r, struct races_cell *cell,
                                    struct races_slot *now, int pe)
{
    struct races_slot *room = NULL;

    for (int i = 0; i < RACES_SLOTS; i++) {
        struct races_slot *s = &cell->slot[i];
        const bool covered = s->kind && !(s->mask & ~now->mask);
        const bool own = s->pe == r->me && s->kind == now->kind && s->flags == now->flags;
        const bool beyond = s->sees & ~now->mask;
        if (covered && own && now->snapshot && (now->kind == RACES_ATOMIC || beyond))
            cells_take_over(r, now, s);
        else if (covered && !own && s->kind == RACES_ATOMIC && now->kind == RACES_ATOMIC)
            continue; /* who sees the sum of both, sees both */
        else if (beyond)
            continue; /* not covered, or who sees what it has taken over needs it */
        if (covered && (own || (writes(now->kind) && is_ordered(r, s, now, pe) &&
                                !(s->pe == r->me && s->flags & RACES_NBI))))
            *s = (struct races_slot){.kind = RACES_NOTHING};
        if (!s->kind)
            room = s;
    }
    for (int i = 0; i < RACES_SLOTS && !room; i++) {
        if (!cell->slot[i].snapshot)
            room = &cell->slot[i];
    }
    if (!room && now->snapshot) {
        room = &cell->slot[now->snapshot % RACES_SLOTS];
        cells_take_over(r, now, room);
    }
    return room;
}

/* true: *before is one that conflicts. */
static bool enter_cell(struct races *r, struct races_cell *cell, struct races_slot *now, int pe,
                       struct races_slot *before)
{
    struct races_slot *room;
    bool races = false;

    for (int i = 0; i < RACES_SLOTS && !races; i++) {
        const struct races_slot *s = &cell->slot[i];
        if (s->kind && s->mask & now->mask && conflict(s, now) && !is_ordered(r, s, now, pe)) {
            *before = *s;
            races = true;
        }
    }
    if ((room = make_room(r, cell, now, pe)))
        *room = *now;
    return races;
}

/* ---- Ranges of cells ---- */

static uint8_t mask_of(unsigned first, size_t bytes)
{
    const unsigned last = first + bytes > 8 ? 8 : (unsigned)(first + bytes);

    return (uint8_t)((0xffu << first) & (0xffu >> (8 - last)));
}

/* What is done to each cell of a range, with its lock; `at`: of the first byte in the cell. */
typedef void each_cell_fn(struct races *r, struct races_cell *cell, int pe, uint8_t mask,
                          const char *at, void *context);

static void for_cells(struct races *r, const void *at, size_t bytes, int pe, each_cell_fn *each,
                      void *context)
{
    const char *byte = at;
    uint64_t cell;
    unsigned first;

    if (!find_cell(r, at, bytes, &cell, &first))
        return;
    lock_group(r, pe, cell);
    for (uint64_t held = cell; bytes; cell++) {
        const size_t here = bytes < 8 - first ? bytes : 8 - first;
        if (cell >> GROUP_LOG2 != held >> GROUP_LOG2) {
            unlock_group(r, pe, held);
            lock_group(r, pe, held = cell);
        }
        each(r, &r->cells[(uint64_t)pe * r->cells_each + cell], pe, mask_of(first, bytes), byte,
             context);
        bytes -= here;
        byte += here;
        first = 0;
        if (!bytes)
            unlock_group(r, pe, held);
    }
}

struct entering {
    struct races_slot now;
    struct races_pair *found;
    bool races;
};

static void enter_one(struct races *r, struct races_cell *cell, int pe, uint8_t mask,
                      const char *at, void *context)
{
    struct entering *e = context;
    struct races_slot before;

    e->now.mask = e->now.sees = mask;
    if (!enter_cell(r, cell, &e->now, pe, &before) || e->races)
        return;
    e->races = true;
    *e->found = (struct races_pair){.before = before, .now = e->now, .at = at, .pe = pe};
    e->found->met = before.pe != r->me && before.flags & RACES_OPEN && before.snapshot &&
                    races_time_of(r, before.pe, before.snapshot) <= r->clock[before.pe];
}

bool races_enter_access(struct races *r, const void *at, size_t bytes, int pe,
                        struct races_slot now, struct races_pair *found)
{
    struct entering e = {.now = now, .found = found};

    for_cells(r, at, bytes, pe, enter_one, &e);
    if (e.races)
        found->bytes = bytes;
    return e.races;
}

/* What this PE has seen is complete, so that it is no longer open for those that know of it. */
static void see_one(struct races *r, struct races_cell *cell, int pe, uint8_t mask, const char *at,
                    void *context)
{
    (void)pe;
    (void)at;
    (void)context;
    for (int i = 0; i < RACES_SLOTS; i++) {
        struct races_slot *s = &cell->slot[i];
        if (!s->kind || !s->snapshot || !(s->sees & mask))
            continue;
        /* this PE's own may have others that had to make room for it */
        races_merge(r, r->clock, s->pe, s->snapshot);
        if (s->mask & mask && s->flags & RACES_OPEN && s->pe != r->me) {
            s->epoch = races_time_of(r, s->pe, s->snapshot);
            s->flags = 0;
        }
    }
}

void races_see_cells(struct races *r, const void *at, size_t bytes, int pe)
{
    for_cells(r, at, bytes, pe, see_one, NULL);
}

static void clear_one(struct races *r, struct races_cell *cell, int pe, uint8_t mask,
                      const char *at, void *context)
{
    (void)r;
    (void)pe;
    (void)at;
    (void)context;
    for (int i = 0; i < RACES_SLOTS; i++) {
        cell->slot[i].mask &= (uint8_t)~mask;
        cell->slot[i].sees &= (uint8_t)~mask;
        if (!cell->slot[i].mask)
            cell->slot[i] = (struct races_slot){.kind = RACES_NOTHING};
    }
}

/* The cells of a large object are given back to the system, which makes them empty. Its first and
 * last ones may share a page with other objects' cells. */
void races_clear_cells(struct races *r, const void *at, size_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uintptr_t begin, end;
    uint64_t cell;
    unsigned first;

    if (bytes >= LARGE && find_cell(r, at, bytes, &cell, &first)) {
        const struct races_cell *own = &r->cells[(uint64_t)r->me * r->cells_each + cell];
        begin = ((uintptr_t)(own + 1) + page - 1) / page * page;
        end = (uintptr_t)(own + bytes / 8) / page * page;
        if (end > begin && madvise((void *)begin, end - begin, MADV_REMOVE) == 0) {
            const size_t before = (begin - (uintptr_t)own) / sizeof *own * 8;
            const size_t behind = (end - (uintptr_t)own) / sizeof *own * 8 - first;
            for_cells(r, at, before, r->me, clear_one, NULL);
            for_cells(r, (const char *)at + behind, bytes - behind, r->me, clear_one, NULL);
            return;
        }
    }
    for_cells(r, at, bytes, r->me, clear_one, NULL);
}
