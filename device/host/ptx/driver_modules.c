/* Modules that a program loads by the driver's API: PTX, which is translated and compiled then,
 * unless a library that was made of the same PTX is open. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device/host/errors.h"
#include "device/host/ptx/modules.h"
#include "gshmem/host_device/cuda.h"
#include "runtime/base/log.h"

extern char **environ;

enum {
    FAT_BINARY_HEAD = 16, /* bytes, with the number of those that follow it */
    ATTRIBUTES_MOST = 32  /* of a launch */
};
_Static_assert(sizeof(CUlaunchAttribute) == 72 && sizeof(CUlaunchConfig) == 56, "CUDA's layout");

struct CUmod_st {
    struct CUmod_st *next;
    void *library; /* of dlopen; NULL: the translation is in the program itself */
    struct gshmem_host_ptx_module *module;
};

/* Those that are loaded: a handle that is none of them is refused. */
static struct {
    pthread_mutex_t lock;
    struct CUmod_st *first;
} loaded = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void loaded_enter(struct CUmod_st *made)
{
    pthread_mutex_lock(&loaded.lock);
    made->next = loaded.first;
    loaded.first = made;
    pthread_mutex_unlock(&loaded.lock);
}

static bool loaded_has(const struct CUmod_st *module)
{
    bool found = false;

    pthread_mutex_lock(&loaded.lock);
    for (const struct CUmod_st *at = loaded.first; at && !found; at = at->next)
        found = at == module;
    pthread_mutex_unlock(&loaded.lock);
    return found;
}

/* False: it was none of them. */
static bool loaded_leave(const struct CUmod_st *module)
{
    bool found = false;

    pthread_mutex_lock(&loaded.lock);
    for (struct CUmod_st **at = &loaded.first; *at && !found; at = found ? at : &(*at)->next) {
        if (*at == module) {
            *at = module->next;
            found = true;
        }
    }
    pthread_mutex_unlock(&loaded.lock);
    return found;
}

/* The translator: beside this library in a build tree, else where it was installed. */
static bool find_tool(char *path, size_t size, char own_path[PATH_MAX])
{
    static const char *const places[] = {"ptx-tools", GSHMEM_PTX_TOOLS};
    Dl_info info;
    char own[PATH_MAX];

    if (!dladdr((void *)(uintptr_t)find_tool, &info) || !realpath(info.dli_fname, own))
        return false;
    strcpy(own_path, own);
    const char *folder = dirname(own);
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        if ((size_t)snprintf(path, size, "%s/%s/gshmem-ptx", folder, places[i]) < size &&
            access(path, X_OK) == 0)
            return true;
    }
    return false;
}

