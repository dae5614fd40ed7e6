#include "runtime/collectives/device.h"

#include <time.h>

#include "device/device.h"
#include "runtime/base/log.h"
#include "runtime/job/job.h"
#include "runtime/network/wait.h"
#include "runtime/teams/team.h"

/* A kernel that cannot continue ends when the proxy sets the failure word. The call waits until
 * then, since the kernel may still write to the call's objects. */
static void wait_for_end(void *errand, gshmem_status_t *status)
{
    while (!job->device->ops->request_done(job->device, errand, status))
        clock_sleep(CLOCK_MS / 10);
}

gshmem_status_t device_collective(const char *call, const struct device_request *r)
{
    const struct device_ops *ops = job->device->ops;
    gshmem_status_t status, waited = GSHMEM_OK;
    struct wait w;
    void *errand;

    if (!team_find(r->team, call))
        return last_error_status();
    if ((status = ops->request_start(job->device, r, &errand)))
        return status;
    wait_begin(&w, call, r->team);
    while (!ops->request_done(job->device, errand, &status)) {
        if (!(waited = wait_step(&w)))
            continue;
        wait_for_end(errand, &status);
        break;
    }
    wait_end(&w);
    return status && waited ? waited : status;
}
