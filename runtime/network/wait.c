#define _GNU_SOURCE
#include "runtime/network/wait.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "runtime/base/log.h"
#include "runtime/base/settings.h"
#include "runtime/base/system.h"
#include "runtime/job/job.h"
#include "runtime/job/thread.h"
#include "runtime/network/network.h"
#include "runtime/node/affinity.h"
#include "runtime/node/node.h"
#include "runtime/node/threads.h"
#include "runtime/node/where_page.h"
#include "runtime/trace/trace.h"

enum { US = 1000, MS = 1000 * US };

/* How a wait goes on: it spins, then it keeps the CPU or yields, and in the end it sleeps. */
struct regime {
    uint64_t spin_ns;  /* polls and does nothing else */
    uint64_t keep_ns;  /* after that keeps the CPU, without a yield; 0: yields */
    uint64_t yield_ns; /* where it yields: for so long, before it sleeps */
    uint32_t steps;    /* between a yield that let nobody run and the next */
};

/* Each PE has a CPU: the spin is longer than most skews between PEs, and after it the PE keeps its
 * CPU, since a yield beside a process of somebody else gives away 3 to 4 ms. */
static const struct regime cpu_each = {100 * US, 200 * MS, 2 * MS, 128};
/* The same in a job of several nodes. No PE keeps its CPU: one that sleeps is woken by the message
 * that it waits for, and one that was preempted is not. */
static const struct regime cpu_each_of_nodes = {300, 0, 2 * MS, 128};
/* PEs share CPUs: another PE may need this CPU to make the wait end. */
static const struct regime shared = {300, 0, 2 * MS, 8};
/* The same in a job of several nodes, where each step is a system call. */
static const struct regime shared_of_nodes = {300, 0, 2 * MS, 4};
/* PEs of other nodes share the CPUs, as containers do: a yield does not let them run. */
static const struct regime shared_with_nodes = {300, 0, 100 * US, 4};

enum {
    /* A PE that was away for so long between two steps was preempted. For some time after that it
     * keeps its CPU less long, since one that has slept gets the CPU at once when it wakes up. */
    PREEMPTED_NS = 500 * US,
    CONTENDED_NS = 50 * MS,
    KEEP_CONTENDED_NS = 4 * MS,

    THREADS_NS = 10 * MS,       /* between two looks at the threads of this process */
    YIELD_ALONE_NS = 2 * US,    /* a yield that takes less has let nobody run */
    YIELDS_ASKED = 16,          /* yields between two questions to the system, whom they let run */
    YIELD_SHARED_NS = 100 * US, /* in place of yield_ns where yields have let others run */
    SERVED_NS = 200 * US,       /* no sleep for so long after a message: another is likely */
    SLEEP_SHARE = 64,           /* a sleep lasts this part of what was waited so far, */
    SLEEP_LEAST_NS = 50 * US,   /* but not less than this, */
    SLEEP_MOST_NS = 1 * MS,     /* and not more than this */
    CHECK_NS = 20 * MS,         /* between two looks whether the PEs waited for still live */
    SERVED_STEPS = 256,         /* steps that brought something, between two looks at the clock */
};

uint32_t wait_spins = 100;
static struct regime regime;
static bool has_network;

static const struct regime *choose_regime(bool oversubscribed, bool drives, bool contained)
{
    if (!oversubscribed)
        return drives ? &cpu_each_of_nodes : &cpu_each;
    if (contained)
        return &shared_with_nodes;
    return drives ? &shared_of_nodes : &shared;
}

void wait_calibrate(bool oversubscribed, bool drives, bool contained)
{
    enum { SAMPLES = 64 };
    int64_t us = settings_number(SETTING_SPIN_US);
    uint64_t start = clock_ns();

    for (int i = 0; i < SAMPLES; i++)
        clock_pause();
    uint64_t taken = clock_ns() - start;
    has_network = drives;
    regime = *choose_regime(oversubscribed, drives, contained);
    if (us >= 0) {
        regime.spin_ns = (uint64_t)us * US;
        regime.keep_ns = 0;
    }
    wait_spins = (uint32_t)(regime.spin_ns * SAMPLES / (taken ? taken : 1));
}

/* ---- What can end a wait ---- */

static gshmem_status_t check_aborted(const struct wait *w)
{
    const struct node_control *control = job->node->control;
    /* acquire: pairs with the release in node_abort */
    uint32_t aborted = atomic_load_explicit(&control->aborted, memory_order_acquire);

    if (!aborted)
        return GSHMEM_OK;
    return fail_silently(GSHMEM_ERR_ABORTED, "%s: PE %d ended the job with status %u: %.180s",
                         w->what, control->aborted_by, aborted - 1, control->why);
}

static bool has_died(int pe)
{
    int index = job->node->index_of[pe];

    return index >= 0 ? !node_alive(job->node, index) : network_lost(job->network, pe);
}

