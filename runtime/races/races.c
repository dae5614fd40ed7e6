#include "runtime/races/races.h"

#include <stdlib.h>

#include "gshmem.h"
#include "gshmem/races.h"
#include "runtime/job/thread.h"
#include "runtime/memory/map.h"
#include "runtime/races/parts.h"

/* ---- Accesses ---- */

/* With the lock. true: *found conflicts, and is the first of the call that does. */
static bool enter(struct races *r, uint16_t site, enum races_kind kind, unsigned flags,
                  uint32_t snapshot, const void *at, size_t bytes, int pe,
                  struct races_pair *found)
{
    const struct races_slot now = {
        .epoch = flags & RACES_OPEN ? r->epoch : r->clock[r->me] - (snapshot != 0),
        .snapshot = snapshot,
        .site = site,
        .pe = (uint8_t)r->me,
        .kind = (uint8_t)kind,
        .flags = (uint8_t)flags,
    };

    return races_enter_access(r, at, bytes, pe, now, found);
}

/* Both sides of an operation; a NULL side is none. */
struct sides {
    enum races_kind kind; /* there */
    unsigned flags;
    const void *there;
    enum races_kind local_kind;
    unsigned local_flags;
    const void *local;
    size_t bytes;
    int pe;
};

static void enter_sides(const struct races_call *call, const struct sides *s)
{
    struct races *r = job->races;
    struct races_pair found[2];
    bool races[2] = {false, false};

    if (atomic_load_explicit(&r->shared->off, memory_order_relaxed) || this_thread.unfollowed)
        return;
    pthread_mutex_lock(&r->lock);
    const uint16_t site = races_site_of(r, call);
    const bool releases = s->kind == RACES_PUT || s->kind == RACES_ATOMIC;
    if (s->local)
        races[0] = enter(r, site, s->local_kind, s->local_flags, 0, s->local, s->bytes, r->me,
                         &found[0]);
    if (s->there)
        races[1] = enter(r, site, s->kind, s->flags, releases ? races_snapshot(r, s->pe) : 0,
                         s->there, s->bytes, s->pe, &found[1]);
    pthread_mutex_unlock(&r->lock);
    for (int i = 0; i < 2; i++) {
        if (races[i])
            races_report(r, &found[i]);
    }
}

void races_access(const struct races_call *call, enum races_kind kind, unsigned flags,
                  const void *at, size_t bytes, int pe)
{
    enter_sides(call, &(struct sides){.kind = kind, .flags = flags, .there = at, .bytes = bytes,
                                      .pe = pe});
}

void races_put(const char *name, const void *dest, const void *source, size_t bytes, int pe,
               bool nbi)
{
    enter_sides(&(struct races_call){name, NULL},
                &(struct sides){.kind = RACES_PUT,
                                .flags = RACES_OPEN | (nbi ? RACES_NBI : 0),
                                .there = dest,
                                .local_kind = RACES_READ,
                                .local_flags = nbi ? RACES_OPEN | RACES_NBI : 0,
                                .local = source,
                                .bytes = bytes,
                                .pe = pe});
}

/* The signal's snapshot is taken after this one, and so covers it. */
void races_put_signalled(const char *name, const void *dest, const void *source, size_t bytes,
                         int pe, bool nbi)
{
    enter_sides(&(struct races_call){name, NULL},
                &(struct sides){.kind = RACES_PUT,
                                .there = dest,
                                .local_kind = RACES_READ,
                                .local_flags = nbi ? RACES_OPEN | RACES_NBI : 0,
                                .local = source,
                                .bytes = bytes,
                                .pe = pe});
}

void races_get(const char *name, void *dest, const void *source, size_t bytes, int pe, bool nbi)
{
    enter_sides(&(struct races_call){name, NULL},
                &(struct sides){.kind = RACES_GET,
                                .flags = nbi ? RACES_OPEN : 0,
                                .there = source,
                                .local_kind = RACES_WRITE,
                                .local_flags = nbi ? RACES_OPEN | RACES_NBI : 0,
                                .local = dest,
                                .bytes = bytes,
                                .pe = pe});
}

void races_atomic(const char *name, enum gshmem_amo op, const void *target, size_t bytes, int pe,
                  bool fetches)
{
    enter_sides(&(struct races_call){name, NULL},
                &(struct sides){.kind = op == GSHMEM_AMO_FETCH ? RACES_FETCH : RACES_ATOMIC,
                                .flags = fetches ? 0 : RACES_OPEN,
                                .there = target,
                                .bytes = bytes,
                                .pe = pe});
}

void races_see(const void *at, size_t bytes, int pe)
{
    struct races *r = job->races;

    if (this_thread.unfollowed)
        return;
    pthread_mutex_lock(&r->lock);
    races_see_cells(r, at, bytes, pe);
    pthread_mutex_unlock(&r->lock);
}

/* ---- Order ---- */

void races_fence(void)
{
    struct races *r = job->races;

    if (this_thread.unfollowed)
        return;
    pthread_mutex_lock(&r->lock);
    r->fenced = r->epoch++;
    pthread_mutex_unlock(&r->lock);
}

