/* Modules with kernels that the program loads by the driver: they have no constructor that
 * registers them, and the device finds where their state is. */
#include <pthread.h>
#include <stdlib.h>

#include "device/device.h"
#include "gshmem/stream.h"
#include "runtime/base/log.h"
#include "runtime/job/job.h"
#include "runtime/proxy/kernels.h"
#include "runtime/proxy/modules.h"

/* Of the process, as the other modules are: modules.c. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct driver_module *first;

/* Removes it from the list; NULL: it is not known. handle NULL: the first one. */
static struct driver_module *driver_modules_take(const void *handle)
{
    struct driver_module *found = NULL;

    pthread_mutex_lock(&lock);
    for (struct driver_module **at = &first; *at && !found; at = &(*at)->next) {
        if (handle && (*at)->handle != handle)
            continue;
        found = *at;
        *at = found->next;
        break;
    }
    pthread_mutex_unlock(&lock);
    return found;
}

static void proxy_driver_modules_forget(struct driver_module *d)
{
    gshmem_device_unregister(&d->module);
    free(d);
}

void driver_modules_forget(void)
{
    struct driver_module *d;

    while ((d = driver_modules_take(NULL)))
        proxy_driver_modules_forget(d);
}

static bool driver_modules_is_known(const void *handle)
{
    bool known = false;

    pthread_mutex_lock(&lock);
    for (const struct driver_module *d = first; d; d = d->next)
        known = known || d->handle == handle;
    pthread_mutex_unlock(&lock);
    return known;
}

/* Kernels that Triton has linked say with which headers their library was compiled; what nvcc made
 * has zeros, and is of the program's own headers. */
static gshmem_status_t driver_modules_check(const char *call, const void *handle, const void *state)
{
    struct {
        uint32_t size, version;
    } of = {0};
    gshmem_status_t status = job->device->ops->copy(job->device, &of, state, sizeof of);

    if (status || (of.size == 0 && of.version == 0) ||
        (of.size == sizeof(struct gshmem_device_state) &&
         of.version == GSHMEM_DEVICE_STATE_VERSION))
        return status;
    return fail(GSHMEM_ERR_MISMATCH,
                "%s: %p has the device library of another version of GSHMEM: its state has version "
                "%u and %u B, expected %u and %zu; compile the kernel again",
                call, handle, of.version, of.size, GSHMEM_DEVICE_STATE_VERSION,
                sizeof(struct gshmem_device_state));
}

static gshmem_status_t driver_modules_begin(const char *call, void *handle, bool library)
{
    gshmem_status_t status = job_require(call);
    void *state = NULL;

    if (status)
        return status;
    if (driver_modules_is_known(handle))
        return fail(GSHMEM_ERR_STATE, "%s: %p knows of the job already", call, handle);
    if ((status = job->device->ops->find_state(job->device, handle, library,
                                               sizeof(struct gshmem_device_state), &state)))
        return status;
    if ((status = driver_modules_check(call, handle, state)))
        return status;
    struct driver_module *d = calloc(1, sizeof *d);
    if (!d)
        return fail(GSHMEM_ERR_MEMORY, "%s: out of memory", call);
    *d = (struct driver_module){
        .module = {.size = sizeof d->module,
                   .version = GSHMEM_DEVICE_STATE_VERSION,
                   .device = job->device->ops->name},
        .device = job->device,
        .handle = handle,
        .state = state,
    };
    if ((status = kernels_add_module(&d->module))) {
        proxy_driver_modules_forget(d);
        return status;
    }
    pthread_mutex_lock(&lock);
    d->next = first;
    first = d;
    pthread_mutex_unlock(&lock);
    return GSHMEM_OK;
}

/* From now on its kernels find no job. */
static gshmem_status_t driver_modules_end(const char *call, void *handle)
{
    const struct gshmem_device_state none = {.size = sizeof none,
                                             .version = GSHMEM_DEVICE_STATE_VERSION};
    gshmem_status_t status = job_require(call);

    if (status)
        return status;
    struct driver_module *d = handle ? driver_modules_take(handle) : NULL;
    if (!d)
        return fail(GSHMEM_ERR_ARGUMENT, "%s: %p has not been made known by its init", call,
                    handle);
    status = driver_module_fill(&d->module, &none);
    proxy_driver_modules_forget(d);
    return status;
}

gshmem_status_t gshmem_cumodule_init(void *module)
{
    return driver_modules_begin("gshmem_cumodule_init", module, false);
}

gshmem_status_t gshmem_cumodule_finalize(void *module)
{
    return driver_modules_end("gshmem_cumodule_finalize", module);
}

gshmem_status_t gshmem_culibrary_init(void *library)
{
    return driver_modules_begin("gshmem_culibrary_init", library, true);
}

gshmem_status_t gshmem_culibrary_finalize(void *library)
{
    return driver_modules_end("gshmem_culibrary_finalize", library);
}
