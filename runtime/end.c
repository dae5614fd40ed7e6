/* The end of a job: by gshmem_finalize, by the end of the process, in order or not. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "bootstrap/bootstrap.h"
#include "device/device.h"
#include "gshmem.h"
#include "runtime/base/clock.h"
#include "runtime/base/flush.h"
#include "runtime/base/log.h"
#include "runtime/base/settings.h"
#include "runtime/base/unseen.h"
#include "runtime/collectives/collectives.h"
#include "runtime/job/extensions.h"
#include "runtime/job/job.h"
#include "runtime/job/thread.h"
#include "runtime/life.h"
#include "runtime/memory/checked.h"
#include "runtime/memory/device_heap.h"
#include "runtime/network/answer.h"
#include "runtime/network/blobs.h"
#include "runtime/network/network.h"
#include "runtime/node/kept.h"
#include "runtime/node/node.h"
#include "runtime/proxy/kernels.h"
#include "runtime/races/races.h"
#include "runtime/stats/stats.h"
#include "runtime/streams/stream.h"
#include "runtime/teams/context.h"
#include "runtime/teams/departures.h"
#include "runtime/teams/group.h"
#include "runtime/teams/internode.h"
#include "runtime/teams/team.h"
#include "runtime/trace/trace.h"

/* A PE that waits for this one in another call reports that, and ends the job. A launcher that saw
 * this PE fail first would end the job without that line. */
static void let_others_say(const struct job *j)
{
    int status;

    for (int i = 0; i < 500 && !node_exit_status(j->node, &status); i++)
        clock_sleep(2 * CLOCK_MS);
}

/* Makes sure that what this PE has sent in successful rounds arrives before the news that it has
 * failed, which goes another way. */
static void let_words_arrive(const struct job *j)
{
    bool arrived = false;

    for (int i = 0; i < 2000 && !arrived; i++) {
        arrived = true;
        TEAM_FOR_ALL (j, t)
            arrived &= !j->team[t] || !j->team[t]->group->internode ||
                       internode_has_sent(j->team[t]->group);
        if (!arrived)
            clock_sleep(CLOCK_MS);
    }
}

/* Ends this PE's part in the job: after this no other PE accesses its memory, nor does it access
 * theirs. */
static gshmem_status_t leave_in_order(struct job *j, enum departure_way way)
{
    /* where the process ends, kernels are left to themselves: they may wait for what never comes */
    gshmem_status_t status = streams_drain(way == LEFT_BY_FINALIZE),
                    met = context_quiet_all(j, "gshmem_finalize"), differed = GSHMEM_OK;

    status = status ? status : met;
    network_expect_end(j->network);
    counts_show(j);
    met = collective_finalize(j, "gshmem_finalize", way, &differed);
    if (!met && j->stats->gathers) {
        counts_report_job(j);
        met = collective_finalize(j, "gshmem_finalize", way, &differed);
    }
    if (met == GSHMEM_ERR_MISMATCH)
        let_others_say(j);
    if (met) { /* it has not synchronized with the others, and they must not wait for it */
        let_words_arrive(j);
        network_fail(j);
        node_fail(j->node, j->pe);
    }
    counts_report_own(j);
    status = status ? status : met;
    status = status ? status : differed;
    kernels_retire(j);
    if (j->device_heap) {
        /* Memory that others still map must not be released, as CUDA IPC requires. */
        device_heap_leave(j);
        met = collective_finalize(j, "gshmem_finalize", way, &differed);
        status = status ? status : met;
    }
    return status;
}

static gshmem_status_t leave_job(struct job *j, enum departure_way way)
{
    this_thread.leaves = true;
    const gshmem_status_t status = leave_in_order(j, way);
    this_thread.leaves = false;
    return status;
}

/* Another thread is ending this process, with a status of its own, and uses the job until then. */
static void stay_where_it_ends_elsewhere(void)
{
    if (!job_ends_elsewhere())
        return;
    pthread_mutex_unlock(&job_life); /* handlers of the program, which run in that thread, may need
                                         it */
    for (;;)
        pause();
}

