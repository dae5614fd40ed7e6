/* Started from an MPI communicator that the program gives to gshmem_init_attr: its ranks are the
 * PEs.
 *
 * A module, built once for each of the two families of MPI libraries without their headers (abi.h),
 * and opened for the MPI that is in the process. All it does goes over a duplicate of the
 * communicator, by calls that do not block, so that a rank which does not come costs the others
 * GSHMEM_INIT_TIMEOUT and no more. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bootstrap/bootstrap.h"
#include "bootstrap/mpi/abi.h"
#include "bootstrap/nodes.h"
#include "gshmem/base.h"

/* The module. */
GSHMEM_API extern const struct bootstrap_ops gshmem_bootstrap;

struct record {
    uint32_t bytes;
    unsigned char blob[BOOTSTRAP_BLOB_MAX];
};

enum { MPI_SUCCESS = 0 };

static struct mpi_abi mpi; /* the library's, and so the process's */

struct mpi {
    struct bootstrap base;
    struct bootstrap_request core; /* what the core lends: fail, info, the timeout */
    mpi_handle comm;               /* a duplicate; MPI_COMM_NULL until it is made */
    struct record mine;
    struct record *all; /* [n_pes] */
    int *node;
    /* a call that was given up may still write into this, and use the communicator */
    int abandoned;
};

static gshmem_status_t mpi_failed(const struct mpi *m, const char *call, int error)
{
    char text[ABI_ERROR_STRING] = "";
    int length;

    mpi.Error_string(error, text, &length);
    return m->core.fail(GSHMEM_ERR_BOOTSTRAP, "MPI: %s: %s", call, text);
}

/* Waits for a collective, at most the timeout; MPI itself would wait for ever. Where it fails
 * the request goes on, and its buffers stay as they are for as long as the process lives. */
static gshmem_status_t mpi_await(struct mpi *m, mpi_handle *request, const char *call)
{
    struct timespec now, pause = {.tv_nsec = 50000};
    time_t end = 0;

    for (int tries = 0;; tries++) {
        int done = 0, error = mpi.Test(request, &done, mpi.status_ignore);
        m->abandoned = !done;
        if (error == MPI_SUCCESS && done)
            return GSHMEM_OK;
        if (error != MPI_SUCCESS)
            return mpi_failed(m, call, error);
        clock_gettime(CLOCK_MONOTONIC, &now);
        if (tries == 0)
            end = now.tv_sec + m->core.timeout_seconds;
        if (now.tv_sec > end)
            return m->core.fail(GSHMEM_ERR_TIMEOUT,
                                "MPI: %s: not all ranks came within %d s (GSHMEM_INIT_TIMEOUT)",
                                call, m->core.timeout_seconds);
        if (tries > 1000)
            nanosleep(&pause, NULL);
    }
}

/* ---- Rounds ---- */

static gshmem_status_t mpi_publish(struct bootstrap *b, const void *blob, size_t bytes)
{
    struct mpi *m = (struct mpi *)b;

    if (bytes > BOOTSTRAP_BLOB_MAX)
        return m->core.fail(GSHMEM_ERR_ARGUMENT, "MPI: a blob of %zu bytes; at most %d", bytes,
                            BOOTSTRAP_BLOB_MAX);
    m->mine.bytes = (uint32_t)bytes;
    memcpy(m->mine.blob, blob, bytes);
    return GSHMEM_OK;
}

static gshmem_status_t mpi_fence(struct bootstrap *b)
{
    struct mpi *m = (struct mpi *)b;
    mpi_handle request;
    int error = mpi.Iallgather(&m->mine, sizeof m->mine, mpi.byte, m->all, sizeof m->mine, mpi.byte,
                               m->comm, &request);

    if (error != MPI_SUCCESS)
        return mpi_failed(m, "MPI_Iallgather", error);
    return mpi_await(m, &request, "MPI_Iallgather");
}

static gshmem_status_t mpi_fetch(struct bootstrap *b, int pe, void *blob, size_t capacity,
                                 size_t *bytes)
{
    struct mpi *m = (struct mpi *)b;

    if (pe < 0 || pe >= b->n_pes)
        return m->core.fail(GSHMEM_ERR_ARGUMENT, "MPI: the blob of PE %d; the job has PEs 0..%d",
                            pe, b->n_pes - 1);
    if (m->all[pe].bytes > capacity)
        return m->core.fail(GSHMEM_ERR_ARGUMENT,
                            "MPI: the blob of PE %d has %u bytes, room is for %zu", pe,
                            m->all[pe].bytes, capacity);
    memcpy(blob, m->all[pe].blob, m->all[pe].bytes);
    *bytes = m->all[pe].bytes;
    return GSHMEM_OK;
}

