/* Launches: by <<<>>> and by pointer, and what is known of each __global__ function. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "device/host/blocks/watch.h"
#include "device/host/blocks/workers.h"
#include "device/host/calling_thread.h"
#include "device/host/calls/attributes.h"
#include "device/host/forks.h"
#include "device/host/streams/stream.h"
#include "runtime/base/log.h"

enum { GRID_X_MAX = 0x7fffffff, GRID_YZ_MAX = 65535, BLOCK_Z_MAX = 64 };

/* --- Kernels --- */

/* One for the process: kernels are known by the addresses of their functions. */
static struct {
    pthread_mutex_t lock;
    struct code *first;
    struct code *left_behind; /* their launches are still under way while the process exits */
    atomic_bool exits;        /* the process does, */
    atomic_bool exit_is_reported; /* and the kernels that are registered now will hear of it */
} kernels = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Its library may be about to go: what is under way runs its code. Where the process exits, kernels
 * that wait for what never comes are left behind. */
static void wait_until_left(struct code *code)
{
    static const struct timespec moment = {.tv_nsec = 50000};

    while (!atomic_load_explicit(&kernels.exits, memory_order_relaxed) && work_may_wait() &&
           !forks_is_child() && atomic_load_explicit(&code->under_way, memory_order_acquire))
        nanosleep(&moment, NULL);
}

