#define _GNU_SOURCE
#include "runtime/job/job.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct job *job;
bool job_forked;

gshmem_status_t job_require(const char *call)
{
    if (job)
        return GSHMEM_OK;
    if (job_forked)
        return fail(GSHMEM_ERR_STATE, "%s: this process (%d) is a child that a PE has made by fork, and no PE: "
                    "only its parent takes part in the job", call, (int)getpid());
    return fail(GSHMEM_ERR_STATE, "%s: call gshmem_init first (or the job has been finalized)",
                call);
}

static _Thread_local bool ends_process;

void job_end_with_process(struct job *j)
{
    ends_process = true;
    atomic_store_explicit(&j->over, true, memory_order_relaxed);
}

static void stay_unless_it_ends_here(void)
{
    while (!ends_process)
        pause();
}

gshmem_status_t job_stay(const char *call)
{
    stay_unless_it_ends_here();
    return fail(GSHMEM_ERR_STATE, "%s: this process ends, and has left the job", call);
}

static gshmem_status_t runtime_job_fetch(struct job *j, int pe, struct job_blob *blob)
{
    const size_t least = offsetof(struct job_blob, transport);
    struct job_blob got;
    size_t bytes = 0;
    gshmem_status_t status =
        j->bootstrap->ops->fetch(j->bootstrap, pe, &got, sizeof got, &bytes);

    if (status)
        return status;
    if (bytes == 0)
        return fail(GSHMEM_ERR_PEER_DEAD, "start-up: PE %d has failed in gshmem_init; a line of its own says why", pe);
    if (bytes < least || got.transport_bytes > sizeof got.transport ||
        bytes != least + got.transport_bytes)
        return fail(GSHMEM_ERR_BOOTSTRAP,
                    "start-up: PE %d published %zu bytes that this version cannot read; are all PEs "
                    "of the job of one version of GSHMEM?",
                    pe, bytes);
    *blob = got;
    return GSHMEM_OK;
}

gshmem_status_t job_fetch(struct job *j, int pe, struct job_blob *blob)
{
    gshmem_status_t status = GSHMEM_OK;
    struct job_blob *kept;

    if (!job_has_blob(j, pe) || !j->blob) {
        pthread_mutex_lock(&j->fetching);
        if (!j->blob || !job_has_blob(j, pe)) {
            status = runtime_job_fetch(j, pe, blob);
            if (!status && j->blob && (kept = malloc(sizeof *kept))) {
                *kept = *blob;
                /* pairs with job_has_blob */
                atomic_store_explicit(&j->blob[pe], kept, memory_order_release);
            }
            pthread_mutex_unlock(&j->fetching);
            return status;
        }
        pthread_mutex_unlock(&j->fetching);
    }
    *blob = *atomic_load_explicit(&j->blob[pe], memory_order_acquire);
    return GSHMEM_OK;
}

void job_forget_blobs(struct job *j)
{
    for (int pe = 0; j->blob && pe < j->n_pes; pe++)
        free(atomic_load_explicit(&j->blob[pe], memory_order_relaxed));
    free(j->blob);
}

/* Flushes what the program has printed, unless that would have to wait: for another thread that
 * prints, or for a reader. */
static void keep_printed(void)
{
    struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};

    if (poll(&out, 1, 0) != 1 || ftrylockfile(stdout) != 0)
        return;
    fflush_unlocked(stdout);
    funlockfile(stdout);
}

static atomic_bool ending;
static _Thread_local bool ending_here;

void job_begin_to_end(void)
{
    ending_here = true;
    atomic_store(&ending, true);
}

bool job_ends_elsewhere(void)
{
    return atomic_load(&ending) && !ending_here;
}

void job_abort(int exit_status, const char *why)
{
    exit_status = job_exit_code(exit_status);
    if (ending_here) /* a failure while ending ends it at once */
        _exit(exit_status);
    if (job && job_is_over(job))
        stay_unless_it_ends_here();
    job_begin_to_end();
    keep_printed();
    if (job && !job_is_over(job)) {
        node_abort(&job->node, job->pe, exit_status, why);
        /* the first PE that ends the job determines its status */
        node_exit_status(&job->node, &exit_status);
        job->bootstrap->ops->abort(job->bootstrap, exit_status, why);
    }
    _exit(exit_status);
}
