/* What the system says about this process and its CPUs. */
#ifndef PERF_MACHINE_H
#define PERF_MACHINE_H

#include <stdint.h>

/* Where a PE runs, as it tells PE 0. */
struct place {
    uint64_t node;     /* digest of the node's name */
    uint64_t cpus[16]; /* those it may run on: bit i % 64 of word i / 64 */
};

void place_find(struct place *p);
/* Of the n places, those on the node of the first: how many, and on how many CPUs. */
void place_count(const struct place *p, int n, int *pes, int *cpus);

uint64_t machine_ns(void);
/* This process's share of memory (Pss), in KiB; < 0 if the system does not say. */
double machine_memory(void);

#endif
