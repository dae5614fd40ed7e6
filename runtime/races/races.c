#include "runtime/races/races.h"

#include <errno.h>
#include <stdlib.h>

#include "gshmem.h"
#include "gshmem/races.h"
#include "runtime/base/clock.h"
#include "runtime/job/thread.h"
#include "runtime/memory/map.h"
#include "runtime/races/parts.h"

/* ---- The lock ---- */

/* Code of the program may run in this thread meanwhile, a signal handler or a malloc of its own:
 * its loads and stores are not followed, as they would wait for this thread. */
static void races_lock(struct races *r)
{
    this_thread.unfollowed++;
    pthread_mutex_lock(&r->lock);
}

static void races_unlock(struct races *r)
{
    pthread_mutex_unlock(&r->lock);
    this_thread.unfollowed--;
}

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
    races_lock(r);
    const uint16_t site = races_site_of(r, call);
    const bool releases = s->kind == RACES_PUT || s->kind == RACES_ATOMIC;
    if (s->local)
        races[0] = enter(r, site, s->local_kind, s->local_flags, 0, s->local, s->bytes, r->me,
                         &found[0]);
    if (s->there)
        races[1] = enter(r, site, s->kind, s->flags, releases ? races_snapshot(r, s->pe) : 0,
                         s->there, s->bytes, s->pe, &found[1]);
    races_unlock(r);
    this_thread.unfollowed++;
    for (int i = 0; i < 2; i++) {
        if (races[i])
            races_report(r, &found[i]);
    }
    this_thread.unfollowed--;
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
    races_lock(r);
    races_see_cells(r, at, bytes, pe);
    races_unlock(r);
}

void races_see_later(const void *at, size_t bytes, int pe)
{
    struct races *r = job->races;
    unsigned i = 0;

    if (this_thread.unfollowed)
        return;
    races_lock(r);
    while (i < r->laters && i < RACES_LATER && (r->later[i].at != at || r->later[i].pe != pe))
        i++;
    if (i == RACES_LATER)
        r->laters = RACES_LATER + 1;
    else if (i == r->laters)
        r->later[r->laters++] = (struct races_later){at, bytes, pe};
    races_unlock(r);
}

/* With the lock. Where some had no room, all that any PE has left counts as seen. */
static void see_later(struct races *r)
{
    for (unsigned i = 0; i < r->laters && i < RACES_LATER; i++)
        races_see_cells(r, r->later[i].at, r->later[i].bytes, r->later[i].pe);
    for (int pe = 0; pe < r->n && r->laters > RACES_LATER; pe++) {
        if (pe != r->me)
            races_merge(r, r->clock, pe, 0);
    }
    r->laters = 0;
}

/* ---- Order ---- */

void races_fence(void)
{
    struct races *r = job->races;

    if (this_thread.unfollowed)
        return;
    races_lock(r);
    __atomic_store_n(&r->own->fenced, r->epoch++, __ATOMIC_RELAXED);
    races_unlock(r);
}

void races_flush(void)
{
    struct races *r = job->races;

    if (this_thread.unfollowed)
        return;
    races_lock(r);
    r->flushed = r->epoch++;
    /* others may write to the sources now, too */
    __atomic_store_n(&r->clock[races_entry(r, r->me, r->me)], r->flushed, __ATOMIC_RELAXED);
    races_unlock(r);
}

void races_quiet(void)
{
    struct races *r = job->races;

    if (this_thread.unfollowed)
        return;
    races_lock(r);
    r->quiet = r->epoch++;
    __atomic_store_n(&r->own->fenced, r->quiet, __ATOMIC_RELAXED);
    for (int pe = 0; pe < r->n; pe++)
        __atomic_store_n(&r->clock[races_entry(r, r->me, pe)], r->quiet, __ATOMIC_RELAXED);
    see_later(r);
    races_unlock(r);
}

static uint32_t arrive(enum races_side side, gshmem_team_t team)
{
    struct races *r = job->races;

    races_lock(r);
    const uint32_t number = ++r->round[side][team];
    struct races_round *round = &r->own->round[side][team][number % RACES_ROUNDS];
    atomic_store_explicit(&round->snapshot, races_snapshot(r, -1), memory_order_relaxed);
    /* release: pairs with the acquire in leave_member */
    atomic_store_explicit(&round->number, number, memory_order_release);
    races_unlock(r);
    return number;
}

/* A member that is some rounds ahead has another round there: then all that it has done counts. */
static void leave_member(struct races *r, enum races_side side, gshmem_team_t team, int pe,
                         uint32_t number)
{
    struct races_round *round = &r->shared->pe[pe].round[side][team][number % RACES_ROUNDS];
    const uint32_t there = atomic_load_explicit(&round->number, memory_order_acquire);

    if (pe != r->me)
        races_merge(r, r->clock, pe,
                    there == number
                        ? atomic_load_explicit(&round->snapshot, memory_order_relaxed)
                        : 0);
}

static void leave(enum races_side side, gshmem_team_t team, uint32_t number, const int *members,
                  int n)
{
    struct races *r = job->races;

    races_lock(r);
    for (int i = 0; i < n; i++)
        leave_member(r, side, team, members[i], number);
    races_unlock(r);
}

