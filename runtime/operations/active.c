/* Teams of active sets: their PEs have nothing in common but a work array in symmetric memory.
 *
 * They need a slot of the first range that is free on all of them (slots.c). Here the
 * first PE of the set leads. All words below are words of the array.
 *
 * 1. Each other PE writes the slots that it has free into the leader's copy of the array.
 * 2. The leader writes its choice into the copies of the others.
 * 3. Each PE claims the slot, and tells the leader whether it could.
 * 4. After the leader's response the team is like any other.
 *
 * Invariant: all words are 0 again before any PE leaves, so that the program can use the array
 * again.
 *
 * Teams stay for the next use of their set while half of all slots are free. Beyond that a set's
 * team is made for one collective, and its slot is freed. */
#include <stdlib.h>
#include <string.h>

#include "gshmem.h"
#include "runtime/base/log.h"
#include "runtime/job/extensions.h"
#include "runtime/job/job.h"
#include "runtime/teams/group.h"
#include "runtime/teams/slots.h"

enum { ARRIVED, USED, BUSY = USED + SLOT_WORDS, ANSWER, WORDS };
_Static_assert((int)WORDS <= (int)ACTIVE_SET_WORDS, "the array holds them");

/* Responses. Larger values: FIRST_SLOT + a slot of the first range, and TEAM_RANGE more for a team
 * that does not stay. */
enum { AGAIN = 1, NONE_FREE, ALL_HAVE, FIRST_SLOT };

struct meeting {
    const char *call;
    long *sync;
    const struct active_set *set;
    bool leads;
    gshmem_status_t status; /* the first failure; after one, nothing is done */
};

static int member(const struct active_set *set, int i)
{
    return set->start + (i << set->log_stride);
}

static void active_note(struct meeting *m, gshmem_status_t status)
{
    if (!m->status)
        m->status = status;
}

/* acquire: pairs with the fence before the leader's response, or the member's arrival */
static long active_take(struct meeting *m, int word, int cmp, long value)
{
    long found = 0;

    if (!m->status)
        active_note(m, gshmem_long_wait_until(&m->sync[word], cmp, value));
    if (!m->status)
        found = __atomic_exchange_n(&m->sync[word], 0, __ATOMIC_ACQUIRE);
    return found;
}

/* A member tells the leader that it has arrived at this step, and waits for the response. */
static long active_report(struct meeting *m)
{
    if (!m->status)
        active_note(m, gshmem_fence());
    if (!m->status)
        active_note(m, gshmem_long_atomic_add(&m->sync[ARRIVED], 1, m->set->start));
    return active_take(m, ANSWER, GSHMEM_CMP_NE, 0);
}

static void active_answer(struct meeting *m, long value)
{
    if (!m->status)
        active_note(m, gshmem_fence());
    for (int i = 1; i < m->set->size && !m->status; i++)
        active_note(m, gshmem_long_atomic_set(&m->sync[ANSWER], value, member(m->set, i)));
}

static uint64_t number_of(const struct active_set *set)
{
    return (uint64_t)set->start << 40 ^ (uint64_t)set->size << 8 ^ (uint64_t)set->log_stride;
}

/* The leader's decision from all members' words and its own. */
static long decide(const struct meeting *m, const struct slots_offer *all, uint64_t attempt)
{
    gshmem_team_t slot = slots_choose(all->free, 0, number_of(m->set), attempt);

    if (slot == GSHMEM_TEAM_INVALID)
        return all->busy ? AGAIN : NONE_FREE;
    return FIRST_SLOT + slot + (slots_count(all->free) > TEAM_RANGE / 2 ? 0 : TEAM_RANGE);
}

/* The leader waits until all others have arrived; returns whether one of them is busy. */
static bool active_gather(struct meeting *m)
{
    if (m->set->size == 1)
        return false;
    active_take(m, ARRIVED, GSHMEM_CMP_EQ, m->set->size - 1);
    return !m->status && __atomic_exchange_n(&m->sync[BUSY], 0, __ATOMIC_RELAXED) != 0;
}

static long lead(struct meeting *m, struct slots_offer *o, uint64_t attempt)
{
    o->busy |= active_gather(m);
    for (int w = 0; w < SLOT_WORDS && m->set->size > 1 && !m->status; w++)
        o->free[w] &= ~(uint64_t)__atomic_exchange_n(&m->sync[USED + w], 0, __ATOMIC_RELAXED);
    long value = decide(m, o, attempt);
    active_answer(m, value);
    return value;
}

static void say_busy(struct meeting *m)
{
    if (!m->status)
        active_note(m, gshmem_long_atomic_set(&m->sync[BUSY], 1, m->set->start));
}

static long active_follow(struct meeting *m, const struct slots_offer *o)
{
    for (int w = 0; w < SLOT_WORDS && !m->status; w++) {
        if (~o->free[w])
            active_note(m, gshmem_uint64_atomic_or((uint64_t *)&m->sync[USED + w], ~o->free[w],
                                                   m->set->start));
    }
    if (o->busy)
        say_busy(m);
    return active_report(m);
}

/* Whether all members have claimed it: from then on no PE reads a block that another team has
 * left. */
