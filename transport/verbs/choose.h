/* Which ports of which RDMA devices are used, in what order, and by which address; of the others,
 * why not, and what to do about it. */
#ifndef GSHMEM_TRANSPORT_VERBS_CHOOSE_H
#define GSHMEM_TRANSPORT_VERBS_CHOOSE_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/transport.h"
#include "transport/verbs/addresses.h"

enum { PORTS_MOST = 32 };

struct port {
    char device[IBV_SYSFS_NAME_MAX];
    int number;
    struct ibv_context *context; /* this port's own; NULL: it is not usable */
    struct ibv_port_attr attr;
    struct ibv_device_attr device_attr;
    unsigned rate; /* Gbit/s of all lanes; 0: not known */
    bool ethernet, iwarp;
    struct port_address address[ADDRESSES_MOST]; /* the best first, or that of the setting */
    int addresses;
    uint16_t pkey_index;
    int place;    /* among the machine's ports, by their names */
    int distance; /* from this PE's CPU or GPU, 0 the nearest; in words: `where`, "": not known */
    const char *where;
    bool reorders; /* it may place writes of a queue pair in another order than posted */
    bool spare;    /* usable, and not used, as there are much faster ones */
    char why[240]; /* it is not usable: why, and what to do; "": it is */
    bool mistaken; /* a setting names what it does not have */
};

/* All ports that the settings do not leave out, in the order in which this PE would use them, those
 * that cannot be used last. How many; *usable of them can be used. Their contexts are the caller's:
 * choose_release. */
int choose_ports(const struct transport_config *config, struct port *ports, int most, int *usable);
void choose_release(struct port *ports, int n);
/* Reads anew what can change of a port in use: addresses, LID, MTU and partition. False: it
 * cannot be used now. */
bool choose_again(const struct transport_config *config, struct port *p);
/* In a line, why none is usable; true: a setting names what is not there. */
bool choose_explain(const struct transport_config *config, const struct port *ports, int n,
                    char *why, size_t why_size);

/* How many bytes a work request takes inline, up to `most`: it is tried, as devices do not say. */
uint32_t choose_inline(struct ibv_pd *pd, struct ibv_cq *cq, uint32_t most);

#endif