/* Runs the translator; it prints what is wrong. */
static bool run_tool(const char *source, const char *library)
{
    char tool[PATH_MAX + 64], own[PATH_MAX];
    pid_t child;
    int status;

    if (!find_tool(tool, sizeof tool, own)) {
        log_error("a module of PTX cannot be loaded: gshmem-ptx, which translates it, is not "
                  "installed beside this library");
        return false;
    }
    char *arguments[] = {tool, (char *)"--library", (char *)source, (char *)library, own, NULL};
    int error = posix_spawn(&child, tool, NULL, NULL, arguments, environ);
    if (error) {
        log_error("a module of PTX cannot be loaded: starting %s: %s", tool, strerror(error));
        return false;
    }
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool write_text(const char *path, const char *text, size_t bytes)
{
    FILE *file = fopen(path, "w");

    if (!file)
        return false;
    bool ok = fwrite(text, 1, bytes, file) == bytes;
    return (fclose(file) == 0) & ok;
}

/* A library of its own for each load: the module's variables are its own. */
static void *compile_text(const char *text, size_t bytes)
{
    const char *temporary = getenv("TMPDIR");
    char folder[PATH_MAX], source[PATH_MAX + 16], library[PATH_MAX + 16];
    void *opened = NULL;

    snprintf(folder, sizeof folder, "%s/gshmem-ptx-XXXXXX", temporary ? temporary : "/tmp");
    if (!mkdtemp(folder)) {
        log_error("a module of PTX cannot be loaded: no folder %s: %s", folder, strerror(errno));
        return NULL;
    }
    snprintf(source, sizeof source, "%s/module.ptx", folder);
    snprintf(library, sizeof library, "%s/module.so", folder);
    if (!write_text(source, text, bytes))
        log_error("a module of PTX cannot be loaded: writing %s: %s", source, strerror(errno));
    else if (run_tool(source, library) && !(opened = dlopen(library, RTLD_NOW | RTLD_LOCAL)))
        log_error("a module of PTX cannot be loaded: %s", dlerror());
    unlink(source);
    unlink(library);
    rmdir(folder);
    return opened;
}

/* PTX as it is, or in a fat binary; NULL: neither. */
static const char *text_of(const void *image, size_t *bytes)
{
    const char *text = NULL;

    if (memcmp(image, "\x50\xed\x55\xba", 4) == 0)
        return ptx_in_fat_binary(image, &text, bytes) == PTX_FOUND ? text : NULL;
    if (memcmp(image,
               "\x7f"
               "ELF",
               4) == 0)
        return NULL;
    *bytes = strlen(image);
    return strstr(image, ".version") ? image : NULL;
}

/* The module that a library was made of; NULL: the translator is of another version of GSHMEM. */
static struct gshmem_host_ptx_module *module_of(void *library)
{
    struct gshmem_host_ptx_module *(*find)(void);

    *(void **)&find = dlsym(library, PTX_MODULE_OF_LIBRARY);
    struct gshmem_host_ptx_module *module = find ? find() : NULL;
    if (module && module->size == sizeof *module)
        return module;
    log_error("a module of PTX cannot be loaded: the code that gshmem-ptx made of it is not for "
              "this library; the two are of different versions of GSHMEM");
    return NULL;
}

/* The library that a record lies in, once more, so that it stays; NULL: the program itself. */
static void *library_of(const void *record)
{
    Dl_info info;

    return dladdr(record, &info) ? dlopen(info.dli_fname, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD)
                                 : NULL;
}

/* Finds a translation of the text that is free, or makes one; false: that was said. */
static bool open_translation(struct CUmod_st *made, const char *text, size_t bytes)
{
    made->module = ptx_module_take(text, bytes, true);
    if (made->module) {
        made->library = library_of(made->module);
    } else {
        made->library = compile_text(text, bytes);
        made->module = made->library ? module_of(made->library) : NULL;
    }
    return made->module && ptx_module_register_kernels(made->module);
}

/* Waits for its launches. A translation that stays open is not given back: its variables no longer
 * have their first values. */
static void close_translation(const struct CUmod_st *made)
{
    if (made->module)
        ptx_module_unregister_kernels(made->module);
    if (made->library)
        dlclose(made->library);
}

CUresult cuModuleLoadData(CUmodule *out, const void *image)
{
    size_t bytes;
    const char *text = out && image ? text_of(image, &bytes) : NULL;

    if (!out || !image)
        return CUDA_ERROR_INVALID_VALUE;
    if (!text) {
        log_error(
            "a module that is loaded has no PTX, or compressed PTX: the host device runs nothing "
            "else");
        return CUDA_ERROR_INVALID_IMAGE;
    }
    struct CUmod_st *made = calloc(1, sizeof *made);
    if (!made)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (!open_translation(made, text, bytes)) {
        close_translation(made);
        free(made);
        return CUDA_ERROR_INVALID_PTX;
    }
    loaded_enter(made);
    *out = made;
    return CUDA_SUCCESS;
}

CUresult cuModuleLoadFatBinary(CUmodule *out, const void *image)
{
    return cuModuleLoadData(out, image);
}

/* A file's bytes with a zero behind them, to be freed; NULL: it cannot be read, with errno. */
static char *read_image(const char *path, size_t *bytes)
{
    FILE *file = fopen(path, "re");
    char *image = NULL;
    long end;

    if (!file)
        return NULL;
    if (fseek(file, 0, SEEK_END) == 0 && (end = ftell(file)) >= 0 &&
        fseek(file, 0, SEEK_SET) == 0 && (image = calloc(1, (size_t)end + FAT_BINARY_HEAD))) {
        *bytes = fread(image, 1, (size_t)end, file);
        if (*bytes != (size_t)end) {
            free(image);
            image = NULL;
        }
    }
    fclose(file);
    return image;
}

/* Whether a fat binary ends within so many bytes: its head has the bytes of what follows it. */
static bool fat_binary_is_whole(const char *image, size_t bytes)
{
    uint64_t rest;

    memcpy(&rest, image + 8, sizeof rest);
    return bytes >= FAT_BINARY_HEAD && rest <= bytes - FAT_BINARY_HEAD;
}

CUresult cuModuleLoad(CUmodule *out, const char *path)
{
    size_t bytes, text_bytes;
    CUresult result;

    if (!out || !path)
        return CUDA_ERROR_INVALID_VALUE;
    char *image = read_image(path, &bytes);
    if (!image)
        return errno == ENOMEM ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_FILE_NOT_FOUND;
    const bool fat = memcmp(image, "\x50\xed\x55\xba", 4) == 0;
    if (fat && !fat_binary_is_whole(image, bytes)) {
        result = CUDA_ERROR_INVALID_IMAGE;
    } else if ((fat || memcmp(image, "\177ELF", 4) == 0) && !text_of(image, &text_bytes)) {
        log_error("%s has code of GPUs and no PTX that could be translated: the host device runs "
                  "kernels of nvcc's as PTX alone (nvcc -ptx, or gshmemcc --device=ptx)",
                  path);
        result = CUDA_ERROR_NOT_SUPPORTED;
    } else {
        result = cuModuleLoadData(out, image);
    }
    free(image);
    return result;
}

CUresult cuModuleLoadDataEx(CUmodule *out, const void *image, unsigned options, int *option,
                            void **value)
{
    (void)options, (void)option, (void)value; /* of the assembler, which there is none of */
    return cuModuleLoadData(out, image);
}

CUresult cuModuleUnload(CUmodule module)
{
    if (!module)
        return CUDA_ERROR_INVALID_VALUE;
    if (!loaded_leave(module))
        return CUDA_ERROR_INVALID_HANDLE;
    close_translation(module);
    free(module);
    return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction *out, CUmodule module, const char *name)
{
    if (!out || !module || !name)
        return CUDA_ERROR_INVALID_VALUE;
    if (!loaded_has(module))
        return CUDA_ERROR_INVALID_HANDLE;
    struct gshmem_host_ptx_kernel *kernel = ptx_module_kernel(module->module, name);
    if (!kernel)
        return CUDA_ERROR_NOT_FOUND;
    *out = (CUfunction)kernel;
    return CUDA_SUCCESS;
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr *at, size_t *bytes, CUmodule module, const char *name)
{
    if (!module || !name)
        return CUDA_ERROR_INVALID_VALUE;
    if (!loaded_has(module))
        return CUDA_ERROR_INVALID_HANDLE;
    const struct gshmem_host_ptx_variable *variable = ptx_module_variable(module->module, name);
    if (!variable)
        return CUDA_ERROR_NOT_FOUND;
    if (at)
        *at = (CUdeviceptr)(uintptr_t)variable->at;
    if (bytes)
        *bytes = variable->bytes;
    return CUDA_SUCCESS;
}

CUresult cuFuncGetParamInfo(CUfunction function, size_t number, size_t *offset, size_t *bytes)
{
    const struct gshmem_host_ptx_kernel *kernel = (const struct gshmem_host_ptx_kernel *)function;

    if (!kernel || !offset || number >= kernel->parameters)
        return CUDA_ERROR_INVALID_VALUE;
    *offset = kernel->parameter[number].offset;
    if (bytes)
        *bytes = kernel->parameter[number].bytes;
    return CUDA_SUCCESS;
}

/* What the runtime's error is called by the driver. */
static CUresult driver_error(cudaError_t error)
{
    switch (error) {
    case cudaSuccess:
        return CUDA_SUCCESS;
    case cudaErrorMemoryAllocation:
        return CUDA_ERROR_OUT_OF_MEMORY;
    case cudaErrorLaunchFailure:
        return CUDA_ERROR_LAUNCH_FAILED;
    case cudaErrorInvalidResourceHandle:
        return CUDA_ERROR_INVALID_HANDLE;
    case cudaErrorCooperativeLaunchTooLarge:
        return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
    case cudaErrorNotSupported:
        return CUDA_ERROR_NOT_SUPPORTED;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

/* Code for one size of blocks computes something else with another: Triton's does. */
static bool takes_blocks(const struct gshmem_host_ptx_kernel *kernel, unsigned x, unsigned y,
                         unsigned z)
{
    const u32 *due = kernel->block;

    if (due[0] == 0 || (due[0] == x && due[1] == y && due[2] == z))
        return true;
    log_error("kernel %s: a launch with blocks of %u x %u x %u threads; it was compiled for blocks "
              "of %u x %u x %u (.reqntid)",
              kernel->name, x, y, z, due[0], due[1], due[2]);
    return false;
}

CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                        unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                        CUstream stream, void **parameters, void **extra)
{
    const struct gshmem_host_ptx_kernel *kernel = (const struct gshmem_host_ptx_kernel *)function;

    if (!kernel || extra || (kernel->parameters && !parameters) ||
        !takes_blocks(kernel, block_x, block_y, block_z))
        return CUDA_ERROR_INVALID_VALUE;
    return driver_error(cudaLaunchKernel(kernel->record.function, (dim3){grid_x, grid_y, grid_z},
                                         (dim3){block_x, block_y, block_z}, parameters, shared,
                                         stream));
}

CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned grid_x, unsigned grid_y,
                                   unsigned grid_z, unsigned block_x, unsigned block_y,
                                   unsigned block_z, unsigned shared, CUstream stream,
                                   void **parameters)
{
    const struct gshmem_host_ptx_kernel *kernel = (const struct gshmem_host_ptx_kernel *)function;

    if (!kernel || (kernel->parameters && !parameters) ||
        !takes_blocks(kernel, block_x, block_y, block_z))
        return CUDA_ERROR_INVALID_VALUE;
    return driver_error(cudaLaunchCooperativeKernel(
        kernel->record.function, (dim3){grid_x, grid_y, grid_z}, (dim3){block_x, block_y, block_z},
        parameters, shared, stream));
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **parameters,
                          void **extra)
{
    const struct gshmem_host_ptx_kernel *kernel = (const struct gshmem_host_ptx_kernel *)function;
    cudaLaunchAttribute attributes[ATTRIBUTES_MOST];

    if (!config || !kernel || extra || (kernel->parameters && !parameters) ||
        config->numAttrs > ATTRIBUTES_MOST || (config->numAttrs && !config->attrs) ||
        !takes_blocks(kernel, config->blockDimX, config->blockDimY, config->blockDimZ))
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < config->numAttrs; i++) {
        attributes[i].id = (cudaLaunchAttributeID)config->attrs[i].id;
        memcpy(&attributes[i].val, &config->attrs[i].value, sizeof attributes[i].val);
    }
    const cudaLaunchConfig_t same = {
        .gridDim = {config->gridDimX, config->gridDimY, config->gridDimZ},
        .blockDim = {config->blockDimX, config->blockDimY, config->blockDimZ},
        .dynamicSmemBytes = config->sharedMemBytes,
        .stream = config->hStream,
        .attrs = attributes,
        .numAttrs = config->numAttrs,
    };
    return driver_error(cudaLaunchKernelExC(&same, kernel->record.function, parameters));
}

CUresult cuStreamCreate(CUstream *stream, unsigned flags)
{
    return driver_error(cudaStreamCreateWithFlags(stream, flags));
}

CUresult cuStreamDestroy_v2(CUstream stream)
{
    return driver_error(cudaStreamDestroy(stream));
}

CUresult cuStreamSynchronize(CUstream stream)
{
    return driver_error(cudaStreamSynchronize(stream));
}

CUresult cuCtxSynchronize(void)
{
    return driver_error(cudaDeviceSynchronize());
}
