#define _GNU_SOURCE
#include "runtime/memory/caller.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

#include "runtime/where/symbols.h"

enum { FRAMES = 16 };

struct caller_place caller_place(const void *from)
{
    struct caller_place p = {.file = NULL};
    struct link_map *map = NULL;
    Dl_info info;

    /* -1: of the call that the address follows */
    if (!from || !dladdr1((const char *)from - 1, &info, (void **)&map, RTLD_DL_LINKMAP) || !map)
        return p;
    p.at = (uintptr_t)from - 1 - map->l_addr;
    p.path = map->l_name[0] ? map->l_name : "/proc/self/exe";
    p.file = strrchr(info.dli_fname, '/');
    p.file = p.file ? p.file + 1 : info.dli_fname;
    if (!symbols_find(p.path, p.at, true, p.function, sizeof p.function, &p.offset))
        p.function[0] = 0;
    return p;
}

void caller_name(char *text, size_t size, const void *from)
{
    const struct caller_place p = caller_place(from);

    if (!p.file)
        snprintf(text, size, "an unknown place");
    else if (p.function[0])
        snprintf(text, size, "%s+%#llx (%s+%#llx)", p.function, (unsigned long long)p.offset,
                 p.file, (unsigned long long)p.at);
    else
        snprintf(text, size, "%s+%#llx", p.file, (unsigned long long)p.at);
}

/* C++ has "_ZL14nvshmem_putmemPvPKvmi". */
static const char *without_mangling(const char *function)
{
    if (strncmp(function, "_Z", 2) != 0)
        return function;
    function += 2 + strspn(function + 2, "NL");
    return function + strspn(function, "0123456789");
}

bool caller_is_of_ours(const void *from)
{
    static const char *const names[] = {"gshmem_", "shmem_", "shmemx_", "nvshmem_", "nvshmemx_"};
    const struct caller_place p = caller_place(from);
    const char *name = without_mangling(p.function);
    bool ours = p.file && strncmp(p.file, "libgshmem", 9) == 0;

    /* a kernel of the program, inlined in what launches it on the host device */
    if (strncmp(name, "gshmem_host6kernel", 18) == 0)
        return false;
    for (size_t i = 0; i < sizeof names / sizeof names[0] && !ours; i++)
        ours = strncmp(name, names[i], strlen(names[i])) == 0;
    return ours;
}

const void *caller_find(void)
{
    void *frame[FRAMES];
    Dl_info own, info;
    const int n = backtrace(frame, FRAMES);

    if (!dladdr((void *)(uintptr_t)caller_find, &own))
        return NULL;
    for (int i = 0; i < n; i++) {
        if (dladdr(frame[i], &info) && info.dli_fbase != own.dli_fbase &&
            !caller_is_of_ours(frame[i]))
            return frame[i];
    }
    return NULL;
}
