/* Where a module that the program has the driver load keeps the state of the job, for libgshmem:
 * libgshmem_host.so, which only programs in CUDA source are linked with, has the modules. */
#define _GNU_SOURCE
#include <dlfcn.h>

#include "device/device.h"
#include "gshmem/device/state.h"
#include "runtime/base/log.h"

gshmem_status_t host_find_state(struct device *d, void *module, bool library, size_t bytes,
                                void **state);

enum { CUDA_OK = 0, CUDA_NO_MODULE = 400, CUDA_NO_SUCH_VARIABLE = 500 };

/* Of <cuda.h> for the host device. */
static struct {
    int (*global)(unsigned long long *at, size_t *bytes, void *module, const char *name);
    void (*while_waiting)(void (*progress)(void));
} device;

/* By the library's handle: the process may have a driver, too. It stays: see its link_args. */
static bool find_device(void)
{
    void *library = dlopen("libgshmem_host.so.0", RTLD_LAZY | RTLD_NOLOAD);

    if (!library)
        return false;
    *(void **)&device.global = dlsym(library, "cuModuleGetGlobal_v2");
    *(void **)&device.while_waiting = dlsym(library, "gshmem_host_ptx_while_waiting");
    dlclose(library);
    return device.global && device.while_waiting;
}

gshmem_status_t host_find_state(struct device *d, void *module, bool library, size_t bytes,
                                void **state)
{
    const char *kind = library ? "library" : "module";
    unsigned long long at = 0;
    size_t found = 0;

    (void)d;
    if (library)
        return fail(GSHMEM_ERR_UNSUPPORTED,
                    "library %p: the host device has no libraries that a driver loads; load a "
                    "module of PTX (cuModuleLoadData)",
                    module);
    if (!find_device())
        return fail(GSHMEM_ERR_UNSUPPORTED,
                    "%s %p: this program was not linked with the host device's library, "
                    "libgshmem_host.so, which loads modules (gshmemcc does it for CUDA sources)",
                    kind, module);
    int result = device.global(&at, &found, module, "gshmem_device_here");
    if (result == CUDA_NO_MODULE)
        return fail(GSHMEM_ERR_ARGUMENT,
                    "%s %p is none that cuModuleLoadData of the host device has loaded", kind,
                    module);
    if (result == CUDA_NO_SUCH_VARIABLE)
        return fail(GSHMEM_ERR_ARGUMENT,
                    "%s %p has no kernels that call GSHMEM: its PTX has no variable "
                    "gshmem_device_here",
                    kind, module);
    if (result != CUDA_OK)
        return fail(GSHMEM_ERR_DEVICE, "%s %p: error %d of the host device", kind, module, result);
    if (found != bytes)
        return fail(GSHMEM_ERR_MISMATCH,
                    "%s %p was compiled with another version of gshmem_device.h: its state has "
                    "%zu B, expected %zu",
                    kind, module, found, bytes);
    device.while_waiting(gshmem_device_receive);
    *state = (void *)(uintptr_t)at;
    return GSHMEM_OK;
}
