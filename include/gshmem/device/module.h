/* The state of this translation unit, which the library fills in when a job begins, for the kernels
 * in the unit. In a module that is loaded at run time the constructor runs late, and the state is
 * filled in then. */
#ifndef GSHMEM_DEVICE_MODULE_H
#define GSHMEM_DEVICE_MODULE_H

#include "gshmem/device/state.h"

#ifdef GSHMEM_HOST_DEVICE
static struct gshmem_device_state gshmem_device_here;

static int gshmem_device_fill(const struct gshmem_device_state *state)
{
    gshmem_device_here = *state;
    return 0;
}
#else
static __constant__ struct gshmem_device_state gshmem_device_here;

/* nvcc's code runs on the host device, which makes progress while its threads wait. */
#ifdef GSHMEM_PTX
extern "C" void gshmem_host_ptx_while_waiting(void (*progress)(void));
#endif

/* Copies the state on a stream of its own, which waits for no work of the program. (The default
 * stream waits for all streams that are not nonblocking.) */
static int gshmem_device_fill(const struct gshmem_device_state *state)
{
    cudaStream_t stream;
    cudaError_t error = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);

    if (error)
        return (int)error;
    error = cudaMemcpyToSymbolAsync(gshmem_device_here, state, sizeof *state, 0,
                                    cudaMemcpyHostToDevice, stream);
    if (!error)
        error = cudaStreamSynchronize(stream);
    cudaStreamDestroy(stream);
    return (int)error;
}
#endif

#if defined(GSHMEM_RACES) && defined(GSHMEM_HOST_DEVICE)
#include "gshmem/races.h"
#define GSHMEM_FOLLOW_MODULE(what) gshmem_path_follow(what, NULL, NULL, 0, 0)
#else
#define GSHMEM_FOLLOW_MODULE(what) ((void)0)
#endif

static struct gshmem_device_module gshmem_device_module_here = {
    sizeof(struct gshmem_device_module),
    GSHMEM_DEVICE_STATE_VERSION,
#if defined(GSHMEM_HOST_DEVICE) || defined(GSHMEM_PTX)
    "host",
#else
    "cuda",
#endif
    gshmem_device_fill,
    NULL,
};

#ifdef GSHMEM_HOST_DEVICE
__attribute__((constructor)) static void gshmem_device_module_begin(void)
{
    GSHMEM_FOLLOW_MODULE(GSHMEM_FOLLOWED_MODULE);
    gshmem_device_register(&gshmem_device_module_here);
}

__attribute__((destructor)) static void gshmem_device_module_end(void)
{
    gshmem_device_unregister(&gshmem_device_module_here);
    GSHMEM_FOLLOW_MODULE(GSHMEM_FOLLOWED_MODULE_GONE);
}

#else
/* This is an object because its constructor runs after all constructor functions of this
 * translation unit. One of these functions registers the state's variables with CUDA. */
static struct gshmem_device_registration {
    gshmem_device_registration()
    {
#ifdef GSHMEM_PTX
        gshmem_host_ptx_while_waiting(gshmem_device_receive);
#endif
        gshmem_device_register(&gshmem_device_module_here);
    }
    ~gshmem_device_registration()
    {
        gshmem_device_unregister(&gshmem_device_module_here);
    }
} gshmem_device_registered;
#endif

#endif
