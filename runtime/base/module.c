#define _GNU_SOURCE
#include "runtime/base/module.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/settings.h"

/* Relative to the directory of libgshmem.so: where modules are installed, and where they are
 * built. */
static const char *const places[] = {"gshmem", "bootstrap/pmix", "bootstrap/mpi", "transport/verbs",
                                     "device/cuda"};

static void *open_at(const char *directory, const char *below, const char *name, char *why,
                     size_t why_size)
{
    char path[4096];

    if (snprintf(path, sizeof path, "%s%s%s/gshmem-%s.so", directory, below ? "/" : "",
                 below ? below : "", name) >= (int)sizeof path)
        return NULL;
    if (access(path, F_OK) != 0)
        return NULL;
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!handle)
        snprintf(why, why_size, "%s", dlerror());
    return handle;
}

static void *open_module(const char *name, char *why, size_t why_size)
{
    Dl_info self;
    char directory[4096];
    const char *first = settings_string(SETTING_MODULE_DIR);

    snprintf(why, why_size, "module gshmem-%s.so is not installed", name);
    if (strchr(name, '/')) {
        void *handle = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
        if (!handle)
            snprintf(why, why_size, "%s", dlerror());
        return handle;
    }
    if (first[0]) {
        void *handle = open_at(first, NULL, name, why, why_size);
        if (handle)
            return handle;
    }
    if (!dladdr((void *)module_symbol, &self) || !self.dli_fname || !strrchr(self.dli_fname, '/'))
        return NULL;
    snprintf(directory, sizeof directory, "%.*s",
             (int)(strrchr(self.dli_fname, '/') - self.dli_fname), self.dli_fname);
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        void *handle = open_at(directory, places[i], name, why, why_size);
        if (handle)
            return handle;
    }
    return NULL;
}

void *module_symbol(const char *name, const char *symbol, char *why, size_t why_size)
{
    void *handle = open_module(name, why, why_size);

    if (!handle)
        return NULL;
    void *found = dlsym(handle, symbol);
    if (!found)
        snprintf(why, why_size, "%s: %s has no symbol %s", name, name, symbol);
    return found;
}
