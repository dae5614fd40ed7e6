/* The simulated driver: kernels. The host device (libgshmem_host.so) runs the PTX of modules,
 * with all blocks and threads; it has its own copies of CUDA's names, so that it is opened where
 * nobody else finds them.
 *
 * It translates PTX when a module is loaded. For that of the library's own kernel, which takes
 * long, a library was made when the tests were built (SIM_TRANSLATION); the host device knows it
 * by a hash of the PTX. Each module has variables of its own, so each load opens a copy of that
 * library. */
#define _GNU_SOURCE
#include "sim.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

struct sim_module {
    cuda_gpu gpu;
    void *host; /* the host device's module */
    int copy;   /* descriptor of the copy of SIM_TRANSLATION that it runs; -1: none */
    struct sim_function *functions;
    struct sim_module *next;
};

struct sim_function {
    struct sim_module *module;
    void *host;
    struct sim_function *next;
};

struct sim_grid {
    const struct sim_function *function;
    unsigned blocks[3], threads[3], shared;
    bool cooperative;
    size_t bytes;
    char parameters[]; /* as they lie in the kernel's memory */
};

/* ---- The host device ---- */

enum { NON_BLOCKING = 1, PARAMETERS_MOST = 64 };

#define HOST_CALLS(X)                                                                              \
    X(load, cuModuleLoadData, (void **module, const void *image))                                  \
    X(unload, cuModuleUnload, (void *module))                                                      \
    X(function, cuModuleGetFunction, (void **function, void *module, const char *name))            \
    X(global, cuModuleGetGlobal_v2,                                                                \
      (cuda_address * at, size_t * bytes, void *module, const char *name))                         \
    X(parameter, cuFuncGetParamInfo,                                                               \
      (void *function, size_t number, size_t *offset, size_t *bytes))                              \
    X(launch, cuLaunchKernel,                                                                      \
      (void *function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,                 \
       unsigned shared, void *stream, void **parameters, void **extra))                            \
    X(launch_cooperative, cuLaunchCooperativeKernel,                                               \
      (void *function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,                 \
       unsigned shared, void *stream, void **parameters))                                          \
    X(stream_create, cuStreamCreate, (void **stream, unsigned flags))                              \
    X(stream_destroy, cuStreamDestroy_v2, (void *stream))                                          \
    X(stream_wait, cuStreamSynchronize, (void *stream))