void races_flush(void)
{
    struct races *r = job->races;

    if (this_thread.unfollowed)
        return;
    pthread_mutex_lock(&r->lock);
    r->flushed = r->epoch++;
    pthread_mutex_unlock(&r->lock);
}

void races_quiet(void)
{
    struct races *r = job->races;

    if (this_thread.unfollowed)
        return;
    pthread_mutex_lock(&r->lock);
    r->fenced = r->quiet = r->epoch++;
    for (int pe = 0; pe < r->n; pe++)
        __atomic_store_n(&r->clock[races_entry(r, r->me, pe)], r->quiet, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&r->lock);
}

void races_arrive_kernel(gshmem_team_t team)
{
    struct races *r = job->races;

    pthread_mutex_lock(&r->lock);
    const uint32_t number = ++r->round[team];
    struct races_round *round = &r->own->round[team][number % RACES_ROUNDS];
    atomic_store_explicit(&round->snapshot, races_snapshot(r, -1), memory_order_relaxed);
    /* release: pairs with the acquire in races_leave */
    atomic_store_explicit(&round->number, number, memory_order_release);
    pthread_mutex_unlock(&r->lock);
}

/* A member that is some rounds ahead has another round there: then all that it has done counts. */
static void leave_member(struct races *r, gshmem_team_t team, int pe, uint32_t number)
{
    struct races_round *round = &r->shared->pe[pe].round[team][number % RACES_ROUNDS];
    const uint32_t there = atomic_load_explicit(&round->number, memory_order_acquire);

    if (pe != r->me)
        races_merge(r, r->clock, pe,
                    there == number
                        ? atomic_load_explicit(&round->snapshot, memory_order_relaxed)
                        : 0);
}

void races_leave_kernel(gshmem_team_t team, const int *members, int n)
{
    struct races *r = job->races;

    pthread_mutex_lock(&r->lock);
    for (int i = 0; i < n; i++)
        leave_member(r, team, members[i], r->round[team]);
    pthread_mutex_unlock(&r->lock);
}

void races_arrive(gshmem_team_t team)
{
    races_arrive_kernel(team);
    this_thread.unfollowed++;
}

void races_leave(gshmem_team_t team, const int *members, int n, gshmem_status_t status)
{
    this_thread.unfollowed--;
    if (!status)
        races_leave_kernel(team, members, n);
}

void races_collective(const char *name, const void *dest, size_t to, const void *source,
                      size_t from)
{
    const struct races_call call = {name, NULL};
    const int me = job->races->me;

    if (source && from)
        races_access(&call, RACES_COLLECTED, 0, source, from, me);
    if (dest && to)
        races_access(&call, RACES_DISTRIBUTED, 0, dest, to, me);
}

void races_new_team(gshmem_team_t team)
{
    struct races *r = job->races;

    pthread_mutex_lock(&r->lock);
    r->round[team] = 0;
    pthread_mutex_unlock(&r->lock);
}

/* ---- Objects ---- */

void races_forget(const void *at, size_t bytes)
{
    struct races *r = job->races;

    pthread_mutex_lock(&r->lock);
    races_clear_cells(r, at, bytes);
    for (size_t i = 0; i < r->objects; i++) {
        if (r->object[i].at == (uintptr_t)at)
            r->object[i] = r->object[--r->objects];
    }
    pthread_mutex_unlock(&r->lock);
}

/* Without memory for it, reports have the address alone. */
void races_enter(const void *at, size_t bytes)
{
    struct races *r = job->races;

    pthread_mutex_lock(&r->lock);
    if (r->objects == r->objects_room) {
        const size_t room = r->objects_room ? 2 * r->objects_room : 64;
        struct races_object *more = realloc(r->object, room * sizeof *more);
        if (more) {
            r->object = more;
            r->objects_room = room;
        }
    }
    if (r->objects < r->objects_room)
        r->object[r->objects++] = (struct races_object){(uintptr_t)at, bytes};
    pthread_mutex_unlock(&r->lock);
}

/* ---- Loads and stores of the program: hooks.c ---- */

static bool is_followed(const void *at)
{
    const struct memory_map *map;

    if (!job || !job->races)
        return false;
    map = job->map;
    for (int i = SEGMENT_HEAP; i < map->segments; i++) {
        if ((uintptr_t)at - map->segment[i].base < map->segment[i].bytes)
            return true;
    }
    return false;
}

void gshmem_path_loaded(const void *at, size_t bytes, const void *from)
{
    if (is_followed(at))
        races_access(&(struct races_call){"load", from}, RACES_READ, 0, at, bytes,
                     job->races->me);
}

void gshmem_path_stored(const void *at, size_t bytes, const void *from)
{
    if (is_followed(at))
        races_access(&(struct races_call){"store", from}, RACES_WRITE, 0, at, bytes,
                     job->races->me);
}

void gshmem_path_synchronized(const void *at, size_t bytes)
{
    if (is_followed(at))
        races_see(at, bytes, job->races->me);
}

void gshmem_path_updated(const void *at, size_t bytes, const void *from)
{
    if (is_followed(at))
        races_access(&(struct races_call){"atomic", from}, RACES_ATOMIC, 0, at, bytes,
                     job->races->me);
}
