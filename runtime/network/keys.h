/* How PEs that meet over a network know each other: each pair of PEs has a key that nobody else can
 * compute.
 *
 * A PE publishes a public key, drawn anew for each job. Two PEs agree on a secret by theirs (X25519), so
 * that who has read all that the starter carries, and all that the PEs say, knows none of their keys. Who can
 * *change* what the starter carries can put a public key of its own in the place of another's; but not
 * where the job was begun with a unique id that this one does not know, which is part of each key. */
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

/* Draws a key pair. uid: the one that the job was begun with, or NULL. */
gshmem_status_t keys_draw(struct keys *k, const gshmem_uniqueid_t *uid);

/* The key of PE `me`, which has k, and PE `pe`, which has published `theirs`. */
gshmem_status_t keys_agree(const struct keys *k, int me, int pe, const unsigned char theirs[X25519_BYTES],
                           unsigned char key[SHA256_BYTES]);

/* Nothing of it is left in memory. */
void keys_forget(struct keys *k);

#endif
