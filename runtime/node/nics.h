/* Which NICs are near a GPU, or near the memory of the CPUs that a PE runs on. The distance follows
 * from what the paths to both share in the tree of PCI devices under /sys. Also how a NIC accesses
 * a GPU's memory. */
#ifndef GSHMEM_RUNTIME_NODE_NICS_H
#define GSHMEM_RUNTIME_NODE_NICS_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>

enum { NICS_MOST = 32 };

/* Nearest first. */
enum nic_distance {
    NIC_SAME_SWITCH, /* behind one PCIe switch below the root port: traffic between them does not
                        leave it */
    NIC_SAME_PORT,
    NIC_SAME_NODE, /* of the machine's memory */
    NIC_ELSEWHERE,
    NIC_UNKNOWN /* there is no GPU, or one of the two is not in the tree */
};

struct nic {
    char rdma[32];      /* its name as an RDMA device, such as mlx5_0; "": none */
    char interface[32]; /* its name as a network interface, such as eth0; "": none */
    char pci[16];       /* 0000:65:00.0; "": it is not a PCI device */
    enum nic_distance distance;
};

/* Of the tree under `sys` (/sys): NICs near the device at that PCI address (NULL: none) come first,
 * those that do RDMA before others. Returns how many, at most `most`. */
int nics_survey(const char *sys, const char *pci, struct nic *nics, int most);
/* The interfaces of the nearest NICs, with commas; "" where distances are not known. */
void nics_nearest(const char *sys, const char *pci, char *list, size_t size);
const char *nics_distance_text(enum nic_distance distance);

/* The NUMA node of a PCI device; -1: it is not known. */
int nics_node_of_device(const char *sys, const char *pci);
/* The distance of two PCI devices. */
enum nic_distance nics_between(const char *sys, const char *pci, const char *other);
/* The addresses of NVIDIA's GPUs in that tree, in the order of their addresses, in which CUDA
 * numbers equal ones; returns how many. */
enum { GPUS_MOST = 32 };
int nics_gpus(const char *sys, char pci[][16], int most);
/* The CPUs of a NUMA node, as the system lists them ("0-3,8"); false: there is no such node. */
bool nics_cpus_of_node(const char *sys, int node, char *list, size_t size);
/* The CPUs of such a list. */
void nics_read_list(const char *list, cpu_set_t *cpus);

/* Where a PE is: at its GPU, or without one at the memory of its CPUs. */
struct nic_center {
    char pci[16]; /* the GPU's address; "": there is none */
    int node;     /* otherwise the NUMA node of all its CPUs; -1: of none, or of several */
};

/* The NUMA node of all those CPUs; -1: they are of several, or it is not known. *nodes: how many
 * nodes there are. */
int nics_node_of(const char *sys, const cpu_set_t *cpus, int *nodes);
/* The distance of an RDMA device from there, and the same in words; "": it is not known. */
enum nic_distance nics_distance(const char *sys, const struct nic_center *center, const char *rdma,
                                const char **text);

/* How a NIC accesses GPU memory: best first. */
enum nic_way { NIC_BY_DMA_BUF, NIC_BY_PEERMEM, NIC_BY_STAGING };

/* The best method available, and the reason, for people. dma_buf: the GPU's driver exports
 * dma-bufs. */
enum nic_way nics_choose_way(const char *sys, bool dma_buf, char *why, size_t why_size);
const char *nics_way_name(enum nic_way way);

#endif