static bool unseen_are_ignored(void)
{
    return settings_number(SETTING_UNSEEN) == CHOICE_UNSEEN_IGNORE;
}

/* The failures that nobody has looked at and no such line has reported, in one line. */
static void say_unseen(void)
{
    char first[300];
    const unsigned n = unseen_report(first, sizeof first);

    if (n && !unseen_are_ignored())
        log_error("%u failed call%s that nobody looked at: the exit status becomes 1 where it "
                  "would be 0 (GSHMEM_UNSEEN)%s%s",
                  n, n == 1 ? "" : "s", first[0] ? "; the first: " : "", first);
}

/* Whether failures that nobody has looked at change this exit status; they have a line then. */
static bool ends_unseen(int status)
{
    const bool unseen = status == 0 && !unseen_are_ignored() && unseen_count() > 0;

    if (unseen)
        say_unseen();
    return unseen;
}

int life_exit_status(int status)
{
    return ends_unseen(status) ? 1 : status;
}

static void init_end_job(struct job *j)
{
    struct bootstrap *b = j->bootstrap;

    stay_where_it_ends_elsewhere();
    checked_review(j->checked, "gshmem_finalize");
    races_conclude(j);
    kept_copy();
    say_unseen();
    node_exit_status(j->node, &life.given_status);
    answer_stop(j);
    network_stop(j); /* before the contexts: operations that could not be completed end in them */
    context_stop(j);
    races_close(j);
    job = NULL;
    life_free_job(j);
    life_let_go_of_starter(b);
    log_identify(-1);
}

/* The same for a process that ends while threads may be in the library: what they use stays mapped,
 * until the process is gone. */
static void end_job_but_for_threads(struct job *j)
{
    checked_review(j->checked, "gshmem_finalize");
    races_conclude(j);
    say_unseen();
    answer_stop(j); /* it reads what rests from here on */
    network_rest(j);
    trace_end();
    node_leave(j->node);
    pthread_mutex_lock(&j->blobs->fetching); /* no thread asks the bootstrap any more */
    job_end_with_process(j);
    life_let_go_of_starter(j->bootstrap);
}

gshmem_status_t life_stop(enum departure_way way)
{
    struct job *j = job;
    gshmem_status_t status = leave_job(j, way);

    init_end_job(j);
    return status;
}

void *gshmem_path_keep(void *at, size_t bytes, int now)
{
    return kept_add(at, bytes, now);
}

void gshmem_path_let_go(void *kept)
{
    kept_remove(kept);
}

/* Ends the job, because this process ends without having left it. */
static void leave_badly(int status, const char *why)
{
    job_begin_to_end();
    log_error("%s", why);
    node_abort(job->node, job->pe, job_exit_code(status), why);
    job->bootstrap->ops->abort(job->bootstrap, job_exit_code(status), why);
}

static void exit_at_once(int status)
{
    flush_all();
    _exit(status);
}

/* Another PE of this node has ended the job with that status. It may not have told the launcher
 * yet, which takes a PE that leaves the job with 0 for a failure. b: NULL if there is none left. */
static void exit_as_given(struct bootstrap *b, int status)
{
    if (b && status == 0) {
        flush_all(); /* the launcher may end this process at once */
        b->ops->abort(b, status, "another PE has ended the job");
    }
    exit_at_once(status);
}

/* The host device's, which are threads of this process, and for which the program need not wait. */
static bool may_run_kernels(const struct job *j)
{
    return j->kernels && j->device->ops == &device_host;
}

/* Whether main has returned or the program has called exit: found from the caller of the function
 * exit, which runs this. */
static enum departure_way init_find_way(void)
{
    void *frame[16];
    int n = backtrace(frame, 16);
    Dl_info libc, caller;

    if (!dladdr((void *)(uintptr_t)exit, &libc))
        return LEFT_BY_END;
    for (int i = n - 1; i > 0; i--) {
        /* -1: the call may be the last instruction of that function */
        if (dladdr((char *)frame[i] - 1, &caller) && caller.dli_saddr == libc.dli_saddr)
            return i + 1 < n && dladdr(frame[i + 1], &caller) && caller.dli_fbase != libc.dli_fbase
                       ? LEFT_BY_EXIT
                       : LEFT_BY_RETURN;
    }
    return LEFT_BY_END;
}

