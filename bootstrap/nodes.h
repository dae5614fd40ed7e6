/* Numbers the nodes of a job from what its launcher knows of them.
 *
 * Two PEs share a node when the launcher gives their nodes the same name or number. Nodes are
 * numbered 0, 1, … in the order of their lowest PEs, as bootstrap.h asks. Also compiled into
 * modules, so it uses bootstrap.h and libc alone. */
#ifndef GSHMEM_BOOTSTRAP_NODES_H
#define GSHMEM_BOOTSTRAP_NODES_H

#include "bootstrap/bootstrap.h"

enum { NODES_NAME_BYTES = 96 };

/* The name that the PEs of this node have in common, and no others: its machine's. A name of 63
 * bytes and more may have been cut, as Kubernetes does, and be that of several machines: the boot's
 * number follows such a one. */
void nodes_own_name(char name[NODES_NAME_BYTES]);

/* name[pe]: the node's name. Sets node[pe] and returns how many nodes there are, or 0 when out of
 * memory. */
int nodes_by_name(const char *const *name, int n_pes, int *node);

/* number[pe]: any number in 0 … limit-1 that PEs of one node have in common. number and node may be
 * one array. */
int nodes_by_number(const int *number, int limit, int n_pes, int *node);

/* For a launcher that does not say who shares a node: takes a round to exchange host names. b->ops,
 * pe and n_pes are set. Returns how many nodes there are; 0: out of memory; -1: the status is
 * *status. */
int nodes_by_exchange(struct bootstrap *b, int *node, gshmem_status_t *status);

#endif