/* ---- Opening and closing ---- */

static enum bootstrap_found mpi_detect(const struct bootstrap_request *request, char *why,
                                       size_t why_size)
{
    int begun = 0, ended = 0;

    if (!request->mpi_comm) {
        snprintf(why, why_size, "no MPI communicator was given to gshmem_init_attr");
        return BOOTSTRAP_ABSENT;
    }
    const char *missing = abi_fill(&mpi);
    if (missing) {
        snprintf(why, why_size, "an MPI communicator was given, but this MPI has no %s", missing);
        return BOOTSTRAP_BROKEN;
    }
    mpi.Initialized(&begun);
    mpi.Finalized(&ended);
    if (!begun || ended) {
        snprintf(why, why_size, "an MPI communicator was given, but %s",
                 ended ? "MPI_Finalize was called before" : "MPI_Init was not called before");
        return BOOTSTRAP_BROKEN;
    }
    snprintf(why, why_size, "an MPI communicator was given to gshmem_init_attr");
    return BOOTSTRAP_PRESENT;
}

static gshmem_status_t mpi_find_nodes(struct mpi *m)
{
    gshmem_status_t status = GSHMEM_OK;

    m->base.n_hosts = nodes_by_exchange(&m->base, m->node, &status);
    return m->base.n_hosts
               ? status
               : m->core.fail(GSHMEM_ERR_MEMORY, "MPI: out of memory for %d PEs", m->base.n_pes);
}

static gshmem_status_t mpi_join(struct mpi *m)
{
    mpi_handle request;
    mpi_handle given;
    int error, inter = 0;

    memcpy(&given, m->core.mpi_comm, sizeof given);
    if (given == mpi.comm_null)
        return m->core.fail(GSHMEM_ERR_ARGUMENT, "MPI: the communicator is MPI_COMM_NULL");
    mpi.Comm_test_inter(given, &inter);
    if (inter)
        return m->core.fail(
            GSHMEM_ERR_ARGUMENT,
            "MPI: the communicator is an inter-communicator, whose ranks are of two "
            "groups: make one of both by MPI_Intercomm_merge");
    mpi.Comm_rank(given, &m->base.pe);
    mpi.Comm_size(given, &m->base.n_pes);
    m->node = calloc((size_t)m->base.n_pes, sizeof *m->node);
    m->all = calloc((size_t)m->base.n_pes, sizeof *m->all);
    m->base.host = m->node;
    if (!m->node || !m->all)
        return m->core.fail(GSHMEM_ERR_MEMORY, "MPI: out of memory for %d PEs", m->base.n_pes);
    if ((error = mpi.Comm_idup(given, &m->comm, &request)) != MPI_SUCCESS)
        return mpi_failed(m, "MPI_Comm_idup", error);
    gshmem_status_t status = mpi_await(m, &request, "MPI_Comm_idup");
    if (status)
        return status;
    mpi.Comm_set_errhandler(m->comm, mpi.errors_return);
    return mpi_find_nodes(m);
}

static void mpi_close(struct bootstrap *b)
{
    struct mpi *m = (struct mpi *)b;
    int ended = 0;

    if (m->abandoned)
        return;
    mpi.Finalized(&ended);
    if (!ended && m->comm != mpi.comm_null)
        mpi.Comm_free(&m->comm);
    free(m->node);
    free(m->all);
    free(m);
}

static gshmem_status_t mpi_open(const struct bootstrap_request *request, struct bootstrap **out)
{
    struct mpi *m = calloc(1, sizeof *m);

    if (!m)
        return request->fail(GSHMEM_ERR_MEMORY, "start-up: out of memory");
    m->base.ops = &gshmem_bootstrap;
    m->core = *request;
    m->comm = mpi.comm_null;
    gshmem_status_t status = mpi_join(m);
    if (status) {
        mpi_close(&m->base);
        return status;
    }
    snprintf(m->base.job, sizeof m->base.job, "mpi");
    *out = &m->base;
    return GSHMEM_OK;
}

static void mpi_abort(struct bootstrap *b, int status, const char *why)
{
    struct mpi *m = (struct mpi *)b;
    int ended = 0;

    (void)why; /* it has been logged */
    mpi.Finalized(&ended);
    if (!ended)
        mpi.Abort(m->comm, status);
}

const struct bootstrap_ops gshmem_bootstrap = {
    .size = sizeof(struct bootstrap_ops),
    .version = BOOTSTRAP_VERSION,
    .name = "mpi",
    .detect = mpi_detect,
    .open = mpi_open,
    .publish = mpi_publish,
    .fence = mpi_fence,
    .fetch = mpi_fetch,
    .abort = mpi_abort,
    .close = mpi_close,
};
