/* HMAC-SHA256 (RFC 2104, FIPS 180-4): proves knowledge of a key without revealing it. */
#ifndef GSHMEM_BASE_HMAC_H
#define GSHMEM_BASE_HMAC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SHA256_BYTES = 32 };

/* The SHA-256 of two parts, one after the other. */
void sha256(const void *first, size_t first_bytes, const void *second, size_t second_bytes,
            unsigned char out[SHA256_BYTES]);
/* A key longer than 64 bytes is replaced by its digest. */
void hmac_sha256(const void *key, size_t key_bytes, const void *message, size_t bytes,
                 unsigned char out[SHA256_BYTES]);

/* Compares in a time that does not depend on how many bytes are equal. */
static inline bool hmac_same(const unsigned char a[SHA256_BYTES], const unsigned char b[SHA256_BYTES])
{
    unsigned char difference = 0;

    for (int i = 0; i < SHA256_BYTES; i++)
        difference |= a[i] ^ b[i];
    return difference == 0;
}

#endif
