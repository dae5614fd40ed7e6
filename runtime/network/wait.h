/* How a PE waits: it first spins, then lets others run, then sleeps; and never waits for ever.
 *
 *     struct wait w;
 *     wait_begin(&w, "barrier", team);
 *     while (atomic_load_explicit(&flag, memory_order_acquire) != expected) {
 *         if ((status = wait_step(&w)))
 *             break;
 *     }
 *     wait_end(&w);
 *
 * wait_step returns a failure when the job was aborted or a PE that is waited for has died, so that
 * no wait outlives the job. It also gives the watchdog its chance to speak (GSHMEM_WATCHDOG).
 *
 * README.md says who wakes a thread that sleeps, and which loads of a wait may be relaxed. */
#ifndef GSHMEM_RUNTIME_NETWORK_WAIT_H
#define GSHMEM_RUNTIME_NETWORK_WAIT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "gshmem/base.h"
#include "gshmem/type.h"
#include "runtime/base/clock.h"
#include "runtime/node/await.h"

struct where_wait;

struct wait {
    const char *what;    /* for reports: the public name of the call that waits */
    gshmem_team_t team; /* whose members are waited for; GSHMEM_TEAM_WORLD if anyone may be meant */
    /* the one PE of the job that is waited for; -1: all of the team are; WAIT_FOR_UPDATE */
    int only;
    int ended_by; /* for the counts: the PE that a wait for the network was for; -1: not known */
    uint32_t spins;
    uint32_t sleeps;
    uint32_t served_steps; /* steps in which the network brought something */
    uint64_t since;      /* ns, the end of the spin; 0: not yet */
    uint64_t stepped;    /* ns, the last step that looked at the clock */
    uint64_t checked;    /* ns, when the peers were last looked at */
    uint64_t served;     /* ns, when driving the network was last seen to have brought something */
    uint64_t limit;      /* ns to wait at most, 0: for ever */
    uint64_t grace;      /* ns that it goes on for though somebody has died */
    bool has_served;     /* since then */
    bool has_yielded;    /* wait_step_on has let others run, before anything else */
    bool reported;       /* the watchdog has spoken */
    struct where_wait *record; /* what others see of it, once its spin is over; NULL: none */
    /* Says in the record what is waited for; NULL: `team` and `only` say it. */
    void (*describe)(const struct wait *w, struct where_wait *record);
    const void *object; /* what describe needs */
};

/* In place of a team: the wait is for the network and not for a PE. The network itself ends the
 * requests to a failed PE. Therefore such a wait does not fail when a PE has failed. */
#define WAIT_FOR_NETWORK ((gshmem_team_t)-2)

/* In place of the one PE: any PE may end the wait, by an update of this PE's memory. The wait fails
 * when all others have left. */
enum { WAIT_FOR_UPDATE = -2 };

/* The functions of rooms above that waits call; start.c enters them as job->waits. Teams know their
 * members, and which PEs have left the job. */
struct wait_hooks {
    /* The members of a team, as PEs of the job; NULL: there is no such team. */
    const int *(*members)(gshmem_team_t team, int *n);
    /* Says for people which members have not arrived; empty text: that is not known. */
    void (*missing)(gshmem_team_t team, char *text, size_t size);
    /* The same as PEs of the job: who is waited for, for the wait's record. */
    void (*peers)(const struct wait *w, struct where_wait *record);
    /* Whether the wait is in vain, since a PE has left the job; now and then. */
    gshmem_status_t (*check)(const struct wait *w, uint64_t now);
    /* Fails with a line that says how the PE has left, which a round has shown; noted: what its
     * slot has. */
    gshmem_status_t (*left)(const char *call, int pe, uint64_t noted);
};

/* Waits until done(context): for the rooms below. */
await_fn network_await;

extern uint32_t wait_spins; /* steps that only pause, before the first yield; set at init */

/* Chooses how this PE waits. oversubscribed: PEs share CPUs; drives: a wait must make progress on
 * the network; contained: PEs of other nodes are on this machine, as containers can be. */
void wait_calibrate(bool oversubscribed, bool drives, bool contained);

static inline void wait_begin(struct wait *w, const char *what, gshmem_team_t team)
{
    w->what = what;
    w->team = team;
    w->only = w->ended_by = -1;
    w->spins = 0;
    w->sleeps = w->served_steps = 0;
    w->since = 0;
    w->limit = w->grace = 0;
    w->has_served = w->has_yielded = false;
    w->record = NULL;
    w->describe = NULL;
}

/* For people who ask where the job stands: once the wait is long, describe is called now and then
 * with the object. */
typedef void wait_describe_fn(const struct wait *w, struct where_wait *record);
static inline void wait_for_object(struct wait *w, wait_describe_fn *describe, const void *object)
{
    w->describe = describe;
    w->object = object;
}

/* The wait is over, or has failed: to be called on each way out of its loop. */
void wait_forget(struct wait *w);
static inline void wait_end(struct wait *w)
{
    if (GSHMEM_UNLIKELY(w->record))
        wait_forget(w);
}

/* For a wait that cannot end during a spin, because the PE that it waits for needs this CPU. */
static inline void wait_without_spin(struct wait *w)
{
    w->spins = wait_spins;
}

/* After the spin: drives the network, yields, then sleeps for ever longer times up to a bound;
 * checks for failure. */
gshmem_status_t wait_slowly(struct wait *w);
/* The same for a wait that sleeps in a way of its own, at most for so many ns. */
typedef void wait_sleep(void *context, uint64_t ns);
gshmem_status_t wait_slowly_by(struct wait *w, wait_sleep *by, void *context);

static inline gshmem_status_t wait_step(struct wait *w)
{
    if (w->spins < wait_spins) {
        w->spins++;
        clock_pause();
        return GSHMEM_OK;
    }
    return wait_slowly(w);
}

/* Whether the wait has gone on for so many ns after its spin, at its last look at the clock. */
static inline bool wait_has_taken(const struct wait *w, uint64_t ns)
{
    return w->since && w->stepped - w->since >= ns;
}

/* Whether such a wait would end at once, for a call that answers instead of waiting. A system
 * call for each PE of this node that it would wait for. */
gshmem_status_t wait_look(const struct wait *w);

/* Like wait_step, but sleeps on the word while it has the value seen, where the one who changes it
 * calls wait_wake; *sleepers counts those who do. */
gshmem_status_t wait_step_on(struct wait *w, _Atomic uint32_t *word, uint32_t seen,
                             _Atomic uint32_t *sleepers);
/* To be called after changing *word; a system call only if somebody sleeps. */
void wait_wake(_Atomic uint32_t *word, _Atomic uint32_t *sleepers);

/* ---- wait_shown.c ---- */

/* The wait's spin is over. */
void wait_count(const struct wait *w);

/* Refreshes the wait's record; now and then, once it is long. */
void wait_show(struct wait *w, uint64_t now);
/* One line for a wait that is longer than GSHMEM_WATCHDOG. */
void wait_watch(struct wait *w, uint64_t waited);

/* Whether variables can be waited for as that says (wait_until.c); *bytes: the size of one. */
gshmem_status_t wait_check(const char *call, enum gshmem_type type, const void *ivars, size_t n,
                           int cmp, size_t *bytes);

#endif
