/* gshmem_init and gshmem_finalize, and what becomes of the job in a child of fork. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "bootstrap/bootstrap.h"
#include "gshmem.h"
#include "runtime/base/alike.h"
#include "runtime/base/flush.h"
#include "runtime/base/log.h"
#include "runtime/job/job.h"
#include "runtime/life.h"
#include "runtime/network/answer.h"
#include "runtime/network/network.h"
#include "runtime/races/races.h"
#include "runtime/stats/stats.h"
#include "runtime/teams/context.h"
#include "runtime/trace/trace.h"

/* A child's copy of its parent's job, kept where a leak checker finds it. */
static struct job *volatile parents_job;
static struct bootstrap *volatile parents_starter;

/* A child has its parent's memory, sockets and epoll sets, but not its threads, nor its part in the
 * job. From now on it has no job, so that every call is refused, and nothing of the parent's is
 * changed. */
static void init_leave_parent(void)
{
    /* a thread that does not exist in the child may hold it */
    job_life = (pthread_mutex_t)PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
    if (!job && !life.starter)
        return;
    if (job) {
        context_leave_parent(job);
        network_leave_parent(job);
        trace_leave_parent();
        stats_leave_parent(job->stats);
        answer_leave_parent(job);
        races_leave_parent();
    }
    parents_job = job;
    parents_starter = life.starter;
    job = NULL;
    life.starter = NULL;
    job_depth = 0;
    job_forked = true;
    log_identify(-1);
}

static void init_watch_forks(void)
{
    pthread_atfork(NULL, NULL, init_leave_parent);
}

static gshmem_status_t check_attr(const gshmem_init_attr_t *attr)
{
    if (!attr)
        return fail(GSHMEM_ERR_ARGUMENT, "gshmem_init_attr: attr is NULL");
    if (attr->thread_level < GSHMEM_THREAD_SINGLE || attr->thread_level > GSHMEM_THREAD_MULTIPLE)
        return fail(GSHMEM_ERR_ARGUMENT, "gshmem_init: thread level %d is not one of %d..%d",
                    attr->thread_level, GSHMEM_THREAD_SINGLE, GSHMEM_THREAD_MULTIPLE);
    if (attr->mpi_comm && attr->uid)
        return fail(GSHMEM_ERR_ARGUMENT,
                    "gshmem_init_attr: give mpi_comm or uid, not both: each names the job");
    if (attr->uid && (attr->n_pes < 1 || attr->pe < 0 || attr->pe >= attr->n_pes))
        return fail(GSHMEM_ERR_ARGUMENT, "gshmem_init_attr: pe %d of n_pes %d does not exist",
                    attr->pe, attr->n_pes);
    return GSHMEM_OK;
}

gshmem_status_t gshmem_init_attr(const gshmem_init_attr_t *attr)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    gshmem_status_t status = job_forked ? job_require("gshmem_init") : check_attr(attr);

    if (status || (status = layout_check()))
        return status;
    pthread_once(&once, init_watch_forks);
    pthread_mutex_lock(&job_life);
    if (job && job_is_over(job)) {
        status = job_stay("gshmem_init");
    } else if (job_depth == 0) {
        life.owner = getpid();
        life.starting_first = !life.registered && on_exit(life_at_early_exit, NULL) == 0;
        log_starts(true);
        status = life_start(attr);
        log_starts(false);
        if (status)
            alike_linger();
        if (!life.registered)
            life.registered = on_exit(life_at_exit, NULL) == 0;
        life.starting_first = false;
    }
    if (!status)
        job_depth++;
    pthread_mutex_unlock(&job_life);
    return status;
}

gshmem_status_t gshmem_init_thread(int requested, int *provided)
{
    gshmem_init_attr_t attr = {.thread_level = requested};
    gshmem_status_t status = gshmem_init_attr(&attr);

    if (!status && provided)
        *provided = gshmem_query_thread();
    return status;
}

gshmem_status_t gshmem_init(void)
{
    return gshmem_init_thread(GSHMEM_THREAD_SINGLE, NULL);
}

gshmem_status_t gshmem_finalize(void)
{
    gshmem_status_t status = GSHMEM_OK;

    pthread_mutex_lock(&job_life);
    if (job_depth == 0 && life.ended_at_exit > 0) {
        life.ended_at_exit--;
        status = life.status_at_exit;
    } else if (job_depth == 0) {
        status = job_require("gshmem_finalize");
    } else if (--job_depth == 0) {
        status = life_stop(LEFT_BY_FINALIZE);
    }
    pthread_mutex_unlock(&job_life);
    return status;
}

int gshmem_initialized(void)
{
    return job && !job_is_over(job);
}

int gshmem_query_thread(void)
{
    return job ? job->thread_level : GSHMEM_THREAD_SINGLE;
}

void gshmem_global_exit(int status)
{
    char why[64];

    flush_all();
    snprintf(why, sizeof why, "gshmem_global_exit(%d)", status);
    job_abort(life_exit_status(status), why);
}
