#define _GNU_SOURCE
#include "runtime/network/wait.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/base/settings.h"
#include "runtime/departures.h"
#include "runtime/node/affinity.h"
#include "runtime/job.h"
#include "runtime/network/backoff.h"
#include "runtime/teams/team.h"
#include "runtime/threads.h"

enum {
    /* How long a wait spins: with a CPU for each PE longer than most skews between them; where PEs share CPUs
     * not long, since another PE needs this CPU to make the wait end. */
    SPIN_ALONE_NS = 100 * 1000,
    SPIN_OVERSUBSCRIBED_NS = 300,
    /* A PE that has a CPU of its own keeps it for so long, unless threads of this process need it: a yield
     * beside a process of somebody else gives away 3 to 4 ms. Where the system has just given the CPU to others,
     * a PE sleeps earlier, since a process that has slept gets the CPU back at once when it wakes up. In a job of
     * several nodes no PE keeps its CPU: a PE that sleeps is woken by the message that it waits for, and one that
     * was preempted is not. */
    KEEP_NS = 200 * 1000 * 1000,
    KEEP_CONTENDED_NS = 4 * 1000 * 1000,
    PREEMPTED_NS = 500 * 1000,        /* between two steps: others have run on this CPU, */
    CONTENDED_NS = 50 * 1000 * 1000,  /* and are taken to want it for so long after that */
    THREADS_NS = 10 * 1000 * 1000,    /* between two looks at the threads of this process */
    /* Elsewhere a wait yields for so long before it sleeps: less where others do run then, or PEs of other
     * nodes are known to want this CPU. */
    YIELD_NS = 2 * 1000 * 1000,
    YIELD_SHARED_NS = 100 * 1000,
    YIELD_ALONE_NS = 2000, /* a yield that takes less has let nobody run */
    YIELDS_ASKED = 16,     /* yields between two questions to the system, how many of them let others run */
    /* Steps between a yield that let nobody run and the next; fewer where each step is a system call. */
    YIELD_STEPS = 8,
    YIELD_STEPS_DRIVING = 4,
    YIELD_STEPS_ALONE = 128,
    SERVED_NS = 200 * 1000, /* after something arrived another message is likely: no sleep for so long */
    SLEEP_SHARE = 64,       /* a sleep lasts at most this part of what was waited so far */
    SLEEP_LEAST_NS = 50 * 1000,
    SLEEP_MOST_NS = 1000 * 1000,
    CHECK_NS = 20 * 1000 * 1000, /* between two looks whether the PEs that are waited for still live */
};

uint32_t wait_spins = 100;
static bool cpus_are_shared;
static bool has_network;
static bool hosts_share_cpus;
static uint64_t keep_ns; /* 0: a wait lets others run as soon as its spin is over */

void wait_calibrate(bool oversubscribed, bool drives, bool contained)
{
    enum { SAMPLES = 64 };
    int64_t us = settings_number(SETTING_SPIN_US);
    uint64_t spin = us >= 0 ? (uint64_t)us * 1000 : oversubscribed || drives ? SPIN_OVERSUBSCRIBED_NS : SPIN_ALONE_NS;
    uint64_t start = clock_ns();

    for (int i = 0; i < SAMPLES; i++)
        clock_pause();
    uint64_t taken = clock_ns() - start;
    cpus_are_shared = oversubscribed;
    has_network = drives;
    hosts_share_cpus = oversubscribed && contained;
    keep_ns = us >= 0 || oversubscribed || drives ? 0 : KEEP_NS;
    wait_spins = (uint32_t)(spin * SAMPLES / (taken ? taken : 1));
}

/* ---- What can end a wait ---- */

static gshmem_status_t check_aborted(const struct wait *w)
{
    const struct node_control *control = job->node.control;
    /* acquire: pairs with the release in node_abort */
    uint32_t aborted = atomic_load_explicit(&control->aborted, memory_order_acquire);

    if (!aborted)
        return GSHMEM_OK;
    return fail_silently(GSHMEM_ERR_ABORTED, "%s: PE %d ended the job with status %u: %.180s",
                         w->what, control->aborted_by, aborted - 1, control->why);
}

static bool has_died(int pe)
{
    int index = job->node.index_of[pe];

    return index >= 0 ? !node_alive(&job->node, index) : network_lost(job->network, pe);
}

/* The first of those waited for that has died, as a PE of the job; -1: none. */
static int find_dead(const struct wait *w)
{
    const struct team *team =
        w->team >= 0 && w->team < TEAM_MAX ? job->team[w->team] : NULL; /* NULL: anyone of this node */
    int n = team ? team->n_pes : w->team == WAIT_FOR_NETWORK ? 0 : job->node.n;

    if (w->only >= 0)
        return has_died(w->only) ? w->only : -1;
    for (int i = 0; i < n; i++) {
        int pe = team ? team->members[i] : job->node.pe[i];
        if (has_died(pe))
            return pe;
    }
    return -1;
}

