/* How PEs that connect over a network authenticate each other: each pair of PEs has a key that no
 * other process can compute.
 *
 * A PE publishes a public key, drawn anew for each job. Two PEs agree on a secret by their keys
 * (X25519). An attacker who reads everything that the bootstrap carries and that the PEs send knows
 * none of the keys. An attacker who can *change* what the bootstrap carries can replace another
 * PE's public key by one of its own, except where the job was started with a unique id that the
 * attacker does not know, which is part of each key. */
#ifndef GSHMEM_RUNTIME_NETWORK_KEYS_H
#define GSHMEM_RUNTIME_NETWORK_KEYS_H

#include "gshmem.h"
#include "gshmem/status.h"
#include "runtime/base/hmac.h"
#include "runtime/base/x25519.h"

struct keys {
    unsigned char private[X25519_BYTES];
    unsigned char public[X25519_BYTES]; /* to be published */
    unsigned char id[SHA256_BYTES];     /* what the unique id adds; zero without one */
};

/* Draws a key pair. uid: the id with which the job was started, or NULL. */
gshmem_status_t keys_draw(struct keys *k, const gshmem_uniqueid_t *uid);

/* The key of PE `me`, which has k, and PE `pe`, which has published `theirs`. */
gshmem_status_t keys_agree(const struct keys *k, int me, int pe,
                           const unsigned char theirs[X25519_BYTES],
                           unsigned char key[SHA256_BYTES]);

/* Erases the keys from memory. */
void keys_forget(struct keys *k);

#endif
