/* Which ports of which RDMA devices can be used, in what order, by which address; and of those that
 * cannot, why not, and what to do about it. */
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
    struct ibv_context *context; /* open where it is usable, else NULL; of its own */
    struct ibv_port_attr attr;
    struct ibv_device_attr device_attr;
    unsigned rate; /* Gbit/s of all lanes; 0: of a kind that is not known */
    bool ethernet, iwarp;
    struct port_address address[ADDRESSES_MOST]; /* the best first, or the one that was asked for */
    int addresses;
    uint16_t pkey_index;
    int place;         /* among the host's, by their names */
    int distance; /* from where this PE is, 0 the nearest; and that in words, "": it cannot be told
                   */
    const char *where;
    bool reorders;     /* it may place writes of a queue pair in another order than that in which they were posted */
    bool spare;        /* usable, and not used, as there are much faster ones */
    char why[240]; /* it is not usable: why, and what to do; "": it is */
    bool mistaken; /* as a setting asks for what it has not */
};

/* All ports that the settings do not leave out, in the order in which this PE would use them, those
 * that cannot be used last. How many; *usable of them can be used. Their contexts are the caller's:
 * choose_release. */
int choose_ports(const struct transport_config *config, struct port *ports, int most, int *usable);
void choose_release(struct port *ports, int n);
/* What can have changed of a port that is in use, by its context and number: addresses, LID, MTU and partition. False:
 * it cannot be used now. */
bool choose_again(const struct transport_config *config, struct port *p);
/* In a line, why none is usable; true: as a setting asks for what is not there. */
bool choose_explain(const struct transport_config *config, const struct port *ports, int n,
                    char *why, size_t why_size);

/* How many bytes a work request takes within itself, of those that are wanted at most: by trying, as
 * devices do not tell. */
uint32_t choose_inline(struct ibv_pd *pd, struct ibv_cq *cq, uint32_t most);

#endif