static gshmem_status_t check_peers(const struct wait *w)
{
    int dead = find_dead(w);

    if (dead < 0)
        return GSHMEM_OK;
    if (job->node.index_of[dead] < 0)
        return fail(GSHMEM_ERR_PEER_DEAD, "%s: PE %d, on another host, has died or cannot be reached",
                    w->what, dead);
    const int index = job->node.index_of[dead];
    return fail(GSHMEM_ERR_PEER_DEAD, "%s: PE %d (process %d) %s", w->what, dead,
                (int)job->node.control->member[index].pid, node_fate(&job->node, index));
}

static void wait_watch(struct wait *w, uint64_t waited)
{
    int64_t seconds = settings_number(SETTING_WATCHDOG);
    char missing[200] = "";

    if (seconds == 0 || w->reported || waited < (uint64_t)seconds * 1000000000u)
        return;
    w->reported = true;
    if (w->team >= 0 && w->team < TEAM_MAX && job->team[w->team])
        team_missing(job->team[w->team], missing, sizeof missing);
    log_line(LOG_ERROR, "watchdog: %s has waited for %llu s%s%s", w->what,
             (unsigned long long)(waited / 1000000000u), missing[0] ? "; " : "", missing);
}

/* Called between yields and sleeps: the cheap look every time, the dear ones now and then. */
static gshmem_status_t network_wait_check(struct wait *w, uint64_t now)
{
    gshmem_status_t status = job_is_over(job) ? job_stay(w->what) : check_aborted(w);

    if (status || now - w->checked < CHECK_NS)
        return status;
    w->checked = now;
    wait_watch(w, now - w->since);
    if (w->limit && now - w->since > w->limit)
        return fail(GSHMEM_ERR_TIMEOUT, "%s: the other PEs have not come within %llu s", w->what,
                    (unsigned long long)(w->limit / 1000000000u));
    if (now - w->since >= w->grace)
        status = check_peers(w);
    return status ? status : departures_check(w, now);
}

gshmem_status_t wait_look(const struct wait *w)
{
    gshmem_status_t status = check_aborted(w);

    if (!status)
        status = check_peers(w);
    return status ? status : departures_check(w, clock_ns());
}

/* ---- How to pass the time ---- */

static uint64_t sleep_ns(struct wait *w, uint64_t now)
{
    const uint64_t ns = (now - w->since) / SLEEP_SHARE;

    w->sleeps++;
    return ns < SLEEP_LEAST_NS ? SLEEP_LEAST_NS : ns < SLEEP_MOST_NS ? ns : SLEEP_MOST_NS;
}

static void sleep_for(uint64_t ns)
{
    if (job->network) {
        network_sleep(job->network, ns);
    } else {
        struct timespec time = {.tv_nsec = (long)ns};
        nanosleep(&time, NULL);
    }
}

/* Whether driving the network brought something: perhaps what is waited for. The clock is left
 * alone until something is to be decided by it: it is a system call where the system does not trust
 * the CPU's. */
static bool wait_serve(struct wait *w)
{
    if (!job->network || !network_drive(job->network))
        return false;
    w->has_served = true;
    return true;
}

/* Steps that a thread makes without a yield, or a look at the clock. */
static _Thread_local uint32_t backoff;

/* In a job of several hosts: the last yield has let others run. */
static _Thread_local bool shares_cpu;

/* Whether other threads of this process run or wait for a CPU: kernels on the host device, or the program's
 * own. An answer of up to THREADS_NS ago will do, since it takes some 20 us to find out. */
static bool threads_need_cpus(uint64_t now)
{
    static _Atomic uint64_t asked; /* relaxed, both: the answer of any thread is as good */
    static _Atomic bool need;

    if (job->kernels)
        return true;
    if (now - atomic_load_explicit(&asked, memory_order_relaxed) >= THREADS_NS) {
        atomic_store_explicit(&need, threads_any_runs(), memory_order_relaxed);
        atomic_store_explicit(&asked, now, memory_order_relaxed);
    }
    return atomic_load_explicit(&need, memory_order_relaxed);
}

static _Thread_local uint64_t contended_until; /* ns */

static bool keeps_cpu(uint64_t now)
{
    return keep_ns && !threads_need_cpus(now);
}

/* For how long this wait keeps the CPU. Notices when the system has given the CPU to others meanwhile. */
static uint64_t keep_for(struct wait *w, uint64_t now)
{
    const bool preempted = !w->sleeps && now - w->stepped >= PREEMPTED_NS;

    if (preempted)
        contended_until = now + CONTENDED_NS;
    affinity_separate(&job->node, now, preempted);
    w->stepped = now;
    return now < contended_until ? KEEP_CONTENDED_NS : keep_ns;
}

