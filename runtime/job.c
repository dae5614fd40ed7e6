#define _GNU_SOURCE
#include "runtime/job.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct job *job;

gshmem_status_t job_require(const char *call)
{
    if (job)
        return GSHMEM_OK;
    return fail(GSHMEM_ERR_STATE, "%s: call gshmem_init first (or the job has been finalized)",
                call);
}

gshmem_status_t job_fetch(struct job *j, int pe, struct job_blob *blob)
{
    const size_t least = offsetof(struct job_blob, transport);
    struct job_blob got;
    size_t bytes = 0;
    gshmem_status_t status =
        j->bootstrap->ops->fetch(j->bootstrap, pe, &got, sizeof got, &bytes);

    if (status)
        return status;
    if (bytes < least || got.transport_bytes > sizeof got.transport ||
        bytes != least + got.transport_bytes)
        return fail(GSHMEM_ERR_BOOTSTRAP,
                    "start-up: PE %d published %zu bytes that this version cannot read; are all PEs "
                    "of the job of one version of GSHMEM?",
                    pe, bytes);
    *blob = got;
    return GSHMEM_OK;
}

static bool same_program(const struct job *j, int index)
{
    const struct host_member *mine = &j->host.control->member[j->host.index];
    const struct host_member *theirs = &j->host.control->member[index];

    return mine->data_segments == theirs->data_segments && mine->data_digest == theirs->data_digest;
}

gshmem_status_t job_map_peers(struct job *j)
{
    const struct host *host = &j->host;
    size_t n = (size_t)j->n_pes;

    j->heap_peer = calloc(n, sizeof *j->heap_peer);
    j->data_peer = calloc(n, sizeof *j->data_peer);
    j->system_peer = calloc(n, sizeof *j->system_peer);
    if (!j->heap_peer || !j->data_peer || !j->system_peer)
        return fail(GSHMEM_ERR_MEMORY, "start-up: out of memory for %d PEs", j->n_pes);
    for (int i = 0; i < host->n; i++) {
        uintptr_t arena = (uintptr_t)host->arena;
        j->system_peer[host->pe[i]] = arena + host_system_offset(&host->layout, i);
        j->heap_peer[host->pe[i]] = arena + host_heap_offset(&host->layout, i);
        if (j->data.n && same_program(j, i))
            j->data_peer[host->pe[i]] = arena + host_data_offset(&host->layout, i);
    }
    /* The data part of a slot begins with the executable's segment; mine is also where it always was. */
    if (j->data.n)
        j->data_peer[j->pe] = j->data.segment[0].base;
    return GSHMEM_OK;
}

/* What the program has printed, unless that would have to wait: for another thread that prints, or
 * for somebody to read. */
static void keep_printed(void)
{
    struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};

    if (poll(&out, 1, 0) != 1 || ftrylockfile(stdout) != 0)
        return;
    fflush_unlocked(stdout);
    funlockfile(stdout);
}

void job_abort(int exit_status, const char *why)
{
    static _Thread_local bool ending;

    if (job && !ending) {
        ending = true; /* a failure while ending ends it at once */
        keep_printed();
        host_abort(&job->host, job->pe, exit_status, why);
        host_exit_status(&job->host, &exit_status); /* the first to end the job gives its status */
        job->bootstrap->ops->abort(job->bootstrap, exit_status, why);
    }
    _exit(exit_status);
}
