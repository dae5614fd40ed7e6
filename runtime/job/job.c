#define _GNU_SOURCE
#include "runtime/job/job.h"

#include <unistd.h>

#include "runtime/base/flush.h"
#include "runtime/base/log.h"
#include "runtime/base/unseen.h"
#include "runtime/job/thread.h"

struct job *job;
_Thread_local struct thread this_thread;

/* These are the process's, and asked for where there is no job. */
bool job_forked;
pthread_mutex_t job_life = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
int job_depth;

struct job *job_hold(void)
{
    pthread_mutex_lock(&job_life);
    return job_depth > 0 ? job : NULL;
}

void job_let_go(void)
{
    pthread_mutex_unlock(&job_life);
}

gshmem_status_t job_require(const char *call)
{
    if (job)
        return GSHMEM_OK;
    if (job_forked)
        return fail(GSHMEM_ERR_STATE,
                    "%s: this process (%d) is a child that a PE has made by fork, and no PE: "
                    "only its parent takes part in the job",
                    call, (int)getpid());
    return fail(GSHMEM_ERR_STATE, "%s: call gshmem_init first (or the job has been finalized)",
                call);
}

void job_end_with_process(struct job *j)
{
    this_thread.ends_process = true;
    atomic_store_explicit(&j->over, true, memory_order_relaxed);
}

static void stay_unless_it_ends_here(void)
{
    while (!this_thread.ends_process)
        pause();
}

gshmem_status_t job_stay(const char *call)
{
    stay_unless_it_ends_here();
    return fail(GSHMEM_ERR_STATE, "%s: this process ends, and has left the job", call);
}

static atomic_bool ending; /* the process ends, and with it whatever job it has */

void job_begin_to_end(void)
{
    this_thread.ending = true;
    atomic_store(&ending, true);
}

bool job_ends_elsewhere(void)
{
    return atomic_load(&ending) && !this_thread.ending;
}

/* Called from within a failure, where locks of the library may be held: the other PEs of this node
 * see the end, and the launcher sees the exit status. A failure that follows from another PE's end
 * of the job is not its first. */
static void end_strictly(const char *line)
{
    int status = 1;

    if (!job || this_thread.ending || job_is_over(job))
        return;
    const bool follows = job->has_ended(job, &status);
    job_begin_to_end();
    flush_printed();
    if (!follows) {
        log_error("GSHMEM_CHECK=strict: the job ends at its first failed call: %s", line);
        job->end_node(job, status, line);
    }
    _exit(status);
}

void error_be_strict(bool strict)
{
    unseen_set_hook(strict ? end_strictly : NULL);
}

void job_abort(int exit_status, const char *why)
{
    exit_status = job_exit_code(exit_status);
    if (this_thread.ending) /* a failure while ending ends it at once */
        _exit(exit_status);
    if (job && job_is_over(job))
        stay_unless_it_ends_here();
    job_begin_to_end();
    flush_printed();
    if (job && !job_is_over(job))
        job->abort(job, &exit_status, why);
    _exit(exit_status);
}
