/* The simulated driver: modules and launches. It knows one kernel, that of the library's own. */
#include "sim.h"

#include <string.h>

static const char function;
static int loaded; /* modules */

#ifndef SIM_KERNELS /* no C++ compiler: there is no stand-in */
void sim_perform(const struct device_request *r)
{
    (void)r;
}

void *sim_state(size_t *bytes)
{
    *bytes = 0;
    return NULL;
}
#endif

SIM_API cuda_result cuModuleLoadData(cuda_module *module, const void *image)
{
    static const unsigned char fatbin[] = {0x50, 0xed, 0x55, 0xba}; /* how nvcc's begin */

    SIM_ENTER();
    if (sim_current() < 0)
        return CUDA_INVALID_CONTEXT;
    if (sim_captures())
        return CUDA_CAPTURE_UNSUPPORTED;
    if (memcmp(image, fatbin, sizeof fatbin) != 0)
        return CUDA_INVALID_VALUE;
    sim_opened(SIM_MODULE);
    *module = &loaded;
    return CUDA_OK;
}

SIM_API cuda_result cuModuleUnload(cuda_module module)
{
    SIM_ENTER();
    if (module != &loaded)
        return CUDA_INVALID_VALUE;
    if (sim_launches())
        sim_blame("a module is unloaded whose kernels have not ended");
    sim_closed(SIM_MODULE);
    return CUDA_OK;
}

SIM_API cuda_result cuModuleGetFunction(cuda_function *out, cuda_module module, const char *name)
{
    SIM_ENTER();
    if (module != &loaded)
        return CUDA_INVALID_VALUE;
    if (strcmp(name, "gshmem_perform") != 0)
        return CUDA_NOT_FOUND;
    *out = (cuda_function)(uintptr_t)&function;
    return CUDA_OK;
}

SIM_API cuda_result cuModuleGetGlobal_v2(cuda_address *at, size_t *bytes, cuda_module module,
                                         const char *name)
{
    SIM_ENTER();
    if (module != &loaded)
        return CUDA_INVALID_VALUE;
    if (strcmp(name, "gshmem_device_here") != 0)
        return CUDA_NOT_FOUND;
    *at = (cuda_address)(uintptr_t)sim_state(bytes);
    return CUDA_OK;
}

/* For drivers of CUDA 12 and newer; a library here is a module. */
SIM_API cuda_result cuLibraryGetGlobal(cuda_address *at, size_t *bytes, void *library,
                                       const char *name)
{
    return cuModuleGetGlobal_v2(at, bytes, library, name);
}

SIM_API cuda_result cuLaunchKernel(cuda_function kernel, unsigned grid_x, unsigned grid_y,
                                   unsigned grid_z, unsigned block_x, unsigned block_y,
                                   unsigned block_z, unsigned shared, cuda_stream stream,
                                   void **arguments, void **extra)
{
    struct device_request r;

    SIM_ENTER();
    if (kernel != &function || grid_x * grid_y * grid_z != 1 || block_x < 1 || block_x > 512 ||
        block_y * block_z != 1 || shared || extra)
        return CUDA_INVALID_VALUE;
    memcpy(&r, arguments[0], sizeof r); /* now: it may be gone when the kernel runs */
    return sim_launch(stream, &r);
}