static void kernels_leave_parent(void)
{
    kernels.lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

__attribute__((constructor)) static void calls_watch_forks(void)
{
    static struct fork_part part = {.leave_parent =
                                        kernels_leave_parent}; /* an entry of the list in forks.c */

    forks_add(&part);
}

static void tell_of_exit(void)
{
    atomic_store_explicit(&kernels.exits, true, memory_order_relaxed);
}

/* Runs before the kernels' destructors do, since it is registered after their constructors ran. */
static void end_of_exit(void)
{
    if (!atomic_load_explicit(&kernels.exit_is_reported, memory_order_relaxed) &&
        !atomic_exchange_explicit(&kernels.exit_is_reported, true, memory_order_relaxed) &&
        atexit(tell_of_exit) != 0)
        log_warn("no memory to hear of the process's exit: kernels that run then are waited for");
}

void gshmem_host_register(struct gshmem_host_kernel *kernel)
{
    struct code *code = calloc(1, sizeof *code);

    if (!code) {
        log_error("no memory for a kernel's record: its launches fail");
        return;
    }
    code->kernel = kernel;
    kernel->own = code;
    pthread_mutex_lock(&kernels.lock);
    watch_code(kernel->function);
    code->next = kernels.first;
    kernels.first = code;
    atomic_store_explicit(&kernels.exit_is_reported, false, memory_order_relaxed);
    pthread_mutex_unlock(&kernels.lock);
}

void gshmem_host_unregister(struct gshmem_host_kernel *kernel)
{
    struct code *code = kernel->own;

    if (!code)
        return;
    wait_until_left(code);
    pthread_mutex_lock(&kernels.lock);
    for (struct code **link = &kernels.first; *link; link = &(*link)->next) {
        if (*link == code) {
            *link = code->next;
            watch_forget(kernel->function);
            break;
        }
    }
    pthread_mutex_unlock(&kernels.lock);
    kernel->own = NULL;
    if (!atomic_load_explicit(&code->under_way, memory_order_acquire)) {
        free(code);
        return;
    }
    pthread_mutex_lock(&kernels.lock);
    code->next = kernels.left_behind;
    kernels.left_behind = code;
    pthread_mutex_unlock(&kernels.lock);
}

static struct gshmem_host_kernel *kernel_find(const void *function)
{
    pthread_mutex_lock(&kernels.lock);
    struct code *code = kernels.first;
    while (code && code->kernel->function != function)
        code = code->next;
    pthread_mutex_unlock(&kernels.lock);
    return code ? code->kernel : NULL;
}

int gshmem_host_kernels_under_way(void)
{
    bool any = false;

    /* as in wait_until_left: whoever waited for them would wait for what never comes */
    if (atomic_load_explicit(&kernels.exits, memory_order_relaxed) || !work_may_wait() ||
        forks_is_child())
        return false;
    pthread_mutex_lock(&kernels.lock);
    /* Acquire: whoever sees that there are none sees what they did. */
    for (const struct code *code = kernels.first; code && !any; code = code->next)
        any = atomic_load_explicit(&code->under_way, memory_order_acquire) != 0;
    pthread_mutex_unlock(&kernels.lock);
    return any;
}

/* --- Launches --- */

static struct configuration *configure(struct configuration c)
{
    struct configuration *all = calling_thread.launch;

    if (calling_thread.launches ==
        NESTED_LAUNCHES_MAX) { /* launches that never came, lost to exceptions */
        memmove(&all[0], &all[1], (NESTED_LAUNCHES_MAX - 1) * sizeof all[0]);
        calling_thread.launches--;
    }
    all[calling_thread.launches] = c;
    return &all[calling_thread.launches++];
}

void gshmem_host_configure(dim3 grid, dim3 block, size_t shared, cudaStream_t stream)
{
    configure((struct configuration){grid, block, shared, stream, false, cudaSuccess});
}

static bool shape_is_right(dim3 grid, dim3 block)
{
    uint64_t threads = (uint64_t)block.x * block.y * block.z;

    return grid.x && grid.y && grid.z && grid.x <= GRID_X_MAX && grid.y <= GRID_YZ_MAX &&
           grid.z <= GRID_YZ_MAX && threads && threads <= BLOCK_THREADS_MAX &&
           block.x <= BLOCK_THREADS_MAX && block.y <= BLOCK_THREADS_MAX && block.z <= BLOCK_Z_MAX;
}

static unsigned blocks_at_once(const struct capacity *c, unsigned threads)
{
    unsigned n = threads ? c->threads / threads : 0;

    return n < c->blocks ? n : c->blocks;
}

static unsigned cooperative_at_once(const struct capacity *c, unsigned threads)
{
    unsigned n = threads ? c->cooperative_threads / threads : 0;

    return n < c->cooperative_blocks ? n : c->cooperative_blocks;
}

/* What is wrong with a launch, said where it takes more than an error's name to know. */
static cudaError_t kernel_check(const struct gshmem_host_kernel *kernel,
                                const struct configuration *c)
{
    struct capacity capacity;
    size_t most = kernel->dynamic_shared_max ? kernel->dynamic_shared_max : SHARED_DEFAULT;
    uint64_t blocks = (uint64_t)c->grid.x * c->grid.y * c->grid.z;
    unsigned threads = c->block.x * c->block.y * c->block.z;

    if (thread_self()) {
        log_error("kernel %s: launched by a kernel; the host device has no dynamic parallelism",
                  kernel->name);
        return cudaErrorNotSupported;
    }
    if (!shape_is_right(c->grid, c->block))
        return cudaErrorInvalidConfiguration;
    if (c->shared > most) {
        log_error("kernel %s: %zu B of dynamic shared memory, but no more than %zu are allowed; "
                  "cudaFuncSetAttribute raises that to %d",
                  kernel->name, c->shared, most, SHARED_MAX);
        return cudaErrorInvalidValue;
    }
    if (!workers_start(&capacity)) {
        if (forks_is_child())
            log_error("kernel %s: this process is a child made by fork, and the host device's "
                      "threads are its "
                      "parent's: it can launch no kernels (cudaErrorInitializationError)",
                      kernel->name);
        return cudaErrorInitializationError;
    }
    if (c->cooperative &&
        blocks > (uint64_t)cooperative_at_once(&capacity, threads) * capacity.workers) {
        log_error("kernel %s: a cooperative launch of %llu blocks of %u threads; %u of them fit at "
                  "once into the memory of this machine",
                  kernel->name, (unsigned long long)blocks, threads,
                  cooperative_at_once(&capacity, threads) * capacity.workers);
        return cudaErrorCooperativeLaunchTooLarge;
    }
    return device_error();
}

static cudaError_t kernel_launch(struct gshmem_host_kernel *kernel, const struct configuration *c,
                                 void *closure, void (*run)(void *), void (*release)(void *))
{
    cudaError_t error = kernel_check(kernel, c);
    struct CUstream_st *stream = stream_find(c->stream);

    if (error)
        return error;
    if (!stream)
        return cudaErrorInvalidResourceHandle;
    if (!kernel->own)
        return cudaErrorInvalidDeviceFunction;
    struct work *w = work_new(WORK_GRID);
    if (!w)
        return cudaErrorMemoryAllocation;
    const struct code *code = kernel->own;
    struct grid *g = &w->launch.grid;
    g->name = kernel->name;
    g->size = c->grid;
    g->block_size = c->block;
    g->state_bytes = code->state_bytes;
    g->static_shared = code->static_shared;
    g->dynamic_shared = g->state_bytes + g->static_shared + c->shared;
    g->cooperative = c->cooperative;
    g->closure = closure;
    g->run = run;
    g->blocks = (uint64_t)c->grid.x * c->grid.y * c->grid.z;
    atomic_init(&g->left, g->blocks);
    w->launch.release = release;
    w->launch.code = kernel->own;
    end_of_exit();
    code_begins(kernel->own);
    error = work_submit(w, stream, NULL);
    if (error || w->capture) /* then its launches count */
        code_ends(kernel->own);
    work_drop(w);
    return error;
}

void gshmem_host_launch(struct gshmem_host_kernel *kernel, void *closure, void (*run)(void *),
                        void (*release)(void *))
{
    if (!calling_thread.launches) {
        release(closure);
        log_error("kernel %s: called without <<<grid, block>>>", kernel->name);
        report_error(cudaErrorMissingConfiguration);
        return;
    }
    struct configuration *c = &calling_thread.launch[--calling_thread.launches];
    c->error = kernel_launch(kernel, c, closure, run, release);
    if (c->error)
        release(closure);
    report_error(c->error);
}

static cudaError_t launch_by_pointer(const void *function, struct configuration c, void **arguments)
{
    struct gshmem_host_kernel *kernel = kernel_find(function);

    if (!kernel) {
        log_error("a launch of %p, which is no __global__ function", function);
        return report_error(cudaErrorInvalidDeviceFunction);
    }
    struct configuration *mine = configure(c);
    kernel->unpack(arguments);
    return mine->error;
}

cudaError_t cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **arguments,
                             size_t shared, cudaStream_t stream)
{
    return launch_by_pointer(
        function, (struct configuration){grid, block, shared, stream, false, cudaSuccess},
        arguments);
}

