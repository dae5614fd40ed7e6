/* Copies of the pages of what PEs wait for (runtime/where/record.h), of this node and of others. */
#ifndef GSHMEM_RUNTIME_NETWORK_PAGES_H
#define GSHMEM_RUNTIME_NETWORK_PAGES_H

#include "runtime/where/socket.h"

struct job;

/* A copy whose records are complete, or free. */
void pages_copy(const struct where_page *page, struct where_page *copy);

/* Of all PEs of other nodes, read over the network, which takes no part of theirs: in the order of
 * PEs; those that do not answer in time are marked so. The caller frees it. NULL: out of memory. */
struct where_member *pages_fetch(struct job *j);

#endif
