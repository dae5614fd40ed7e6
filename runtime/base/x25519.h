/* X25519 (RFC 7748): two sides agree on a secret by values that anyone may read.
 *
 * No branch and no address depends on a private key, so that the time it takes reveals nothing. */
#ifndef GSHMEM_BASE_X25519_H
#define GSHMEM_BASE_X25519_H

#include <stdbool.h>

enum { X25519_BYTES = 32 };

/* The public key of a private one; any 32 random bytes are a private key. */
void x25519_public(unsigned char public[X25519_BYTES], const unsigned char private[X25519_BYTES]);

/* The secret that both sides compute, each from its private key and the other's public key. False:
 * the other's key is one of the few for which the secret would be zero, whatever the private
 * key. */
bool x25519_agree(unsigned char secret[X25519_BYTES], const unsigned char private[X25519_BYTES],
                  const unsigned char public[X25519_BYTES]);

#endif