/* Whether it is time to sleep rather than yield. A yield lets run only who is of the same control
 * group, or session, until the system takes the CPU from all of these: PEs of another node that has
 * the CPU too, as containers do, would get it after 1 to 2 ms. That a yield comes back at once says
 * nothing of them. */
static bool begin_slow_step(struct wait *w, uint64_t now, gshmem_status_t *status)
{
    if (!w->since) /* the spin is over: from here on time is looked at */
        w->since = w->checked = w->stepped = now;
    if (w->has_served)
        w->served = now;
    w->has_served = false;
    *status = network_wait_check(w, now);
    if (keeps_cpu(now)) {
        const uint64_t keep = keep_for(w, now);
        return now - w->since >= keep && now - w->served >= keep;
    }
    return hosts_share_cpus || shares_cpu
               ? now - w->since >= YIELD_SHARED_NS && now - w->served >= YIELD_SHARED_NS
               : now - w->since >= YIELD_NS && now - w->served >= SERVED_NS;
}

/* Whether a yield of so many ns has let others run. One that came back at once has not. Of one that
 * took its time that is not certain: where system calls are slow, as on an emulated processor, all
 * do. So where it decides who sleeps the system is asked, now and then, how often it has given the
 * CPU away. */
static bool others_ran(uint64_t took)
{
    static _Thread_local unsigned yields;
    static _Thread_local long switches;
    static _Thread_local bool ran;
    struct rusage usage;

    if (took < YIELD_ALONE_NS || !has_network)
        return took >= YIELD_ALONE_NS;
    if (yields++ % YIELDS_ASKED == 0 && getrusage(RUSAGE_THREAD, &usage) == 0) {
        ran = usage.ru_nivcsw - switches >= YIELDS_ASKED / 2;
        switches = usage.ru_nivcsw;
    }
    return ran;
}

/* Where nobody else wants this CPU, a yield only costs time: one that let nobody run is not
 * repeated for some steps. For many, where PEs have a CPU each, unless hosts share them as
 * containers do. */
static void wait_let_others_run(uint64_t now)
{
    if (keeps_cpu(now)) {
        backoff = YIELD_STEPS_ALONE;
        return;
    }
    affinity_return(now);
    sched_yield();
    bool alone = !others_ran(clock_ns() - now);

    shares_cpu = has_network && !alone;
    if (!alone)
        backoff = 0;
    else if (!cpus_are_shared)
        backoff = YIELD_STEPS_ALONE;
    else
        backoff = has_network ? YIELD_STEPS_DRIVING : YIELD_STEPS;
}

static _Thread_local struct backoff with_hosts;

void wait_for_others(struct wait *w)
{
    w->backoff = backoff_begin(&with_hosts);
}

static bool has_backoff(struct wait *w)
{
    if (w->backoff) {
        w->backoff = backoff_step(&with_hosts, w->backoff);
        return true;
    }
    if (!backoff || w->sleeps)
        return false;
    backoff--;
    if (keep_ns)
        clock_pause();
    return true;
}

GSHMEM_HOT gshmem_status_t wait_slowly(struct wait *w)
{
    gshmem_status_t status;

    if (wait_serve(w) || has_backoff(w))
        return GSHMEM_OK;
    uint64_t now = clock_ns();
    if (!begin_slow_step(w, now, &status))
        wait_let_others_run(now);
    else if (!status)
        sleep_for(sleep_ns(w, now));
    return status;
}

gshmem_status_t wait_step_on(struct wait *w, _Atomic uint32_t *word, uint32_t seen,
                             _Atomic uint32_t *sleepers)
{
    gshmem_status_t status;

    if (w->spins < wait_spins) {
        w->spins++;
        clock_pause();
        return GSHMEM_OK;
    }
    /* The others may be all that is missing, and not the network. */
    if (!w->has_yielded && !backoff) {
        w->has_yielded = true;
        wait_let_others_run(clock_ns());
        return GSHMEM_OK;
    }
    if (wait_serve(w) || has_backoff(w))
        return GSHMEM_OK;
    uint64_t now = clock_ns();
    if (!begin_slow_step(w, now, &status)) {
        wait_let_others_run(now);
    } else if (!status) {
        /* A dead PE wakes nobody, so sleep no longer than the next look at the peers. */
        struct timespec most = {.tv_nsec = CHECK_NS};
        /* seq_cst: pairs with the fence in wait_wake: either the waker sees this sleeper, or the
         * system sees the new word and does not put it to sleep */
        atomic_fetch_add(sleepers, 1);
        syscall(SYS_futex, word, FUTEX_WAIT, seen, &most, NULL, 0);
        atomic_fetch_sub(sleepers, 1);
    }
    return status;
}

void wait_wake(_Atomic uint32_t *word, _Atomic uint32_t *sleepers)
{
    atomic_thread_fence(memory_order_seq_cst); /* pairs with the increment in wait_step_on */
    if (atomic_load_explicit(sleepers, memory_order_relaxed))
        syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}
