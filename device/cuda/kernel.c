/* The kernel that performs requests (kernels.cu): its module is loaded with the device, since a
 * driver that loads code may wait for kernels that run, and these for what the code is to do; told
 * of the job, when that is first needed, as modules of programs are; and launched. */
#include "device/cuda/streams.h"

#include <string.h>

#include "gshmem/device/state.h"

#ifdef CUDA_KERNELS
extern const char gshmem_kernels[];
static const char *const image = gshmem_kernels;
#else
static const char *const image = NULL; /* gpu_code=none, and requests say so */
#endif

enum { BLOCK_SMALL = 32, BLOCK_LARGE = 512, LARGE_BYTES = 4096 };

/* ---- The state of the job ---- */

static const char state_symbol[] =
    "gshmem_device_here"; /* of gshmem/device/module.h, to the driver */

static struct cuda *serving; /* stays here: a module's `fill` has no argument but the state */

static int fill_state(const struct gshmem_device_state *state)
{
    struct cuda *c = serving;

    return cuda_copy(&c->base, (void *)(uintptr_t)c->kernel.code.state, state, sizeof *state)
               ? CUDA_INVALID_VALUE
               : CUDA_OK;
}

/* Stays here: the kernel's module is one for the process, as the image is. */
static struct gshmem_device_module own_module = {
    .size = sizeof own_module,
    .version = GSHMEM_DEVICE_STATE_VERSION,
    .device = "cuda",
    .fill = fill_state,
};

/* ---- Loading ---- */

gshmem_status_t cuda_kernel_load(const struct cuda *c, cuda_gpu gpu, struct cuda_code *code)
{
    const struct cuda_driver *d = &c->driver;
    size_t bytes = 0;
    cuda_result result;

    if (!image)
        return c->config.fail(
            GSHMEM_ERR_UNSUPPORTED,
            "cuda: this needs a kernel of the library's, and gshmem-cuda.so was built without one "
            "(-Dgpu_code=none): build GSHMEM with -Dgpu_code=auto");
    if ((result = d->module_load(&code->module, image)))
        return cuda_fail(c, result, "loading the library's kernels on GPU %d", gpu);
    if ((result = d->module_function(&code->function, code->module, "gshmem_perform")) ||
        (result = d->module_global(&code->state, &bytes, code->module, state_symbol))) {
        d->module_unload(code->module);
        return cuda_fail(c, result, "finding the library's kernels on GPU %d", gpu);
    }
    return GSHMEM_OK;
}

static gshmem_status_t kernel_serve(struct cuda *c)
{
    gshmem_status_t status;

    serving = c;
    if ((status = c->config.add_module(&own_module)))
        c->config.remove_module(&own_module);
    else
        c->kernel.serves = true;
    return status;
}

/* Two locks: to serve calls the core, which may wait for a proxy that needs the kernel loaded. */
static gshmem_status_t kernel_prepare(struct cuda *c, bool job)
{
    struct cuda_kernel *k = &c->kernel;
    gshmem_status_t status = GSHMEM_OK;

    pthread_mutex_lock(&k->lock);
    if (!k->loaded && !(status = cuda_kernel_load(c, c->gpu, &k->code)))
        k->loaded = true;
    pthread_mutex_unlock(&k->lock);
    if (status || !job)
        return status;
    pthread_mutex_lock(&k->serve_lock);
    if (!k->serves)
        status = kernel_serve(c);
    pthread_mutex_unlock(&k->serve_lock);
    return status;
}

gshmem_status_t cuda_kernel_open(struct cuda *c)
{
    return image ? kernel_prepare(c, false) : GSHMEM_OK;
}

void cuda_kernel_close(struct cuda *c)
{
    if (c->kernel.serves)
        c->config.remove_module(&own_module);
    if (c->kernel.loaded)
        c->driver.module_unload(c->kernel.code.module);
    c->kernel.serves = c->kernel.loaded = false;
}

/* ---- Modules of the program's that the driver loads ---- */

gshmem_status_t cuda_find_state(struct device *base, void *module, bool library, size_t bytes,
                                void **state)
{
    struct cuda *c = cuda_of(base);
    const char *kind = library ? "library" : "module";
    cuda_address at = 0;
    gshmem_status_t status;
    cuda_result result;
    size_t found = 0;

    if (library && !cuda_driver_has(&c->driver, CUDA_NEWER_LIBRARY))
        return c->config.fail(
            GSHMEM_ERR_UNSUPPORTED,
            "cuda: library %p: this driver knows none, that for CUDA 12.0 does: update "
            "it, or load a module (cuModuleLoad…)",
            module);
    if ((status = cuda_enter(c)))
        return status;
    result = library ? c->driver.library_global(&at, &found, module, state_symbol)
                     : c->driver.module_global(&at, &found, module, state_symbol);
    cuda_leave(c);
    if (result == CUDA_NOT_FOUND)
        return c->config.fail(
            GSHMEM_ERR_ARGUMENT,
            "cuda: %s %p has no kernels that call GSHMEM, or was compiled with -rdc", kind, module);
    if (result)
        return cuda_fail(c, result, "finding %s in %s %p on GPU %d", state_symbol, kind, module,
                         c->gpu);
    if (found != bytes)
        return c->config.fail(
            GSHMEM_ERR_MISMATCH,
            "cuda: %s %p was compiled with another version of gshmem_device.h: its state "
            "has %zu B, expected %zu",
            kind, module, found, bytes);
    *state = (void *)(uintptr_t)at;
    return GSHMEM_OK;
}

/* ---- Launching ---- */

/* As many threads as there is work for: most requests have it for one. */
static unsigned threads_for(const struct device_request *r)
{
    uint64_t bytes = r->element ? r->n * r->element : r->n;

    if (r->call == DEVICE_UPDATE || r->call == DEVICE_P || r->call == DEVICE_SIGNAL ||
        r->call == DEVICE_WAIT_ONE || r->call == DEVICE_WAIT_ALL || r->call == DEVICE_QUIET ||
        r->call == DEVICE_FLUSH)
        return 1;
    return bytes >= LARGE_BYTES ? BLOCK_LARGE : BLOCK_SMALL;
}

gshmem_status_t cuda_kernel_launch_code(const struct cuda *c, cuda_gpu gpu,
                                        const struct cuda_code *code,
                                        const struct device_request *r, cuda_stream stream)
{
    struct device_request copy = *r;
    void *arguments[] = {&copy};
    cuda_result result = c->driver.launch(code->function, 1, 1, 1, threads_for(r), 1, 1, 0, stream,
                                          arguments, NULL);

    return result ? cuda_fail(c, result, "launching a kernel of the library's on GPU %d", gpu)
                  : GSHMEM_OK;
}

gshmem_status_t cuda_kernel_launch(struct cuda *c, const struct device_request *r,
                                   cuda_stream stream)
{
    gshmem_status_t status = kernel_prepare(c, r->call != DEVICE_UPDATE);

    return status ? status : cuda_kernel_launch_code(c, c->gpu, &c->kernel.code, r, stream);
}
