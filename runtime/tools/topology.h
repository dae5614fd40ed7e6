/* The machine as PEs see it when they choose CPUs, GPUs and NICs: gshmem-info --topology. */
#ifndef GSHMEM_RUNTIME_TOOLS_TOPOLOGY_H
#define GSHMEM_RUNTIME_TOOLS_TOPOLOGY_H

#include <sched.h>
#include <stdbool.h>
#include <stdio.h>

#include "runtime/node/nics.h"

enum { TOPOLOGY_NODES = 64, TOPOLOGY_PES = 1024 };

struct topology_node {
    int number; /* -1: of devices whose NUMA node is not known */
    char cpus[8192];
};

struct topology_pe {
    int cpu;
    char gpu[16]; /* "": none */
    bool nic[NICS_MOST]; /* the nearest of those that do RDMA */
    const char *how_near; /* "": that is not known */
};

struct topology {
    struct topology_node node[TOPOLOGY_NODES + 1];
    int nodes;
    char gpu[GPUS_MOST][16];
    int gpu_node[GPUS_MOST], gpus;
    struct nic nic[NICS_MOST];
    int nic_node[NICS_MOST], nics;
    enum nic_distance distance[NICS_MOST][GPUS_MOST];
    struct topology_pe pe[TOPOLOGY_PES]; /* of one node of the job, by their index */
    int pes;
};

/* Of the tree under `sys`: /sys, or a copy of another machine's. pes: how many PEs the node has; 0:
 * one for each GPU, or each CPU. */
void topology_read(struct topology *t, const char *sys, int pes);
void topology_print(FILE *to, const struct topology *t);
void topology_draw(FILE *to, const struct topology *t);

#endif
