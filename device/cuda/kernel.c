/* The kernel that performs requests (kernels.cu): its module is loaded when it is first needed, told of
 * the job as modules of programs are, and launched. */
#include "device/cuda/cuda.h"

#include <stdlib.h>

#include "gshmem/device/state.h"

#ifdef CUDA_KERNELS
extern const char gshmem_kernels[];
#else
#define gshmem_kernels ((const char *)NULL)
#endif

enum { BLOCK_SMALL = 32, BLOCK_LARGE = 512, LARGE_BYTES = 4096 };

/* ---- The state of the job ---- */

static struct cuda *serving; /* a module's `fill` is told nothing but the state */

static int fill_state(const struct gshmem_device_state *state)
{
    struct cuda *c = serving;

    return c->base.ops->copy(&c->base, (void *)(uintptr_t)c->kernel.state, state, sizeof *state)
               ? CUDA_INVALID_VALUE
               : CUDA_OK;
}

static struct gshmem_device_module module = {
    .size = sizeof module,
    .version = GSHMEM_DEVICE_STATE_VERSION,
    .device = "cuda",
    .fill = fill_state,
};

/* ---- Loading ---- */

static gshmem_status_t load(struct cuda *c)
{
    const struct cuda_driver *d = &c->driver;
    struct cuda_kernel *k = &c->kernel;
    const char *image = gshmem_kernels;
    size_t bytes = 0;
    cuda_result result;

    if (!image)
        return c->config.fail(GSHMEM_ERR_UNSUPPORTED,
                              "cuda: this needs a kernel of the library's, and gshmem-cuda.so was built "
                              "without nvcc: build GSHMEM where the CUDA toolkit is installed");
    if ((result = d->module_load(&k->module, image)))
        return cuda_fail(c, result, "loading the library's kernels on GPU %d", c->gpu);
    if ((result = d->module_function(&k->function, k->module, "gshmem_perform")) ||
        (result = d->module_global(&k->state, &bytes, k->module, "gshmem_device_here"))) {
        d->module_unload(k->module);
        return cuda_fail(c, result, "finding the library's kernels on GPU %d", c->gpu);
    }
    k->loaded = true;
    return GSHMEM_OK;
}

static gshmem_status_t serve(struct cuda *c)
{
    gshmem_status_t status;

    serving = c;
    if ((status = c->config.add_module(&module)))
        c->config.remove_module(&module);
    else
        c->kernel.serves = true;
    return status;
}

/* Two locks: to serve calls the core, which may wait for a proxy that needs the kernel loaded. */
static gshmem_status_t prepare(struct cuda *c, bool job)
{
    struct cuda_kernel *k = &c->kernel;
    gshmem_status_t status = GSHMEM_OK;

    pthread_mutex_lock(&k->lock);
    if (!k->loaded)
        status = load(c);
    pthread_mutex_unlock(&k->lock);
    if (status || !job)
        return status;
    pthread_mutex_lock(&k->serve_lock);
    if (!k->serves)
        status = serve(c);
    pthread_mutex_unlock(&k->serve_lock);
    return status;
}

void cuda_kernel_close(struct cuda *c)
{
    if (c->kernel.serves)
        c->config.remove_module(&module);
    if (c->kernel.loaded)
        c->driver.module_unload(c->kernel.module);
    c->kernel.serves = c->kernel.loaded = false;
}

/* ---- Launching ---- */

/* As many threads as there is work for: most requests have it for one. */
static unsigned threads_for(const struct device_request *r)
{
    uint64_t bytes = r->element ? r->n * r->element : r->n;

    if (r->call == DEVICE_UPDATE || r->call == DEVICE_P || r->call == DEVICE_SIGNAL ||
        r->call == DEVICE_WAIT_ONE || r->call == DEVICE_WAIT_ALL || r->call == DEVICE_QUIET)
        return 1;
    return bytes >= LARGE_BYTES ? BLOCK_LARGE : BLOCK_SMALL;
}

gshmem_status_t cuda_kernel_launch(struct cuda *c, const struct device_request *r, cuda_stream stream)
{
    struct device_request copy = *r;
    void *arguments[] = {&copy};
    gshmem_status_t status = prepare(c, r->call != DEVICE_UPDATE);
    cuda_result result;

    if (status)
        return status;
    result = c->driver.launch(c->kernel.function, 1, 1, 1, threads_for(r), 1, 1, 0, stream, arguments,
                              NULL);
    return result ? cuda_fail(c, result, "launching a kernel of the library's on GPU %d", c->gpu)
                  : GSHMEM_OK;
}