static struct {
#define X(name, symbol, arguments) cuda_result(*name) arguments;
    HOST_CALLS(X)
#undef X
    bool open;
    pthread_mutex_t lock; /* of loads: the host device takes the copy that was opened for it */
} host = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* With the lock. It is never closed: its threads run. */
static bool open_host(void)
{
    void *library = host.open ? NULL : dlopen(SIM_HOST_DEVICE, RTLD_NOW | RTLD_LOCAL);

    if (host.open)
        return true;
    if (!library) {
        sim_blame("the host device, which runs kernels, cannot be opened: %s", dlerror());
        return false;
    }
    host.open = true;
#define X(name, symbol, arguments)                                                                 \
    if (!(*(void **)&host.name = dlsym(library, #symbol))) {                                       \
        sim_blame("the host device has no %s", #symbol);                                           \
        host.open = false;                                                                         \
    }
    HOST_CALLS(X)
#undef X
    return host.open;
}

/* ---- Modules ---- */

static struct sim_module *modules; /* under the simulation's lock */

bool sim_module_exists(const struct sim_module *m)
{
    const struct sim_module *known;

    sim_lock();
    for (known = modules; known && known != m; known = known->next)
        ;
    sim_unlock();
    return known != NULL;
}

/* A copy of a file in memory, which dlopen takes for another library; -1: there is none. */
static int copy_of(const char *path)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    int copy = file < 0 ? -1 : memfd_create("translated kernels", MFD_CLOEXEC);
    struct stat s;
    bool whole = copy >= 0 && fstat(file, &s) == 0;

    for (off_t left = whole ? s.st_size : 0; whole && left > 0;) {
        ssize_t part = sendfile(copy, file, NULL, (size_t)left);

        whole = part > 0;
        left -= part;
    }
    if (file >= 0)
        close(file);
    if (whole)
        return copy;
    sim_blame("%s cannot be copied: %s", path, strerror(errno));
    if (copy >= 0)
        close(copy);
    return -1;
}

/* With the lock. The path has this process's number, so that a sanitizer's reader of symbols
 * finds it. */
static void *open_copy(int copy)
{
    char path[64];

    snprintf(path, sizeof path, "/proc/%d/fd/%d", getpid(), copy);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        sim_blame("the library's kernels, translated, cannot be opened: %s", dlerror());
    return library;
}

/* Whether a module runs what was opened from the copy, which then stays mapped. */
static bool is_mapped(int copy)
{
    char path[64];

    snprintf(path, sizeof path, "/proc/%d/fd/%d", getpid(), copy);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    if (library)
        dlclose(library);
    return library != NULL;
}

/* With the lock. The host device takes the translation if it is that of the image, and keeps it. A
 * library without kernels has none. */
static cuda_result load(struct sim_module *m, const void *image)
{
    const char *other = getenv("SIM_TRANSLATION"), *path = other ? other : SIM_TRANSLATION;

    m->copy = *path ? copy_of(path) : -1;
    void *library = m->copy >= 0 ? open_copy(m->copy) : NULL;
    cuda_result result = host.load(&m->host, image);

    if (library)
        dlclose(library);
    if (m->copy >= 0 && !is_mapped(m->copy)) {
        close(m->copy);
        m->copy = -1;
    }
    return result;
}

cuda_result sim_module_load(struct sim_module **out, cuda_gpu gpu, const void *image)
{
    struct sim_module *m = calloc(1, sizeof *m);
    cuda_result result = CUDA_NOT_SUPPORTED;

    if (!m)
        return CUDA_OUT_OF_MEMORY;
    m->gpu = gpu;
    pthread_mutex_lock(&host.lock);
    if (open_host())
        result = load(m, image);
    pthread_mutex_unlock(&host.lock);
    if (result) {
        free(m);
        return result;
    }
    sim_lock();
    m->next = modules;
    modules = m;
    sim_unlock();
    *out = m;
    return CUDA_OK;
}

static void forget(const struct sim_module *m)
{
    sim_lock();
    for (struct sim_module **at = &modules; *at; at = &(*at)->next) {
        if (*at == m) {
            *at = m->next;
            break;
        }
    }
    sim_unlock();
}

cuda_result sim_module_unload(struct sim_module *m)
{
    cuda_result result;

    forget(m);
    pthread_mutex_lock(&host.lock);
    result = host.unload(m->host);
    if (m->copy >= 0)
        close(m->copy);
    pthread_mutex_unlock(&host.lock);
    while (m->functions) {
        struct sim_function *f = m->functions;

        m->functions = f->next;
        free(f);
    }
    free(m);
    return result;
}

cuda_result sim_module_function(struct sim_function **out, struct sim_module *m, const char *name)
{
    struct sim_function *f = calloc(1, sizeof *f);
    cuda_result result = f ? host.function(&f->host, m->host, name) : CUDA_OUT_OF_MEMORY;

    if (result) {
        free(f);
        return result;
    }
    f->module = m;
    sim_lock();
    f->next = m->functions;
    m->functions = f;
    sim_unlock();
    *out = f;
    return CUDA_OK;
}

cuda_result sim_module_global(cuda_address *at, size_t *bytes, const struct sim_module *m,
                              const char *name)
{
    return host.global(at, bytes, m->host, name);
}

/* ---- Launches ---- */

/* How many bytes all parameters take. */
static size_t parameter_bytes(const struct sim_function *f)
{
    size_t offset, bytes, end = 0;

    for (size_t i = 0; host.parameter(f->host, i, &offset, &bytes) == CUDA_OK; i++)
        end = offset + bytes > end ? offset + bytes : end;
    return end;
}

struct sim_grid *sim_grid_make(const struct sim_function *f, const unsigned size[6],
                               unsigned shared, bool cooperative, void *const *arguments)
{
    size_t all = parameter_bytes(f), offset, bytes;
    struct sim_grid *g = calloc(1, sizeof *g + all);

    if (!g)
        return NULL;
    g->function = f;
    memcpy(g->blocks, size, sizeof g->blocks);
    memcpy(g->threads, size + 3, sizeof g->threads);
    g->shared = shared;
    g->cooperative = cooperative;
    g->bytes = all;
    for (size_t i = 0; host.parameter(f->host, i, &offset, &bytes) == CUDA_OK; i++)
        memcpy(g->parameters + offset, arguments[i], bytes);
    return g;
}

struct sim_grid *sim_grid_copy(const struct sim_grid *g)
{
    struct sim_grid *copy = malloc(sizeof *g + g->bytes);

    if (copy)
        memcpy(copy, g, sizeof *g + g->bytes);
    return copy;
}

cuda_gpu sim_function_gpu(const struct sim_function *f)
{
    return f->module->gpu;
}

cuda_result sim_grid_run(struct sim_grid *g, void **stream)
{
    void *arguments[PARAMETERS_MOST], *function = g->function->host;
    const unsigned *b = g->blocks, *t = g->threads;
    cuda_result result = *stream ? CUDA_OK : host.stream_create(stream, NON_BLOCKING);
    size_t n = 0, offset;

    while (n < PARAMETERS_MOST && host.parameter(function, n, &offset, NULL) == CUDA_OK)
        arguments[n++] = g->parameters + offset;
    if (!result && g->cooperative)
        result = host.launch_cooperative(function, b[0], b[1], b[2], t[0], t[1], t[2], g->shared,
                                         *stream, arguments);
    else if (!result)
        result = host.launch(function, b[0], b[1], b[2], t[0], t[1], t[2], g->shared, *stream,
                             arguments, NULL);
    return result ? result : host.stream_wait(*stream);
}

void sim_grid_end_stream(void *stream)
{
    if (stream)
        host.stream_destroy(stream);
}
