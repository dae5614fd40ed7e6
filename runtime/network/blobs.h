/* What each PE publishes through the bootstrap at start-up, and what this PE has fetched of it. */
#ifndef GSHMEM_RUNTIME_NETWORK_BLOBS_H
#define GSHMEM_RUNTIME_NETWORK_BLOBS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "bootstrap/bootstrap.h"
#include "gshmem/status.h"
#include "runtime/network/keys.h"
#include "runtime/node/rendezvous.h"
#include "transport/transport.h"

/* Only the part that is used is sent: `transport` is the end. */
struct pe_blob {
    struct rendezvous_address rendezvous;   /* of its node's leader */
    unsigned char public_key[X25519_BYTES]; /* keys.h; zero where the job is on one node */
    uint64_t data_digest;                   /* as in node_member */
    uint64_t machine;                       /* the result of node_machine */
    uint64_t cpus;                          /* the result of node_cpus_digest */
    int32_t races_pid; /* PE 0's decides: its process, if GSHMEM_CHECK=races; else 0 */
    uint8_t data_segments;
    uint8_t lane_bytes; /* those of the transport's, at the end, for further lanes: lanes.h */
    uint8_t transport_bytes;
    uint8_t gathers_counts; /* PE 0's decides: whether the job ends with a report of its counts */
    unsigned char transport[TRANSPORT_ADDRESS_MAX];
};
_Static_assert(
    sizeof(struct pe_blob) <= BOOTSTRAP_BLOB_MAX,
    "struct pe_blob is larger than BOOTSTRAP_BLOB_MAX, the most that bootstraps and their "
    "modules carry: take a field out, make TRANSPORT_ADDRESS_MAX smaller, or raise "
    "BOOTSTRAP_BLOB_MAX and BOOTSTRAP_VERSION");

struct blobs {
    struct bootstrap *bootstrap;
    int n_pes;
    struct pe_blob *_Atomic *kept; /* [PE]: blobs fetched from the bootstrap; NULL where all
                                       PEs are on one node */
    pthread_mutex_t fetching; /* held while the bootstrap is asked, which may take time */
};

void blobs_open(struct blobs *b, struct bootstrap *bootstrap);
void blobs_close(struct blobs *b);
/* From now on what is fetched is kept. false: out of memory. */
bool blobs_keep(struct blobs *b);

/* The blob of a PE, from the bootstrap the first time. That may wait for a launcher: do not call it
 * with a lock held that others need meanwhile, unless blobs_has. */
gshmem_status_t blobs_fetch(struct blobs *b, int pe, struct pe_blob *blob);
static inline bool blobs_has(const struct blobs *b, int pe)
{
    /* acquire: pairs with the release in blobs_fetch */
    return !b->kept || atomic_load_explicit(&b->kept[pe], memory_order_acquire);
}
/* Whether no thread is asking the bootstrap, this one included, which a signal may have interrupted
 * there. Waits some seconds for the others. */
bool blobs_can_fetch(struct blobs *b);

#endif
