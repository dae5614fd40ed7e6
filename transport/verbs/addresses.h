/* Addresses of ports (GIDs): which are of use, and which two reach each other. */
#ifndef GSHMEM_TRANSPORT_VERBS_ADDRESSES_H
#define GSHMEM_TRANSPORT_VERBS_ADDRESSES_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ADDRESSES_MOST = 4 /* of a port */ };

/* One of a port's addresses. */
struct port_address {
    union ibv_gid gid;
    uint8_t index;  /* in the port's table; a queue pair takes none above 255 */
    uint8_t rank;   /* how good it is, as far as one side can tell; 0: no address */
    uint8_t prefix; /* bits that the addresses of its subnet share; 0: not known */
};

/* The best addresses of a port, by their places [from, to) in its table, the best first; how
 * many. */
int addresses_find(struct ibv_context *context, int number, int from, int to,
                   struct port_address address[ADDRESSES_MOST]);
/* Which of the addresses of two ports reach each other best: the same subnet before another,
 * then good before bad. Both sides come to the same pair. False: none can. */
bool addresses_pair(const struct port_address *mine, int n_mine, const struct port_address *theirs,
                    int n_theirs, bool mine_first, int *which_mine, int *which_theirs);

/* The network that an address is of, as rails are told apart by it; 0: not known. */
uint32_t addresses_subnet(const struct port_address *a);

void addresses_text(const union ibv_gid *gid, char *text, size_t size); /* "10.0.0.1" */
const char *addresses_rank_text(unsigned rank);                         /* "RoCE v2, IPv4" */

#endif