/* A process cannot leave the job in good order from within a call in which others wait: an exit
 * from a signal handler, or from another thread. The call that is in progress, as a sentence;
 * false: it can leave. */
static bool in_the_middle(struct job *j, char *why, size_t size)
{
    const char *call = job_depth == 0 ? "gshmem_init or gshmem_finalize" : NULL;

    for (int i = team_next(j, 0); i >= 0 && !call; i = team_next(j, i + 1)) {
        const struct group *g = j->team[i] ? j->team[i]->group : NULL;
        call = g ? group_under_way(g) : NULL;
        if (g && !call && g->internode) /* the PEs of a node have rounds of their own, too */
            call = group_under_way(internode_neighbours(g));
    }
    if (!call && (!network_can_enter(j) || !blobs_can_fetch(j->blobs)))
        call = "a call that uses the network";
    if (call)
        snprintf(why, size, "PE %d exited in the middle of %s", j->pe, call);
    return call != NULL;
}

/* A program that returns from main has finished in good order. One that exits with a failure has
 * not: its peers must not wait for it, nor it for another thread that is in gshmem_init. */
void life_at_exit(int status, void *unused)
{
    gshmem_status_t end = GSHMEM_OK;
    char why[120];

    (void)unused;
    if (getpid() != life.owner)
        return;
    if (status != 0 && job) {
        if (node_exit_status(job->node, &status))
            exit_as_given(job->bootstrap, status);
        snprintf(why, sizeof why, "PE %d exited with status %d before gshmem_finalize", job->pe,
                 status);
        leave_badly(status, why);
        if (!(status & 0xff)) /* the system would make 0 of it */
            exit_at_once(job_exit_code(status));
        return;
    }
    pthread_mutex_lock(&job_life); /* another thread may be in gshmem_init or gshmem_finalize */
    /* the job has been ended with a status, which does not change any more */
    if (job && node_exit_status(job->node, &status))
        exit_as_given(job->bootstrap, status);
    /* also where the job was finalized after that, and main ignores it */
    if (!job && status == 0 && life.given_status >= 0)
        exit_as_given(life.starter, life.given_status);
    if (job && in_the_middle(job, why, sizeof why)) {
        leave_badly(1, why);
        exit_at_once(1);
    }
    if (job) {
        end = leave_job(job, init_find_way());
        if (job->thread_level == GSHMEM_THREAD_MULTIPLE || may_run_kernels(job))
            end_job_but_for_threads(job);
        else
            init_end_job(job);
    }
    if (life.starter)
        life.starter->ops->close(life.starter);
    life.starter = NULL;
    /* Handlers and destructors that were registered before gshmem_init run after this, and may
     * finalize. */
    const bool unseen = ends_unseen(status); /* the end of the job has found some, perhaps */
    life.ended_at_exit = job_depth;
    life.status_at_exit = end;
    job_depth = 0;
    life.registered = false;
    pthread_mutex_unlock(&job_life);
    /* This PE's messages to a failed one may not have arrived, or another PE waits for this one
     * elsewhere, and no caller gets the status. */
    if (end == GSHMEM_ERR_PEER_DEAD || end == GSHMEM_ERR_MISMATCH)
        exit_at_once(1);
    /* Within a handler of exit: the handlers that are left run, and the status is the new one. */
    if (unseen)
        exit(1);
}

/* Runs after all other handlers: these may have made calls when there was no job any more. */
static void at_last_exit(int status, void *unused)
{
    (void)unused;
    if (getpid() == life.owner && ends_unseen(status))
        exit(1);
}

__attribute__((constructor)) static void register_last_exit(void)
{
    (void)!on_exit(at_last_exit, NULL); /* without it only failures in such handlers are not seen */
}

/* at_exit itself is registered after all handlers that a start registers, a driver's among them,
 * and so runs before them. */
void life_at_early_exit(int status, void *unused)
{
    if (life.starting_first)
        life_at_exit(status, unused);
}
