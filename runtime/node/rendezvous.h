/* How the PEs of a node come by one descriptor: the leader listens on a Unix socket that has no
 * name in any file system, and hands it to whoever knows the job's token.
 *
 * Knows nothing of what the descriptor is. */
#ifndef GSHMEM_RUNTIME_NODE_RENDEZVOUS_H
#define GSHMEM_RUNTIME_NODE_RENDEZVOUS_H

#include <stddef.h>
#include <stdint.h>

#include "gshmem/status.h"

/* What the leader publishes; 32 bytes, the same on every machine that could share memory. */
struct rendezvous_address {
    uint8_t name_bytes;   /* of the abstract socket's name */
    unsigned char name[15];
    unsigned char token[16];
};

/* The leader's side: open before publishing the address, serve until every index in 1 … n-1 has
 * come (pe[] names them in messages), with the same letter for all. */
struct rendezvous {
    int fd;
    struct rendezvous_address address;
};

gshmem_status_t rendezvous_open(struct rendezvous *r);
gshmem_status_t rendezvous_serve(struct rendezvous *r, const int *pe, int n, int timeout_seconds,
                                 const void *letter, size_t letter_bytes, int descriptor);
void rendezvous_close(struct rendezvous *r);

/* The others' side: takes the letter (exactly letter_bytes) and the descriptor. */
gshmem_status_t rendezvous_ask(const struct rendezvous_address *address, int index,
                               int timeout_seconds, void *letter, size_t letter_bytes,
                               int *descriptor);

/* In place of that: tells the leader that the start-up of this PE has failed, so that it waits for it no longer. */
void rendezvous_tell_failure(const struct rendezvous_address *address, int index);

#endif