/* The first of those waited for that has died, as a PE of the job; -1: none. */
static int find_dead(const struct wait *w)
{
    int n = w->team == WAIT_FOR_NETWORK ? 0 : job->node->n;
    const int *members = job->waits->members(w->team, &n);

    if (w->only >= 0)
        return has_died(w->only) ? w->only : -1;
    for (int i = 0; i < n; i++) {
        int pe = members ? members[i] : job->node->pe[i];
        if (has_died(pe))
            return pe;
    }
    return -1;
}

/* Another thread leaves the job, and notices itself who has died. PEs that are gone may have left
 * with it. */
static bool another_thread_leaves(void)
{
    return job->network && network_expects_end(job->network) && !this_thread.leaves;
}

static gshmem_status_t check_peers(const struct wait *w)
{
    int dead = find_dead(w);

    if (dead < 0 || another_thread_leaves())
        return GSHMEM_OK;
    const gshmem_status_t aborted = check_aborted(w); /* it may have ended the job before it died */
    if (aborted)
        return aborted;
    if (job->node->index_of[dead] < 0)
        return fail(GSHMEM_ERR_PEER_DEAD,
                    "%s: PE %d, on another node, has died or cannot be reached", w->what, dead);
    const int index = job->node->index_of[dead];
    return fail(GSHMEM_ERR_PEER_DEAD, "%s: PE %d (process %d) %s", w->what, dead,
                (int)job->node->control->member[index].pid, node_fate(job->node, index));
}

/* Whether the wait must end with a failure. Called between yields and sleeps: looks for the end of
 * the job each time, at the peers every CHECK_NS. */
static gshmem_status_t network_wait_check(struct wait *w, uint64_t now)
{
    gshmem_status_t status = job_is_over(job) ? job_stay(w->what) : check_aborted(w);

    if (status || now - w->checked < CHECK_NS)
        return status;
    w->checked = now;
    wait_show(w, now);
    wait_watch(w, now - w->since);
    if (w->limit && now - w->since > w->limit)
        return fail(GSHMEM_ERR_TIMEOUT, "%s: the other PEs have not come within %llu s", w->what,
                    (unsigned long long)(w->limit / 1000000000u));
    if (now - w->since >= w->grace)
        status = check_peers(w);
    return status ? status : job->waits->check(w, now);
}

gshmem_status_t wait_look(const struct wait *w)
{
    gshmem_status_t status = check_aborted(w);

    if (!status)
        status = check_peers(w);
    return status ? status : job->waits->check(w, clock_ns());
}

/* ---- How to pass the time ---- */

static uint64_t sleep_ns(struct wait *w, uint64_t now)
{
    const uint64_t ns = (now - w->since) / SLEEP_SHARE;

    w->sleeps++;
    return ns < SLEEP_LEAST_NS ? SLEEP_LEAST_NS : ns < SLEEP_MOST_NS ? ns : SLEEP_MOST_NS;
}

static void sleep_for(void *unused, uint64_t ns)
{
    (void)unused;
    if (job->network)
        network_sleep(job->network, ns);
    else
        clock_sleep(ns);
}

/* Makes progress; whether something arrived, which may be what is waited for. The clock is read
 * later, where something is decided by it: on some machines that is a system call. */
static bool wait_serve(struct wait *w)
{
    const bool for_update = w->only == WAIT_FOR_UPDATE;

    if (!job->network ||
        !network_drive(job->network, for_update ? NETWORK_FOR_UPDATE : NETWORK_FOR_REQUESTS))
        return false;
    w->has_served = true;
    return true;
}

/* What a thread has learned in its waits. */
static _Thread_local struct {
    uint32_t steps;           /* that it makes before its next yield or look at the clock */
    bool shares_cpu;          /* in a job of several nodes: its last yield has let others run */
    uint64_t contended_until; /* ns: until then others are taken to want its CPU */
    unsigned yields;          /* for others_ran: how many there were, */
    long switches;            /* how often the system had given the CPU away when it was asked, */
    bool ran;                 /* and its answer */
} thread;

/* Whether other threads of this process run or wait for a CPU: kernels on the host device, or the
 * program's own. An answer that is THREADS_NS old will do: it takes some 20 us to find out. */
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

static bool keeps_cpu(uint64_t now)
{
    return regime.keep_ns && !threads_need_cpus(now);
}

/* For how long this wait keeps the CPU. Notices when the system has given the CPU to others. */
static uint64_t keep_for(struct wait *w, uint64_t now)
{
    if (!w->sleeps && now - w->stepped >= PREEMPTED_NS)
        thread.contended_until = now + CONTENDED_NS;
    affinity_separate(job->node, now);
    w->stepped = w->checked == now ? clock_ns() : now; /* the check takes its time */
    return now < thread.contended_until ? KEEP_CONTENDED_NS : regime.keep_ns;
}

static __attribute__((noinline)) void wait_trace(const struct wait *w)
{
    const enum trace_awaited awaited = w->team == WAIT_FOR_NETWORK    ? TRACE_NETWORK
                                       : w->only == WAIT_FOR_UPDATE ? TRACE_VARIABLE
                                                                     : TRACE_PEERS;

    trace_event(TRACE_WAIT, TRACE_NO_OP, w->only >= 0 ? w->only : -1, awaited, trace_name(w->what),
                0);
}

