/* How the PEs of a node get one descriptor: the leader listens on a Unix socket that has no name in
 * any file system, and sends the descriptor to each process that knows the job's token.
 *
 * Knows nothing of what the descriptor is. */
#ifndef GSHMEM_RUNTIME_NODE_RENDEZVOUS_H
#define GSHMEM_RUNTIME_NODE_RENDEZVOUS_H

#include <stddef.h>
#include <stdint.h>

#include "gshmem/status.h"

/* What the leader publishes: 32 bytes, which also PEs of other machines can receive. */
struct rendezvous_address {
    uint8_t name_bytes;   /* of the abstract socket's name */
    unsigned char name[15];
    unsigned char token[16];
};

/* The leader's side: open before publishing the address; then serve until every index in 1 … n-1
 * has connected (pe[] names them in messages), with the same letter for all. */
struct rendezvous {
    int fd;
    struct rendezvous_address address;
};

gshmem_status_t rendezvous_open(struct rendezvous *r);
gshmem_status_t rendezvous_serve(struct rendezvous *r, const int *pe, int n, int timeout_seconds,
                                 const void *letter, size_t letter_bytes, int descriptor);
void rendezvous_close(struct rendezvous *r);

/* The others' side: receives the letter (exactly letter_bytes) and the descriptor. */
gshmem_status_t rendezvous_ask(const struct rendezvous_address *address, int index,
                               int timeout_seconds, void *letter, size_t letter_bytes,
                               int *descriptor);

/* Instead: notifies the leader that the start-up of this PE has failed, so that the leader does not
 * wait for it. */
void rendezvous_tell_failure(const struct rendezvous_address *address, int index);

#endif