cudaError_t cudaLaunchCooperativeKernel(const void *function, dim3 grid, dim3 block,
                                        void **arguments, size_t shared, cudaStream_t stream)
{
    return launch_by_pointer(
        function, (struct configuration){grid, block, shared, stream, true, cudaSuccess},
        arguments);
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *function,
                                void **arguments)
{
    bool cooperative = false;

    if (!config || (config->numAttrs && !config->attrs))
        return report_error(cudaErrorInvalidValue);
    cudaError_t error = launch_attributes(config->attrs, config->numAttrs, &cooperative);
    if (error)
        return report_error(error);
    return launch_by_pointer(function,
                             (struct configuration){config->gridDim, config->blockDim,
                                                    config->dynamicSmemBytes, config->stream,
                                                    cooperative, cudaSuccess},
                             arguments);
}

/* --- Attributes --- */

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, const void *function)
{
    const struct gshmem_host_kernel *kernel = kernel_find(function);

    if (!kernel)
        return report_error(cudaErrorInvalidDeviceFunction);
    if (!attributes)
        return report_error(cudaErrorInvalidValue);
    size_t most = kernel->dynamic_shared_max ? kernel->dynamic_shared_max : SHARED_DEFAULT;
    *attributes = (struct cudaFuncAttributes){.maxThreadsPerBlock = BLOCK_THREADS_MAX,
                                              .numRegs = 16,
                                              .ptxVersion = 80,
                                              .binaryVersion = 80,
                                              .maxDynamicSharedSizeBytes = (int)most};
    return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void *function, enum cudaFuncAttribute attribute, int value)
{
    struct gshmem_host_kernel *kernel = kernel_find(function);

    if (!kernel)
        return report_error(cudaErrorInvalidDeviceFunction);
    if (attribute == cudaFuncAttributePreferredSharedMemoryCarveout)
        return cudaSuccess; /* a wish about a cache that is not there */
    if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize || value < 0 ||
        value > SHARED_MAX)
        return report_error(cudaErrorInvalidValue);
    kernel->dynamic_shared_max = (size_t)value;
    return cudaSuccess;
}

cudaError_t cudaFuncSetCacheConfig(const void *function, enum cudaFuncCache config)
{
    if (!kernel_find(function))
        return report_error(cudaErrorInvalidDeviceFunction);
    return config > cudaFuncCachePreferEqual ? report_error(cudaErrorInvalidValue) : cudaSuccess;
}

cudaError_t gshmem_host_cooperative_blocks(int *blocks, const void *function, int threads)
{
    struct capacity capacity;

    if (!kernel_find(function))
        return report_error(cudaErrorInvalidDeviceFunction);
    if (!blocks || threads <= 0 || threads > BLOCK_THREADS_MAX)
        return report_error(cudaErrorInvalidValue);
    if (!workers_start(&capacity))
        return report_error(cudaErrorInitializationError);
    *blocks = (int)(cooperative_at_once(&capacity, (unsigned)threads) * capacity.workers);
    return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *function,
                                                          int threads, size_t shared)
{
    struct capacity capacity;

    if (!kernel_find(function))
        return report_error(cudaErrorInvalidDeviceFunction);
    if (!blocks || threads <= 0 || threads > BLOCK_THREADS_MAX)
        return report_error(cudaErrorInvalidValue);
    if (!workers_start(&capacity))
        return report_error(cudaErrorInitializationError);
    *blocks = shared > SHARED_MAX ? 0 : (int)blocks_at_once(&capacity, (unsigned)threads);
    return cudaSuccess;
}
