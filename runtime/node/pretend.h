/* Splits the PEs of each node into pretended nodes, GSHMEM_PRETENDED_NODES of them, whatever has
 * started the job. Everything above the bootstrap then takes them for nodes. */
#ifndef GSHMEM_NODE_PRETEND_H
#define GSHMEM_NODE_PRETEND_H

#include "bootstrap/bootstrap.h"

/* What the bootstrap itself says of nodes, for as long as something else stands there. */
struct pretended {
    struct bootstrap *bootstrap; /* NULL: nothing else stands there */
    const int *host;
    int n_hosts, one_machine;
    int *node; /* [pe] */
};

/* A node of fewer PEs than `parts` becomes one node for each PE. */
gshmem_status_t pretend_nodes(struct pretended *p, struct bootstrap *b, int parts);
void pretend_no_more(struct pretended *p);

#endif
