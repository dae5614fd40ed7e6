/* Libraries whose variables are symmetric: each asks for it, and stays loaded from then on. */
#define _GNU_SOURCE
#include <dlfcn.h>

#include "gshmem.h"
#include "runtime/base/log.h"
#include "runtime/job/job.h"
#include "runtime/memory/data.h"

/* The library's variables stay in the shared file until the process ends, and each fork copies
 * them. A dlclose must not let other memory be mapped at their addresses. */
static bool keep_loaded(const void *inside)
{
    Dl_info library;
    void *handle;

    if (!dladdr(inside, &library) ||
        !(handle = dlopen(library.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE)))
        return false;
    return dlclose(handle) == 0;
}

gshmem_status_t gshmem_symmetric_data(const void *inside)
{
    gshmem_status_t status;
    bool of_library;

    if (job)
        return fail(GSHMEM_ERR_STATE, "gshmem_symmetric_data: to be called before gshmem_init");
    if (!inside)
        return fail(GSHMEM_ERR_ARGUMENT, "gshmem_symmetric_data: NULL is not a variable");
    if ((status = data_ask(inside, &of_library)))
        return status;
    if (of_library && !keep_loaded(inside))
        return fail(GSHMEM_ERR_SYSTEM,
                    "gshmem_symmetric_data: the library of %p cannot be kept loaded: %s", inside,
                    dlerror());
    return GSHMEM_OK;
}
