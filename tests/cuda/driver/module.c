/* The simulated driver: the entry points for modules and launches. kernels.c runs what is launched. */
#include "sim.h"

enum { THREADS_MOST = 1024 }; /* of a block */

static bool is_current(const struct sim_function *f)
{
    return f && sim_function_gpu(f) == sim_current();
}

SIM_API cuda_result cuModuleLoadData(cuda_module *module, const void *image)
{
    struct sim_module *made;
    cuda_result result;

    SIM_ENTER();
    if (sim_current() < 0)
        return CUDA_INVALID_CONTEXT;
    if (sim_captures())
        return CUDA_CAPTURE_UNSUPPORTED;
    if (!module || !image)
        return CUDA_INVALID_VALUE;
    if ((result = sim_module_load(&made, sim_current(), image)))
        return result;
    sim_opened(SIM_MODULE);
    *module = made;
    return CUDA_OK;
}

SIM_API cuda_result cuModuleUnload(cuda_module module)
{
    SIM_ENTER();
    if (!sim_module_exists(module))
        return CUDA_INVALID_VALUE;
    if (sim_launches())
        sim_blame("a module is unloaded whose kernels have not ended");
    sim_closed(SIM_MODULE);
    return sim_module_unload(module);
}

SIM_API cuda_result cuModuleGetFunction(cuda_function *out, cuda_module module, const char *name)
{
    struct sim_function *found;
    cuda_result result;

    SIM_ENTER();
    if (!out || !name || !sim_module_exists(module))
        return CUDA_INVALID_VALUE;
    if (!(result = sim_module_function(&found, module, name)))
        *out = (cuda_function)found;
    return result;
}

SIM_API cuda_result cuModuleGetGlobal_v2(cuda_address *at, size_t *bytes, cuda_module module,
                                         const char *name)
{
    SIM_ENTER();
    if (!name || !sim_module_exists(module))
        return CUDA_INVALID_VALUE;
    return sim_module_global(at, bytes, module, name);
}

/* For drivers of CUDA 12 and newer; a library here is a module. */
SIM_API cuda_result cuLibraryGetGlobal(cuda_address *at, size_t *bytes, void *library,
                                       const char *name)
{
    return cuModuleGetGlobal_v2(at, bytes, library, name);
}

static cuda_result launch(const struct sim_function *f, const unsigned *size, unsigned shared,
                          bool cooperative, cuda_stream stream, void *const *arguments)
{
    if (!is_current(f))
        return CUDA_INVALID_CONTEXT;
    for (int i = 0; i < 6; i++) {
        if (size[i] == 0)
            return CUDA_INVALID_VALUE;
    }
    if (size[3] > THREADS_MOST || (uint64_t)size[3] * size[4] * size[5] > THREADS_MOST)
        return CUDA_INVALID_VALUE;
    struct sim_grid *g = sim_grid_make(f, size, shared, cooperative, arguments);
    return g ? sim_launch(stream, g) : CUDA_OUT_OF_MEMORY;
}

SIM_API cuda_result cuLaunchKernel(cuda_function kernel, unsigned grid_x, unsigned grid_y,
                                   unsigned grid_z, unsigned block_x, unsigned block_y,
                                   unsigned block_z, unsigned shared, cuda_stream stream,
                                   void **arguments, void **extra)
{
    const unsigned size[] = {grid_x, grid_y, grid_z, block_x, block_y, block_z};

    SIM_ENTER();
    if (extra)
        return CUDA_INVALID_VALUE;
    return launch((const struct sim_function *)kernel, size, shared, false, stream, arguments);
}

SIM_API cuda_result cuLaunchCooperativeKernel(cuda_function kernel, unsigned grid_x,
                                              unsigned grid_y, unsigned grid_z, unsigned block_x,
                                              unsigned block_y, unsigned block_z, unsigned shared,
                                              cuda_stream stream, void **arguments)
{
    const unsigned size[] = {grid_x, grid_y, grid_z, block_x, block_y, block_z};

    SIM_ENTER();
    return launch((const struct sim_function *)kernel, size, shared, true, stream, arguments);
}

/* As CUDA lays it out. */
struct sim_attribute {
    int id;
    char pad[4];
    union {
        char pad[64];
        int cooperative;
        unsigned cluster[3];
    } value;
};

struct sim_config {
    unsigned size[6], shared;
    cuda_stream stream;
    const struct sim_attribute *attribute;
    unsigned attributes;
};

/* Attributes that a driver takes as advice are none here, and no GPU of the simulation has clusters.
 * Which are refused is the host device's to say, where programs use more (cuLaunchKernelEx of
 * device/host/ptx). */
SIM_API cuda_result cuLaunchKernelEx(const struct sim_config *config, cuda_function kernel,
                                     void **arguments, void **extra);
SIM_API cuda_result cuLaunchKernelEx(const struct sim_config *config, cuda_function kernel,
                                     void **arguments, void **extra)
{
    enum { COOPERATIVE = 2, SYNCHRONIZATION = 3, CLUSTER = 4, SERIALIZATION = 6, PRIORITY = 8 };
    bool cooperative = false;

    SIM_ENTER();
    if (extra || !config)
        return CUDA_INVALID_VALUE;
    for (unsigned i = 0; i < config->attributes; i++) {
        const struct sim_attribute *a = &config->attribute[i];
        const unsigned *cluster = a->value.cluster;

        if (a->id == COOPERATIVE)
            cooperative = a->value.cooperative;
        else if (a->id == CLUSTER && cluster[0] * cluster[1] * cluster[2] > 1)
            return CUDA_NOT_SUPPORTED;
        else if (a->id != SYNCHRONIZATION && a->id != CLUSTER && a->id != SERIALIZATION &&
                 a->id != PRIORITY && a->id != 0)
            return CUDA_NOT_SUPPORTED;
    }
    return launch((const struct sim_function *)kernel, config->size, config->shared, cooperative,
                  config->stream, arguments);
}