uint32_t races_arrive(gshmem_team_t team)
{
    const uint32_t number = arrive(RACES_HOST, team);

    this_thread.unfollowed++;
    return number;
}

void races_leave(gshmem_team_t team, uint32_t number, const int *members, int n,
                 gshmem_status_t status)
{
    this_thread.unfollowed--;
    if (!status)
        leave(RACES_HOST, team, number, members, n);
}

void races_arrive_kernel(gshmem_team_t team)
{
    arrive(RACES_KERNEL, team);
}

void races_leave_kernel(gshmem_team_t team, const int *members, int n)
{
    leave(RACES_KERNEL, team, job->races->round[RACES_KERNEL][team], members, n);
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

    races_lock(r);
    r->round[RACES_HOST][team] = r->round[RACES_KERNEL][team] = 0;
    races_unlock(r);
}

/* ---- Objects ---- */

void races_forget(const void *at, size_t bytes)
{
    struct races *r = job->races;

    races_lock(r);
    races_clear_cells(r, at, bytes);
    for (size_t i = 0; i < r->objects; i++) {
        if (r->object[i].at == (uintptr_t)at)
            r->object[i] = r->object[--r->objects];
    }
    races_unlock(r);
}

/* Without memory for it, reports have the address alone. */
void races_enter(const void *at, size_t bytes)
{
    struct races *r = job->races;

    races_lock(r);
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
    races_unlock(r);
}

/* ---- Loads and stores of the program: hooks.c ---- */

/* The job whose symmetric memory is followed, or NULL, and the threads that are in a hook because
 * of it. Threads that never call GSHMEM have hooks, too, and the job ends only when they have left
 * it. The ranges are a copy, which stays when the job is gone: most addresses are in none. */
static _Atomic(struct job *) followed;
static atomic_uint inside;
static struct {
    _Atomic uintptr_t base;
    _Atomic size_t bytes;
} range[RACES_RANGES];
static atomic_uint ranges;

_Static_assert((int)RACES_RANGES >= (int)SEGMENT_MAX, "a range for each segment");

void races_follow(struct job *j)
{
    const struct memory_map *map = j->map;
    unsigned n = 0;

    for (int i = SEGMENT_HEAP; i < map->segments; i++, n++) {
        atomic_store_explicit(&range[n].base, map->segment[i].base, memory_order_relaxed);
        atomic_store_explicit(&range[n].bytes, map->segment[i].bytes, memory_order_relaxed);
    }
    atomic_store(&ranges, n);
    /* seq_cst: pairs with the load in hook_begin */
    atomic_store(&followed, j);
}

void races_close(struct job *j)
{
    if (!j->races || atomic_load(&followed) != j)
        return;
    /* seq_cst, both: a hook has counted itself before, or finds no job */
    atomic_store(&followed, NULL);
    /* but for this thread, whose hook a handler has interrupted that ends the process */
    while (atomic_load(&inside) > (this_thread.hooked ? 1u : 0u))
        clock_yield();
}

void races_leave_parent(void)
{
    atomic_store(&followed, NULL);
    atomic_store(&inside, 0); /* the child has none of those threads */
}

static bool is_symmetric(const void *at)
{
    const unsigned n = atomic_load_explicit(&ranges, memory_order_relaxed);

    for (unsigned i = 0; i < n; i++) {
        if ((uintptr_t)at - atomic_load_explicit(&range[i].base, memory_order_relaxed) <
            atomic_load_explicit(&range[i].bytes, memory_order_relaxed))
            return true;
    }
    return false;
}

/* true: the access is followed, and hook_end comes. */
static bool hook_begin(const void *at)
{
    if (!atomic_load_explicit(&followed, memory_order_relaxed) || !is_symmetric(at) ||
        this_thread.unfollowed || this_thread.hooked)
        return false;
    this_thread.hooked = true;
    /* seq_cst, both: pairs with the store and the load in races_close */
    atomic_fetch_add(&inside, 1);
    if (atomic_load(&followed) && job && job->races)
        return true;
    atomic_fetch_sub(&inside, 1);
    this_thread.hooked = false;
    return false;
}

static void hook_end(int was)
{
    atomic_fetch_sub(&inside, 1);
    this_thread.hooked = false;
    errno = was;
}

void gshmem_path_loaded(const void *at, size_t bytes, const void *from)
{
    const int was = errno;

    if (!hook_begin(at))
        return;
    races_access(&(struct races_call){"load", from}, RACES_READ, 0, at, bytes, job->races->me);
    hook_end(was);
}

void gshmem_path_stored(const void *at, size_t bytes, const void *from)
{
    const int was = errno;

    if (!hook_begin(at))
        return;
    races_access(&(struct races_call){"store", from}, RACES_WRITE, 0, at, bytes, job->races->me);
    hook_end(was);
}

void gshmem_path_synchronized(const void *at, size_t bytes)
{
    const int was = errno;

    if (!hook_begin(at))
        return;
    races_see(at, bytes, job->races->me);
    hook_end(was);
}

void gshmem_path_updated(const void *at, size_t bytes, const void *from)
{
    const int was = errno;

    if (!hook_begin(at))
        return;
    races_access(&(struct races_call){"atomic", from}, RACES_ATOMIC, 0, at, bytes,
                 job->races->me);
    hook_end(was);
}
