/* NVSHMEM's regions on the host: a session of the default context, of which a PE has one at a
 * time. */
#include <pthread.h>

#include "gshmem.h"
#include "runtime/base/log.h"
#include "runtime/job/job.h"

enum { BATCH_RMA = 1, ALL_HINTS = BATCH_RMA }; /* NVSHMEMX_REGION_HINT_BATCH_RMA */

static uint64_t last_handle; /* under the job's lock; handles of an earlier job are none of a later
                                one */

static gshmem_status_t check_hints(uint32_t hints, const void *result, const char *call)
{
    if (hints & ~(uint32_t)ALL_HINTS)
        return fail(GSHMEM_ERR_ARGUMENT, "%s: hints are %#x; the only one is %#x", call, hints,
                    (unsigned)ALL_HINTS);
    if (!result)
        return fail(GSHMEM_ERR_ARGUMENT, "%s: the place for the result is NULL", call);
    return GSHMEM_OK;
}

gshmem_status_t gshmem_path_region_start(uint32_t hints, uint64_t *handle)
{
    static const char call[] = "nvshmemx_region_start";
    gshmem_status_t status = job_require(call);

    if (status || (status = check_hints(hints, handle, call)))
        return status;
    pthread_mutex_lock(&job->lock);
    const uint64_t running = job->region.handle;
    if (!running) {
        job->region.handle = *handle = ++last_handle;
        job->region.hints = hints;
    }
    pthread_mutex_unlock(&job->lock);
    if (running)
        return fail(GSHMEM_ERR_ARGUMENT, "%s: region %llu has not ended", call,
                    (unsigned long long)running);
    if (hints & BATCH_RMA)
        gshmem_ctx_session_start(GSHMEM_CTX_DEFAULT, 0);
    return GSHMEM_OK;
}

gshmem_status_t gshmem_path_region_stop(uint64_t handle)
{
    static const char call[] = "nvshmemx_region_stop";
    gshmem_status_t status = job_require(call);

    if (status)
        return status;
    pthread_mutex_lock(&job->lock);
    const uint64_t running = job->region.handle;
    const uint32_t hints = job->region.hints;
    if (running && running == handle)
        job->region.handle = 0;
    pthread_mutex_unlock(&job->lock);
    if (!running || running != handle)
        return fail(GSHMEM_ERR_ARGUMENT, "%s: region %llu does not run", call,
                    (unsigned long long)handle);
    if (hints & BATCH_RMA)
        gshmem_ctx_session_stop(GSHMEM_CTX_DEFAULT);
    return GSHMEM_OK;
}

gshmem_status_t gshmem_path_region_is_active(uint32_t hints, int *active)
{
    static const char call[] = "nvshmemx_region_is_active";
    gshmem_status_t status = job_require(call);

    if (status || (status = check_hints(hints, active, call)))
        return status;
    pthread_mutex_lock(&job->lock);
    *active = job->region.handle && (job->region.hints & hints) == hints;
    pthread_mutex_unlock(&job->lock);
    return GSHMEM_OK;
}