static bool active_compare_claims(struct meeting *m, bool mine)
{
    if (!m->leads) {
        if (!mine)
            say_busy(m);
        return active_report(m) == ALL_HAVE;
    }
    bool all = !active_gather(m) && mine;
    active_answer(m, all ? ALL_HAVE : AGAIN);
    return all;
}

/* t: NULL if this PE has no memory for it. After a failure the team stays installed if other
 * members may already use it. */
static gshmem_status_t install(struct meeting *m, struct team *t)
{
    for (uint64_t attempt = 0; !m->status; attempt++) {
        struct slots_offer o = {{0}, 0, 0};
        if (t)
            o = slots_offer(0);
        long found = m->leads ? lead(m, &o, attempt) : active_follow(m, &o);
        if (m->status || found == AGAIN)
            continue;
        if (found == NONE_FREE)
            return fail(
                GSHMEM_ERR_MEMORY,
                "%s: no team slot is free on all PEs of the active set: a PE can be in %d active "
                "sets at a time, and in fewer where it is in teams",
                m->call, TEAM_RANGE - TEAM_FIRST_OWN);
        t->passing = found >= FIRST_SLOT + TEAM_RANGE;
        bool mine = slots_claim(t, (gshmem_team_t)((found - FIRST_SLOT) % TEAM_RANGE));
        bool all = active_compare_claims(m, mine);
        if (mine)
            slots_settle(t, all || m->status);
        if (all)
            break;
    }
    return m->status;
}

static gshmem_status_t active_check(const struct active_set *set, const long *sync,
                                    const char *call)
{
    int64_t last = set->start;

    if (set->log_stride >= 0 && set->log_stride < 31 && set->size > 0)
        last += (int64_t)(set->size - 1) << set->log_stride;
    else
        last = -1;
    if (last < 0 || set->start < 0 || last >= job->n_pes)
        return fail(
            GSHMEM_ERR_ARGUMENT,
            "%s: an active set of %d PEs from PE %d with a stride of 2 to the %d: the job has "
            "PEs 0..%d",
            call, set->size, set->start, set->log_stride, job->n_pes - 1);
    int before = job->pe - set->start;
    if (before < 0 || job->pe > last || (before & ((1 << set->log_stride) - 1)))
        return fail(
            GSHMEM_ERR_ARGUMENT,
            "%s: PE %d is not in the active set of %d PEs from PE %d with a stride of 2 to the "
            "%d",
            call, job->pe, set->size, set->start, set->log_stride);
    if (!sync && set->size > 1)
        return fail(GSHMEM_ERR_ARGUMENT, "%s: pSync is NULL", call);
    return GSHMEM_OK;
}

static gshmem_team_t active_look_up(const struct active_set *set)
{
    /* acquire: pairs with the release in active_remember */
    uint32_t n = __atomic_load_n(&job->active_sets->n, __ATOMIC_ACQUIRE);

    for (uint32_t i = 0; i < n; i++) {
        const struct active_set *a = &job->active_sets->set[i];
        if (a->start == set->start && a->size == set->size && a->log_stride == set->log_stride)
            return a->team;
    }
    return GSHMEM_TEAM_INVALID;
}

static void active_remember(const struct active_set *set)
{
    pthread_mutex_lock(&job->lock);
    struct active_sets *sets = job->active_sets;
    sets->set[sets->n] = *set;
    /* release: pairs with the acquire in active_look_up */
    __atomic_store_n(&sets->n, sets->n + 1, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&job->lock);
}

static gshmem_status_t active_make(struct active_set *set, long *sync, const char *call)
{
    struct meeting m = {.call = call, .sync = sync, .set = set, .leads = job->pe == set->start};
    int *members = malloc((size_t)set->size * sizeof *members);
    struct team *t = NULL;

    for (int i = 0; members && i < set->size; i++)
        members[i] = member(set, i);
    if (members)
        t = team_create(job, members, set->size, call);
    gshmem_status_t status = install(&m, t);
    if (status) {
        if (t && t->id == GSHMEM_TEAM_INVALID)
            team_free(job, t); /* otherwise it is freed with the job */
        return status;
    }
    set->team = t->id;
    if (!t->passing)
        active_remember(set);
    return GSHMEM_OK;
}

gshmem_status_t gshmem_path_active_set(int start, int log_stride, int size, long *sync,
                                       const char *call, gshmem_team_t *team)
{
    gshmem_status_t status = job_require(call);

    if (status)
        return status;
    if (start == 0 && log_stride == 0 && size == job->n_pes) {
        *team = GSHMEM_TEAM_WORLD;
        return GSHMEM_OK;
    }
    struct active_set set = {start, size == 1 ? 0 : log_stride, size, GSHMEM_TEAM_INVALID};
    if ((status = active_check(&set, sync, call)))
        return status;
    set.team = active_look_up(&set);
    if (set.team == GSHMEM_TEAM_INVALID && (status = active_make(&set, sync, call)))
        return status;
    *team = set.team;
    return GSHMEM_OK;
}

gshmem_status_t gshmem_path_leave_set(gshmem_team_t team)
{
    const struct team *t = team >= 0 && team < TEAM_MAX && job ? job->team[team] : NULL;

    return t && t->passing ? gshmem_team_destroy(team) : GSHMEM_OK;
}
