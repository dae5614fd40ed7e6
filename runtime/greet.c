#define _GNU_SOURCE
#include "runtime/greet.h"

#include <sched.h>

#include "gshmem.h"
#include "runtime/node/node.h"

const char *greet_automatic(enum setting s, char *text, size_t size)
{
    cpu_set_t mask;

    if (s == SETTING_HEAP_MAX)
        snprintf(text, size, "here: %llu MiB for all PEs",
                 (unsigned long long)node_memory_bytes() >> 20);
    else if (s == SETTING_HOST_THREADS && sched_getaffinity(0, sizeof mask, &mask) == 0)
        snprintf(text, size, "here: %d", CPU_COUNT(&mask));
    return text;
}

void greet(FILE *to)
{
    char name[64];

    if (settings_number(SETTING_INFO) == CHOICE_INFO_OFF)
        return;
    gshmem_info_get_name(name);
    fprintf(to, "%s\n", name);
    if (settings_number(SETTING_INFO) == CHOICE_INFO_SETTINGS)
        settings_print(to, NULL, greet_automatic);
    fflush(to);
}
