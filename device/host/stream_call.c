/* Calls in the order of a stream, for libgshmem: streams are kept by libgshmem_host.so, which only
 * programs in CUDA source are linked with. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>

#include "device/device.h"
#include "runtime/base/log.h"

gshmem_status_t host_stream_call(void *stream, void (*function)(void *), void *argument,
                                 void (*release)(void *));
bool host_stream_is_captured(void *stream);
bool host_streams_busy(bool kernels);

/* Of <cuda_runtime_api.h> for the host device. Each returns a cudaError_t. */
static struct { /* stays here: the library is loaded once in the process */
    int (*call)(void *stream, void (*function)(void *), void *argument, void (*release)(void *));
    int (*is_capturing)(void *stream, int *status);
    int (*busy)(void);
    int (*runs_kernels)(void);
    atomic_bool found;
    pthread_mutex_t lock;
} device = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool stream_call_find_device(void)
{
    void *library = dlopen("libgshmem_host.so.0", RTLD_LAZY | RTLD_NOLOAD);

    if (!library)
        return false;
    /* By its handle: another library may have functions of these names. */
    *(void **)&device.is_capturing = dlsym(library, "cudaStreamIsCapturing");
    *(void **)&device.call = dlsym(library, "gshmem_host_call");
    *(void **)&device.busy = dlsym(library, "gshmem_host_calls_under_way");
    *(void **)&device.runs_kernels = dlsym(library, "gshmem_host_kernels_under_way");
    if (device.call && device.is_capturing && device.busy && device.runs_kernels)
        return true;
    dlclose(library);
    return false;
}

/* False: nothing in this process can have made a stream. A library with kernels may bring the
 * device later, and it stays from the first time that it is found. */
static bool have_streams(void)
{
    /* Acquire: with the release below. */
    if (atomic_load_explicit(&device.found, memory_order_acquire))
        return true;
    pthread_mutex_lock(&device.lock);
    bool found =
        atomic_load_explicit(&device.found, memory_order_relaxed) || stream_call_find_device();
    atomic_store_explicit(&device.found, found, memory_order_release);
    pthread_mutex_unlock(&device.lock);
    return found;
}

gshmem_status_t host_stream_call(void *stream, void (*function)(void *), void *argument,
                                 void (*release)(void *))
{
    if (!have_streams() && stream)
        return fail(GSHMEM_ERR_UNSUPPORTED,
                    "stream %p is none of the host device: the program was not linked with its "
                    "library, libgshmem_host.so (gshmemcc does it for CUDA sources)",
                    stream);
    if (!have_streams()) {
        function(argument); /* on the default stream, which has no work to wait for */
        release(argument);
        return GSHMEM_OK;
    }
    int error = device.call(stream, function, argument, release);
    if (error)
        return fail(GSHMEM_ERR_DEVICE,
                    "stream %p takes no call: error %d of the host device (400: it is no stream)",
                    stream, error);
    return GSHMEM_OK;
}

bool host_stream_is_captured(void *stream)
{
    int status = 0;

    return have_streams() && !device.is_capturing(stream, &status) && status;
}

bool host_streams_busy(bool kernels)
{
    return have_streams() && (device.busy() || (kernels && device.runs_kernels()));
}
