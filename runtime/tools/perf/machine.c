/* Clock, CPUs and memory, from Linux. */
#define _GNU_SOURCE /* affinity */
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "machine.h"

static uint64_t machine_digest(const char *text)
{
    uint64_t h = 14695981039346656037u;

    while (*text)
        h = (h ^ (unsigned char)*text++) * 1099511628211u;
    return h;
}

void place_find(struct place *p)
{
    char name[256] = "";
    cpu_set_t set;

    memset(p, 0, sizeof(*p));
    gethostname(name, sizeof(name) - 1);
    p->node = machine_digest(name);
    CPU_ZERO(&set);
    sched_getaffinity(0, sizeof(set), &set);
    for (int i = 0; i < 1024; i++)
        if (CPU_ISSET(i, &set))
            p->cpus[i / 64] |= 1ull << (i % 64);
}

void place_count(const struct place *p, int n, int *pes, int *cpus)
{
    uint64_t all[16] = {0};

    *pes = *cpus = 0;
    for (int i = 0; i < n; i++) {
        if (p[i].node != p[0].node)
            continue;
        ++*pes;
        for (int w = 0; w < 16; w++)
            all[w] |= p[i].cpus[w];
    }
    for (int w = 0; w < 16; w++)
        *cpus += __builtin_popcountll(all[w]);
}

uint64_t machine_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

double machine_memory(void)
{
    FILE *f = fopen("/proc/self/smaps_rollup", "r");
    char line[256];
    double kib = -1;

    if (!f)
        return -1;
    while (fgets(line, sizeof(line), f))
        if (sscanf(line, "Pss: %lf kB", &kib) == 1)
            break;
    fclose(f);
    return kib;
}
