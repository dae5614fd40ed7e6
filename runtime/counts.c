/* Counts for programs (gshmem/stats.h). */
#include <stdlib.h>
#include <string.h>

#include "gshmem.h"
#include "runtime/base/log.h"
#include "runtime/job/job.h"
#include "runtime/stats/stats.h"

int gshmem_stats_names(void)
{
    return stats_names();
}

const char *gshmem_stats_name(int i)
{
    return stats_name(i);
}

const char *gshmem_stats_text(int i)
{
    return stats_text(i);
}

int gshmem_stats_all(void)
{
    return job && job->stats->wanted;
}

/* A copy of what has been counted, which the caller frees; NULL after a logged failure. */
static struct stats_sums *counts_now(const char *call)
{
    struct stats_sums *sums;

    if (job_require(call))
        return NULL;
    if (!(sums = malloc(stats_sums_bytes(job->n_pes)))) {
        fail(GSHMEM_ERR_MEMORY, "%s: out of memory for the counts of %d PEs", call, job->n_pes);
        return NULL;
    }
    stats_sum(job->stats, sums);
    return sums;
}

gshmem_status_t gshmem_stats_read(uint64_t *values, int n)
{
    const char *call = "gshmem_stats_read";
    struct stats_sums *now;

    if (n < 0 || (n && !values))
        return fail(GSHMEM_ERR_ARGUMENT, "%s: %d values at %p", call, n, (void *)values);
    if (!(now = counts_now(call)))
        return last_error_status();
    for (int i = 0; i < n && i < stats_names(); i++)
        values[i] = stats_named(now, i);
    free(now);
    return GSHMEM_OK;
}

gshmem_status_t gshmem_stats_get(const char *name, uint64_t *value)
{
    const char *call = "gshmem_stats_get";
    struct stats_sums *now;
    int i = 0;

    if (!name || !value)
        return fail(GSHMEM_ERR_ARGUMENT, "%s: %s is NULL", call, name ? "value" : "name");
    while (i < stats_names() && strcmp(stats_name(i), name))
        i++;
    if (i == stats_names())
        return fail(GSHMEM_ERR_ARGUMENT, "%s: there is no count \"%s\"; gshmem_stats_name has all",
                    call, name);
    if (!(now = counts_now(call)))
        return last_error_status();
    *value = stats_named(now, i);
    free(now);
    return GSHMEM_OK;
}

gshmem_status_t gshmem_stats_peer(int pe, gshmem_stats_row_t *row)
{
    const char *call = "gshmem_stats_peer";
    struct stats_sums *now;

    if (!row)
        return fail(GSHMEM_ERR_ARGUMENT, "%s: row is NULL", call);
    if (!(now = counts_now(call)))
        return last_error_status();
    if (pe < -1 || pe >= job->n_pes) {
        free(now);
        return fail(GSHMEM_ERR_ARGUMENT,
                    "%s: PE %d; the job has PEs 0..%d, and -1 stands for several", call, pe,
                    job->n_pes - 1);
    }
    const struct stats_row *of = &now->peer[pe < 0 ? job->n_pes : pe];
    *row = (gshmem_stats_row_t){of->operations, of->bytes, of->ns};
    free(now);
    return GSHMEM_OK;
}

gshmem_status_t gshmem_stats_call(const char *name, uint64_t *calls, uint64_t *ns)
{
    const char *call = "gshmem_stats_call";
    struct stats_sums *now;

    if (!name || !calls || !ns)
        return fail(GSHMEM_ERR_ARGUMENT, "%s: an argument is NULL", call);
    if (!(now = counts_now(call)))
        return last_error_status();
    *calls = *ns = 0;
    for (int i = 0; i < STATS_CALLS && now->call[i][0]; i++) {
        if (strncmp(now->call[i], name, STATS_CALL_BYTES - 1))
            continue;
        *calls = now->value[STATS_COUNTERS_END + i];
        *ns = now->value[STATS_CALLS_NS + i];
    }
    free(now);
    return GSHMEM_OK;
}

gshmem_status_t gshmem_stats_reset(void)
{
    const gshmem_status_t status = job_require("gshmem_stats_reset");

    return status ? status : stats_reset(job->stats);
}
