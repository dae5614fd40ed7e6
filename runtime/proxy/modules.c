/* Modules with device code. Their static constructors register them, before gshmem_init or
 * after. */
#include "runtime/proxy/modules.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "device/device.h"
#include "gshmem.h"
#include "gshmem/stream.h"
#include "runtime/base/log.h"
#include "runtime/job/job.h"
#include "runtime/memory/data.h"

/* Of the process: modules are registered by constructors, before there is a job. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct gshmem_device_module *first;

unsigned modules_count(const char *device)
{
    unsigned n = 0;

    pthread_mutex_lock(&lock);
    for (const struct gshmem_device_module *m = first; m; m = m->next)
        n += strcmp(m->device, device) == 0;
    pthread_mutex_unlock(&lock);
    return n;
}

bool modules_any(const char *device)
{
    return modules_count(device) > 0;
}

gshmem_status_t driver_module_fill(struct gshmem_device_module *m,
                                   const struct gshmem_device_state *state)
{
    struct driver_module *d = (struct driver_module *)m;

    return d->device->ops->copy(d->device, d->state, state, sizeof *state);
}

gshmem_status_t module_fill(struct gshmem_device_module *m, const struct gshmem_device_state *state)
{
    struct job *j = job;
    int error;

    if (j && strcmp(m->device, j->device->ops->name) != 0) {
        log_error(
            "a module has kernels for the %s device, and this job's is %s (GSHMEM_DEVICE): they "
            "find no job",
            m->device, j->device->ops->name);
        return GSHMEM_OK;
    }
    if (!m->fill)
        return driver_module_fill(m, state);
    /* The module copies to the GPU that is current in this thread, which may be any: make it the
     * PE's. */
    gshmem_status_t status = j ? j->device->ops->enter(j->device) : GSHMEM_OK;
    if (status)
        return status;
    error = m->fill(state);
    if (j)
        j->device->ops->leave(j->device);
    if (!error)
        return GSHMEM_OK;
    return fail(GSHMEM_ERR_DEVICE,
                "a module with kernels for the %s device cannot be given the "
                "state of the job: error %d of that device",
                m->device, error);
}

gshmem_status_t modules_fill(const struct gshmem_device_state *state)
{
    gshmem_status_t status = GSHMEM_OK, one;

    pthread_mutex_lock(&lock);
    for (struct gshmem_device_module *m = first; m; m = m->next) {
        if ((one = module_fill(m, state)))
            status = status ? status : one;
    }
    pthread_mutex_unlock(&lock);
    return status;
}

void modules_leave_parent(void)
{
    const struct gshmem_device_state none = {.size = sizeof none,
                                             .version = GSHMEM_DEVICE_STATE_VERSION};

    /* a thread that does not exist in the child may hold it */
    lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    for (struct gshmem_device_module *m = data_is_parents() ? NULL : first; m; m = m->next) {
        if (m->fill && strcmp(m->device, device_host.name) == 0)
            m->fill(&none);
    }
}

static bool modules_fits(const struct gshmem_device_module *m)
{
    if (m->size != sizeof *m || m->version != GSHMEM_DEVICE_STATE_VERSION) {
        log_error("a module with kernels was compiled with version %u of gshmem_device.h, and this "
                  "library has version %u: its kernels find no job; compile it again",
                  m->version, GSHMEM_DEVICE_STATE_VERSION);
        return false;
    }
    return true;
}

bool modules_enter(struct gshmem_device_module *module)
{
    if (!modules_fits(module))
        return false;
    pthread_mutex_lock(&lock);
    module->next = first;
    first = module;
    pthread_mutex_unlock(&lock);
    return true;
}

void gshmem_device_unregister(struct gshmem_device_module *module)
{
    pthread_mutex_lock(&lock);
    for (struct gshmem_device_module **at = &first; *at; at = &(*at)->next) {
        if (*at == module) {
            *at = module->next;
            break;
        }
    }
    pthread_mutex_unlock(&lock);
}

void gshmem_device_without_job(const char *where, int raises)
{
    static _Atomic bool said;

    if (!atomic_exchange_explicit(&said, true, memory_order_relaxed)) {
        if (job_forked)
            job_require(where);
        else
            fail(GSHMEM_ERR_STATE,
                 "%s: a call of GSHMEM in it: call gshmem_init first (or the job has been "
                 "finalized)",
                 where);
    }
    if (raises)
        gshmem_raise(
            fail_silently(GSHMEM_ERR_STATE, "%s: a call of GSHMEM while there is no job", where));
}

void gshmem_device_say_where(const char *where)
{
    static struct log_sparse places;

    if (log_sparse_begin(&places))
        log_error("a call that failed was made in %s", where);
    log_sparse_end(&places, true, NULL);
}
