#include "device/cuda/driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static const struct entry {
    const char *symbol;
    size_t at; /* in struct cuda_driver */
} entries[] = {
#define X(name, symbol, arguments) {#symbol, offsetof(struct cuda_driver, name)},
    CUDA_DRIVER(X)
#undef X
};

/* In the place of what the driver is too old for. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#define X(name, symbol, arguments)                                                                 \
    static cuda_result lacks_##name arguments                                                      \
    {                                                                                              \
        return CUDA_NOT_SUPPORTED;                                                                 \
    }
CUDA_DRIVER_NEWER(X)
#undef X
#pragma GCC diagnostic pop

static void find_newer_entries(struct cuda_driver *d)
{
    void *found;

#define X(name, symbol, arguments)                                                                 \
    d->name = lacks_##name;                                                                        \
    if ((found = dlsym(d->library, #symbol)))                                                      \
        memcpy(&d->name, &found, sizeof found);
    CUDA_DRIVER_NEWER(X)
#undef X
}

const struct cuda_newer cuda_newer[CUDA_NEWER_NAMES] = {
    [CUDA_NEWER_FLUSH] = {"cuFlushGPUDirectRDMAWrites", 11030,
                          "NICs write only to GPUs that order such writes"},
    [CUDA_NEWER_EXPORT] = {"cuMemGetHandleForAddressRange", 11070, "NICs are given no dma-bufs"},
    [CUDA_NEWER_LIBRARY] = {"cuLibraryGetGlobal", 12000, "gshmem_culibrary_init fails"},
    [CUDA_NEWER_MULTICAST] = {"cuMulticast", 12010, "collectives store to each PE"},
};

bool cuda_driver_has(const struct cuda_driver *d, enum cuda_newer_name what)
{
    static const char *const symbols[] = {
#define X(name, symbol, arguments) #symbol,
        CUDA_DRIVER_NEWER(X)
#undef X
    };
    const char *beginning = cuda_newer[what].entries;

    for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++) {
        if (strncmp(symbols[i], beginning, strlen(beginning)) == 0 &&
            !dlsym(d->library, symbols[i]))
            return false;
    }
    return true;
}

static bool find_entries(struct cuda_driver *d, const char **missing)
{
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
        void *found = dlsym(d->library, entries[i].symbol);
        if (!found) {
            *missing = entries[i].symbol;
            return false;
        }
        memcpy((char *)d + entries[i].at, &found, sizeof found);
    }
    find_newer_entries(d);
    return true;
}

/* An old driver lacks entry points, so that its version is asked before they are all looked for. */
static bool new_enough(const struct cuda_driver *d, char *why, size_t why_size)
{
    cuda_result (*version_of)(int *) = NULL;
    void *found = dlsym(d->library, "cuDriverGetVersion");
    int version = 0;

    memcpy(&version_of, &found, sizeof found);
    if (!version_of || version_of(&version) != CUDA_OK) {
        snprintf(why, why_size, "the libcuda.so.1 that was found is no NVIDIA driver");
        return false;
    }
    if (version < CUDA_VERSION_LEAST) {
        snprintf(
            why, why_size,
            "the NVIDIA driver is for CUDA %d.%d, and GSHMEM needs one for CUDA %d.%d or newer: "
            "update it",
            version / 1000, version % 1000 / 10, CUDA_VERSION_LEAST / 1000,
            CUDA_VERSION_LEAST % 1000 / 10);
        return false;
    }
    return true;
}

static bool driver_start(struct cuda_driver *d, char *why, size_t why_size)
{
    const char *missing;
    cuda_result result;

    if (!new_enough(d, why, why_size))
        return false;
    if (!find_entries(d, &missing)) {
        snprintf(why, why_size, "the NVIDIA driver (libcuda.so.1) has no %s", missing);
        return false;
    }
    if ((result = d->init(0)) == CUDA_NO_DEVICE) {
        snprintf(
            why, why_size,
            "the NVIDIA driver is here, but no GPU (nvidia-smi -L lists them; a container is given "
            "some with --gpus)");
        return false;
    }
    if (result) {
        snprintf(why, why_size, "starting the NVIDIA driver (cuInit): %s",
                 cuda_error(d, result).text);
        return false;
    }
    return true;
}

bool cuda_driver_open(struct cuda_driver *d, char *why, size_t why_size)
{
    *d = (struct cuda_driver){.library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL)};
    if (!d->library) {
        snprintf(why, why_size,
                 "there is no NVIDIA driver (%s): install one, or in a container mount it",
                 dlerror());
        return false;
    }
    if (driver_start(d, why, why_size))
        return true;
    cuda_driver_close(d);
    return false;
}

void cuda_driver_close(struct cuda_driver *d)
{
    dlclose(d->library);
    d->library = NULL;
}

struct cuda_text cuda_error(const struct cuda_driver *d, cuda_result result)
{
    const char *name = NULL, *text = NULL;
    struct cuda_text t;

    if (d->error_name(result, &name) || !name)
        name = "an error that the driver has no name for";
    if (d->error_text(result, &text) || !text)
        text = "it failed";
    snprintf(t.text, sizeof t.text, "%s (%s, %d)", text, name, result);
    return t;
}
