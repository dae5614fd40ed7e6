/* What host code made by nvcc calls of CUDA's runtime: modules are made known, then kernels are
 * launched by their stubs. */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "device/host/blocks/threads.h"
#include "device/host/blocks/watch.h"
#include "device/host/calling_thread.h"
#include "device/host/errors.h"
#include "device/host/ptx/modules.h"
#include "device/host/ptx/symbols.h"
#include "device/host/streams/work.h"
#include "runtime/base/log.h"

void gshmem_host_ptx_while_waiting(void (*progress)(void))
{
    yield_progress = progress;
}

/* --- Launches --- */

struct closure {
    const struct gshmem_host_ptx_kernel *kernel;
    _Alignas(16) u8 parameters[];
};

static void closure_run(void *argument)
{
    const struct closure *closure = argument;

    closure->kernel->body(closure->parameters);
}

void gshmem_host_ptx_launch(struct gshmem_host_ptx_kernel *kernel, void **arguments)
{
    struct closure *closure = malloc(sizeof *closure + kernel->bytes);

    if (!closure) {
        log_error("kernel %s: no memory for %u B of arguments", kernel->name, kernel->bytes);
        report_error(cudaErrorMemoryAllocation);
        return;
    }
    closure->kernel = kernel;
    for (unsigned i = 0; i < kernel->parameters; i++)
        memcpy(closure->parameters + kernel->parameter[i].offset, arguments[i],
               kernel->parameter[i].bytes);
    gshmem_host_launch(&kernel->record, closure, closure_run, free);
    ptx_module_say(kernel->module);
}

bool ptx_kernel_register(struct gshmem_host_ptx_kernel *kernel, const void *function)
{
    kernel->record.function = function;
    gshmem_host_register(&kernel->record);
    struct code *code = kernel->record.own;
    if (!code)
        return false;
    code->state_bytes = PTX_BLOCK_STATE;
    code->static_shared = kernel->shared;
    watch_code((const void *)kernel->body);
    return true;
}

bool ptx_module_register_kernels(struct gshmem_host_ptx_module *module)
{
    bool all = true;

    for (unsigned i = 0; i < module->kernels; i++)
        all = ptx_kernel_register(module->kernel[i], (const void *)module->kernel[i]->body) && all;
    return all;
}

/* --- What nvcc's constructors call --- */

struct fat_wrapper {
    int magic, version;
    const void *data;
    void *file;
};

/* What a handle stands for. */
struct loaded {
    struct gshmem_host_ptx_module *module; /* NULL: it cannot be run, which was said */
};

#pragma GCC visibility push(default)
void **__cudaRegisterFatBinary(void *binary);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaUnregisterFatBinary(void **handle);
void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name,
                            int thread_limit, uint3 *tid, uint3 *bid, dim3 *block, dim3 *grid,
                            int *warp);
void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int external,
                       size_t bytes, int constant, int global);
void __cudaRegisterManagedVar(void **handle, void **host, char *device, const char *name,
                              int external, size_t bytes, int constant, int global);
char __cudaInitModule(void **handle);
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, cudaStream_t stream);
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream);
cudaError_t __cudaGetKernel(void **kernel, const void *function);
cudaError_t __cudaLaunchKernel(void *kernel, dim3 grid, dim3 block, void **arguments, size_t shared,
                               cudaStream_t stream);
#pragma GCC visibility pop

void **__cudaRegisterFatBinary(void *binary)
{
    const struct fat_wrapper *wrapper = binary;
    struct loaded *loaded = calloc(1, sizeof *loaded);
    const char *text;
    size_t bytes;

    if (!loaded) {
        log_error("no memory for a module's record: its kernels cannot be launched");
        return NULL;
    }
    switch (ptx_in_fat_binary(wrapper->data, &text, &bytes)) {
    case PTX_FOUND:
        loaded->module = ptx_module_take(text, bytes, false);
        if (!loaded->module)
            log_error(
                "a module's PTX was not translated: its kernels cannot be launched; compile and "
                "link it by gshmemcc --device=ptx");
        break;
    case PTX_COMPRESSED:
        log_error("a module's PTX is compressed: its kernels cannot be launched; compile it by "
                  "gshmemcc --device=ptx");
        break;
    case PTX_NONE:
        log_error("a module has no PTX: its kernels cannot be launched; compile it by gshmemcc "
                  "--device=ptx");
        break;
    }
    return (void **)loaded;
}

void __cudaRegisterFatBinaryEnd(void **handle)
{
    (void)handle;
}

void __cudaUnregisterFatBinary(void **handle)
{
    struct loaded *loaded = (struct loaded *)handle;

    if (loaded && loaded->module) {
        ptx_module_unregister_kernels(loaded->module);
        symbols_forget(loaded->module);
        ptx_module_give_back(loaded->module);
    }
    free(loaded);
}

void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name,
                            int thread_limit, uint3 *tid, uint3 *bid, dim3 *block, dim3 *grid,
                            int *warp)
{
    struct loaded *loaded = (struct loaded *)handle;

    (void)device, (void)thread_limit, (void)tid, (void)bid, (void)block, (void)grid, (void)warp;
    if (!loaded || !loaded->module)
        return;
    struct gshmem_host_ptx_kernel *kernel = ptx_module_kernel(loaded->module, name);
    if (!kernel) {
        log_error("kernel %s: it is not in the PTX of %s", name, loaded->module->file);
        return;
    }
    if (kernel->record.own)
        return; /* a template's instance, by another of its stubs */
    ptx_kernel_register(kernel, host);
}

void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int external,
                       size_t bytes, int constant, int global)
{
    const struct loaded *loaded = (const struct loaded *)handle;

    (void)device, (void)external, (void)bytes, (void)constant, (void)global;
    if (!loaded || !loaded->module)
        return;
    const struct gshmem_host_ptx_variable *variable = ptx_module_variable(loaded->module, name);
    if (variable) /* nvcc leaves those away that no kernel uses */
        symbols_add(loaded->module, host, variable);
}

void __cudaRegisterManagedVar(void **handle, void **host, char *device, const char *name,
                              int external, size_t bytes, int constant, int global)
{
    const struct loaded *loaded = (const struct loaded *)handle;

    (void)device, (void)external, (void)bytes, (void)constant, (void)global;
    if (!loaded || !loaded->module)
        return;
    const struct gshmem_host_ptx_variable *variable = ptx_module_variable(loaded->module, name);
    if (variable)
        *host = variable->at;
}

char __cudaInitModule(void **handle)
{
    (void)handle;
    return 1;
}

/* --- What nvcc's stubs call --- */

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, cudaStream_t stream)
{
    gshmem_host_configure(grid, block, shared, stream);
    return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream)
{
    if (!calling_thread.launches)
        return report_error(cudaErrorMissingConfiguration);
    const struct configuration *c = &calling_thread.launch[--calling_thread.launches];
    *grid = c->grid;
    *block = c->block;
    *shared = c->shared;
    *(cudaStream_t *)stream = c->stream;
    return cudaSuccess;
}

cudaError_t __cudaGetKernel(void **kernel, const void *function)
{
    *kernel = (void *)function; /* a kernel is known by its stub */
    return cudaSuccess;
}

cudaError_t __cudaLaunchKernel(void *kernel, dim3 grid, dim3 block, void **arguments, size_t shared,
                               cudaStream_t stream)
{
    return cudaLaunchKernel(kernel, grid, block, arguments, shared, stream);
}
