/* Calls in the order of a stream, for libgshmem: streams are kept by libgshmem_host.so, which only
 * programs in CUDA source are linked with. */
#define _GNU_SOURCE
#include <dlfcn.h>

#include "device/device.h"
#include "runtime/base/log.h"

gshmem_status_t host_stream_call(void *stream, void (*function)(void *), void *argument);

typedef int launch_fn(void *stream, void (*function)(void *), void *argument); /* a cudaError_t */

/* cudaLaunchHostFunc of the host device; NULL: nothing in this process can have made a stream. */
static launch_fn *find_launch(void)
{
    static _Atomic(launch_fn *) found;
    launch_fn *launch = found;

    if (!launch) {
        void *library = dlopen("libgshmem_host.so.0", RTLD_LAZY | RTLD_NOLOAD);
        if (library) { /* by its handle: another library may have a function of that name */
            *(void **)&launch = dlsym(library, "cudaLaunchHostFunc");
            found = launch;
        }
    }
    return launch;
}

gshmem_status_t host_stream_call(void *stream, void (*function)(void *), void *argument)
{
    launch_fn *launch = find_launch();

    if (!launch && stream)
        return fail(GSHMEM_ERR_UNSUPPORTED,
                    "stream %p is none of the host device: the program was not linked with its "
                    "library, libgshmem_host.so (gshmemcc does it for CUDA sources)",
                    stream);
    if (!launch) {
        function(argument); /* on the default stream, which has no work to wait for */
        return GSHMEM_OK;
    }
    int error = launch(stream, function, argument);
    if (error)
        return fail(GSHMEM_ERR_DEVICE,
                    "stream %p takes no call: error %d of the host device (400: it is no stream)",
                    stream, error);
    return GSHMEM_OK;
}