/* Whether it is time to sleep. A yield lets run only threads of the same control group or session:
 * PEs of another container get the CPU when the system takes it from all of these, after 1 to 2 ms.
 * That a yield comes back at once says nothing of them. */
static bool begin_slow_step(struct wait *w, uint64_t now, gshmem_status_t *status)
{
    if (!w->since) { /* the spin is over: from here on time is looked at, and others see the wait */
        w->since = w->checked = w->stepped = now;
        w->served = 0;
        w->reported = false;
        w->record = where_page_claim(job->node, w->what, now, false);
        if (w->record)
            wait_count(w);
        if (trace_is_on() && w->record)
            wait_trace(w);
    }
    if (w->has_served)
        w->served = now;
    w->has_served = false;
    *status = network_wait_check(w, now);
    if (keeps_cpu(now)) {
        const uint64_t keep = keep_for(w, now);
        return now - w->since >= keep && now - w->served >= keep;
    }
    w->stepped = now;
    const uint64_t yield = thread.shares_cpu ? YIELD_SHARED_NS : regime.yield_ns;
    return now - w->since >= yield && now - w->served >= (yield < SERVED_NS ? yield : SERVED_NS);
}

/* Whether a yield that took so many ns has let others run. One that came back at once has not. One
 * that took its time may have been slow only, as system calls are on an emulated processor: where
 * the answer decides about a sleep, the system is asked now and then how often it gave the CPU
 * away. */
static bool others_ran(uint64_t took)
{
    struct rusage usage;

    if (took < YIELD_ALONE_NS || !has_network)
        return took >= YIELD_ALONE_NS;
    if (thread.yields++ % YIELDS_ASKED == 0 && getrusage(RUSAGE_THREAD, &usage) == 0) {
        thread.ran = usage.ru_nivcsw - thread.switches >= YIELDS_ASKED / 2;
        thread.switches = usage.ru_nivcsw;
    }
    return thread.ran;
}

/* A yield that let nobody run only cost time: the next comes some steps later. */
static void wait_let_others_run(uint64_t now)
{
    if (keeps_cpu(now)) {
        thread.steps = regime.steps;
        return;
    }
    affinity_return(now);
    clock_yield();
    bool alone = !others_ran(clock_ns() - now);

    thread.shares_cpu = has_network && !alone;
    thread.steps = alone ? regime.steps : 0;
}

/* A step that may be all there is to do: the network has brought something, or it is too early for
 * a look at the clock. Where something arrives in each step, a look is due all the same: the wait
 * may be for a PE that has failed. */
static bool wait_has_stepped(struct wait *w, gshmem_status_t *status)
{
    *status = GSHMEM_OK;
    if (wait_serve(w)) {
        if (++w->served_steps % SERVED_STEPS == 0)
            begin_slow_step(w, clock_ns(), status);
        return true;
    }
    if (!thread.steps || w->sleeps)
        return false;
    thread.steps--;
    if (regime.keep_ns)
        clock_pause();
    return true;
}

gshmem_status_t wait_slowly_by(struct wait *w, wait_sleep *by, void *context)
{
    gshmem_status_t status;

    if (wait_has_stepped(w, &status))
        return status;
    uint64_t now = clock_ns();
    if (!begin_slow_step(w, now, &status))
        wait_let_others_run(now);
    else if (!status)
        by(context, sleep_ns(w, now));
    return status;
}

gshmem_status_t wait_slowly(struct wait *w)
{
    return wait_slowly_by(w, sleep_for, NULL);
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
    if (!w->has_yielded && !thread.steps) {
        w->has_yielded = true;
        wait_let_others_run(clock_ns());
        return GSHMEM_OK;
    }
    if (wait_has_stepped(w, &status))
        return status;
    uint64_t now = clock_ns();
    if (!begin_slow_step(w, now, &status)) {
        wait_let_others_run(now);
    } else if (!status) {
        /* A dead PE wakes nobody, so sleep no longer than the next look at the peers. */
        struct timespec most = {.tv_nsec = CHECK_NS};
        /* seq_cst: pairs with the fence in wait_wake: either the waker sees this sleeper, or the
         * system sees the new word and does not put it to sleep */
        atomic_fetch_add(sleepers, 1);
        system_futex(word, FUTEX_WAIT, seen, &most);
        atomic_fetch_sub(sleepers, 1);
    }
    return status;
}

gshmem_status_t network_await(const char *call, gshmem_team_t team, uint64_t limit,
                              bool (*done)(void *context), void *context)
{
    gshmem_status_t status = GSHMEM_OK;
    struct wait w;

    wait_begin(&w, call, team);
    w.limit = limit;
    while (!status && !done(context))
        status = wait_slowly(&w);
    wait_end(&w);
    return status;
}

void wait_wake(_Atomic uint32_t *word, _Atomic uint32_t *sleepers)
{
    atomic_thread_fence(memory_order_seq_cst); /* pairs with the increment in wait_step_on */
    if (atomic_load_explicit(sleepers, memory_order_relaxed))
        system_futex(word, FUTEX_WAKE, INT_MAX, NULL);
}
