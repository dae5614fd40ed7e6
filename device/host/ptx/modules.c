/* Which modules of PTX there are, and their kernels and variables. */
#define _GNU_SOURCE
#include "device/host/ptx/modules.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/log.h"

/* One for the process: constructors register modules. */
static struct {
    pthread_mutex_t lock;
    struct gshmem_host_ptx_module *first;
} modules = {.lock = PTHREAD_MUTEX_INITIALIZER};

void gshmem_host_ptx_register(struct gshmem_host_ptx_module *module)
{
    if (module->size != sizeof *module) {
        log_error(
            "%s: this module of PTX was translated for another version of GSHMEM: its kernels "
            "cannot be launched; compile it again",
            module->file);
        return;
    }
    for (unsigned i = 0; i < module->kernels; i++)
        module->kernel[i]->module = module;
    pthread_mutex_lock(&modules.lock);
    module->next = modules.first;
    modules.first = module;
    pthread_mutex_unlock(&modules.lock);
}

void ptx_module_say(struct gshmem_host_ptx_module *module)
{
    if (__atomic_exchange_n(&module->said, 1, __ATOMIC_RELAXED))
        return;
    log_info("kernels of %s are PTX %s for %s: %llu instructions, %u kernels", module->file,
             module->version, module->target, (unsigned long long)module->instructions,
             module->kernels);
}

void ptx_module_unregister_kernels(struct gshmem_host_ptx_module *module)
{
    for (unsigned i = 0; i < module->kernels; i++)
        gshmem_host_unregister(&module->kernel[i]->record);
}

void gshmem_host_ptx_unregister(struct gshmem_host_ptx_module *module)
{
    ptx_module_unregister_kernels(module);
    pthread_mutex_lock(&modules.lock);
    for (struct gshmem_host_ptx_module **at = &modules.first; *at; at = &(*at)->next) {
        if (*at == module) {
            *at = module->next;
            break;
        }
    }
    pthread_mutex_unlock(&modules.lock);
}

/* The same as key_of() in translate/module.py. */
static uint64_t key_of(const char *text, size_t bytes)
{
    uint64_t key = UINT64_C(0xcbf29ce484222325), word;

    for (size_t at = 0; at < bytes; at += sizeof word) {
        word = 0;
        memcpy(&word, text + at, bytes - at < sizeof word ? bytes - at : sizeof word);
        key = (key ^ word) * UINT64_C(0x100000001b3);
        key ^= key >> 29;
    }
    return key;
}

/* Values of `taken`; a library that was made by cuModuleLoadData begins as taken. */
enum { NEVER, NOW, BEFORE };
_Static_assert(NOW == 1, "PTX_OF_LIBRARY in module.h");

struct gshmem_host_ptx_module *ptx_module_take(const char *text, size_t bytes, bool new)
{
    char key[17];
    struct gshmem_host_ptx_module *module;

    snprintf(key, sizeof key, "%016llx", (unsigned long long)key_of(text, bytes));
    pthread_mutex_lock(&modules.lock);
    for (module = modules.first; module; module = module->next) {
        if ((module->taken == NEVER || (module->taken == BEFORE && !new)) &&
            strcmp(module->key, key) == 0) {
            module->taken = NOW;
            break;
        }
    }
    pthread_mutex_unlock(&modules.lock);
    return module;
}

void ptx_module_give_back(struct gshmem_host_ptx_module *module)
{
    pthread_mutex_lock(&modules.lock);
    module->taken = BEFORE;
    pthread_mutex_unlock(&modules.lock);
}

struct gshmem_host_ptx_kernel *ptx_module_kernel(const struct gshmem_host_ptx_module *module,
                                                 const char *name)
{
    for (unsigned i = 0; i < module->kernels; i++) {
        if (strcmp(module->kernel[i]->name, name) == 0)
            return module->kernel[i];
    }
    return NULL;
}

const struct gshmem_host_ptx_variable *
ptx_module_variable(const struct gshmem_host_ptx_module *module, const char *name)
{
    for (unsigned i = 0; i < module->variables; i++) {
        if (strcmp(module->variable[i].name, name) == 0)
            return &module->variable[i];
    }
    return NULL;
}

/* --- Fat binaries: a header, then entries, each with a header of its own --- */

struct fat_header {
    uint32_t magic;
    uint16_t version, header_bytes;
    uint64_t bytes; /* of all entries */
};

struct fat_entry {
    uint16_t kind, version; /* kind 1 is PTX */
    uint32_t header_bytes;
    uint64_t bytes; /* of what is behind the header */
};

enum { FAT_MAGIC = 0x3a55ed50, FAT_PTX = 1 };

enum ptx_found ptx_in_fat_binary(const void *data, const char **text, size_t *bytes)
{
    struct fat_header header;
    struct fat_entry entry;
    enum ptx_found found = PTX_NONE;

    memcpy(&header, data, sizeof header);
    if ((header.magic & 0x7fffffffu) != FAT_MAGIC || header.header_bytes < sizeof header)
        return PTX_NONE;
    const char *at = (const char *)data + header.header_bytes, *end = at + header.bytes;
    while ((size_t)(end - at) >= sizeof entry) {
        memcpy(&entry, at, sizeof entry);
        if (entry.header_bytes < sizeof entry || entry.bytes > (size_t)(end - at))
            break;
        const char *payload = at + entry.header_bytes;
        if (entry.kind == FAT_PTX) {
            size_t length = entry.bytes;

            while (length && !payload[length - 1])
                length--;
            found = PTX_COMPRESSED;
            if (memmem(payload, length, ".version", 8)) {
                *text = payload;
                *bytes = length;
                return PTX_FOUND;
            }
        }
        at = payload + entry.bytes;
    }
    return found;
}
