/* Which network cards are near a GPU, or near the memory of the CPUs that a PE runs on: what of the
 * way between them both share, by the tree of PCI devices that the system shows under /sys. And how
 * a card gets at a GPU's memory. */
#ifndef GSHMEM_RUNTIME_NETWORK_NICS_H
#define GSHMEM_RUNTIME_NETWORK_NICS_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>

enum { NICS_MOST = 32 };

/* Nearest first. */
enum nic_distance {
    NIC_SAME_SWITCH, /* a PCIe switch below the root port: what goes between them goes no further */
    NIC_SAME_PORT,
    NIC_SAME_NODE, /* of the machine's memory */
    NIC_ELSEWHERE,
    NIC_UNKNOWN /* there is no GPU to be near to, or one of the two is not in the tree */
};

struct nic {
    char rdma[32];      /* its name among InfiniBand's, such as mlx5_0; "": none */
    char interface[32]; /* and among the network's, such as eth0; "": none */
    char pci[16];       /* 0000:65:00.0; "": it is none of PCI's */
    enum nic_distance distance;
};

/* Of the tree under `sys` (/sys), those near the device at that PCI address (NULL: none) first,
 * those that do RDMA before others; how many, at most `most`. */
int nics_survey(const char *sys, const char *pci, struct nic *nics, int most);
/* The interfaces of those that are nearest, with commas; "" where it cannot be told which are. */
void nics_nearest(const char *sys, const char *pci, char *list, size_t size);
const char *nics_distance_text(enum nic_distance distance);

/* Where a PE is: at its GPU, or without one at the memory of its CPUs. */
struct nic_center {
    char pci[16]; /* the GPU's address; "": there is none */
    int node;     /* else the NUMA node that all its CPUs are of; -1: of none, or of several */
};

/* The node of all those CPUs; -1: they are of several, or it cannot be told. *nodes: how many there
 * are. */
int nics_node_of(const char *sys, const cpu_set_t *cpus, int *nodes);
/* How far from there an RDMA device is, and that in words; "": it cannot be told. */
enum nic_distance nics_distance(const char *sys, const struct nic_center *center, const char *rdma,
                                const char **text);

/* How a card gets at GPU memory: best first. */
enum nic_way { NIC_BY_DMA_BUF, NIC_BY_PEERMEM, NIC_BY_STAGING };

/* The best there is, and why, for people. dma_buf: the GPU's driver exports such. */
enum nic_way nics_choose_way(const char *sys, bool dma_buf, char *why, size_t why_size);
const char *nics_way_name(enum nic_way way);

#endif
