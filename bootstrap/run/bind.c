#define _GNU_SOURCE
#include "bootstrap/run/bind.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bootstrap/run/say.h"

/* The lowest CPU of a CPU's core; the CPU itself where the kernel does not tell. */
static int first_of_core(int cpu)
{
    char path[80];
    int first = cpu;

    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
    FILE *f = fopen(path, "re");
    if (!f)
        return cpu;
    if (fscanf(f, "%d", &first) != 1)
        first = cpu;
    fclose(f);
    return first;
}

struct bind_core *bind_cores(int *n)
{
    cpu_set_t allowed[BIND_CPU_MAX / CPU_SETSIZE];
    struct bind_core *cores = NULL;

    *n = 0;
    memset(allowed, 0, sizeof allowed);
    if (sched_getaffinity(0, sizeof allowed, allowed) != 0) {
        say("--bind core: which CPUs may be used? %s", strerror(errno));
        return NULL;
    }
    for (int cpu = 0; cpu < BIND_CPU_MAX; cpu++) {
        if (!CPU_ISSET_S(cpu, sizeof allowed, allowed))
            continue;
        int at = 0, first = first_of_core(cpu);
        while (at < *n && cores[at].first_cpu != first)
            at++;
        if (at == *n) {
            struct bind_core *grown = realloc(cores, (size_t)(*n + 1) * sizeof *grown);
            if (!grown) {
                say("out of memory");
                free(cores);
                return NULL;
            }
            cores = grown;
            memset(&cores[at], 0, sizeof cores[at]);
            cores[at].first_cpu = first;
            (*n)++;
        }
        CPU_SET_S(cpu, sizeof cores[at].cpus, cores[at].cpus);
    }
    return cores;
}
