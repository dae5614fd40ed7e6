/* Eager buffers, the target's side: memory of this PE into which NICs of one peer write the records
 * of batches, each before the message that says what they are (batches.c). It is allocated and
 * registered when the peer first requests its keys. */
#ifndef GSHMEM_TRANSPORT_VERBS_EAGER_H
#define GSHMEM_TRANSPORT_VERBS_EAGER_H

#include <infiniband/verbs.h>
#include <stdint.h>

#include "transport/transport.h"

struct link;
struct nic;
struct verbs;

enum {
    EAGER_BUFFERS = 8, /* for each peer; a power of two */
    EAGER_BYTES = TRANSPORT_COPIED,
};

/* The registration of a link's buffers with a NIC, made at first use; NULL: it cannot be. */
struct ibv_mr *eager_registration(struct verbs *v, struct link *l, struct nic *nic);
/* What the peer has written to the buffer with that number; NULL: there is none. */
const char *eager_records(const struct link *l, uint64_t buffer);
/* The link's queue pairs have ended. */
void eager_free(struct link *l);

#endif
