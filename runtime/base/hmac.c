#include "runtime/base/hmac.h"

#include <endian.h>
#include <string.h>

enum { BLOCK = 64, LENGTH_AT = BLOCK - 8 };

struct sha {
    uint32_t state[8];
    uint64_t bytes;
    unsigned char block[BLOCK];
};

static const uint32_t first_state[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                        0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

static const uint32_t constant[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t turn(uint32_t x, int by)
{
    return x >> by | x << (32 - by);
}

static void expand(const unsigned char block[BLOCK], uint32_t w[64])
{
    memcpy(w, block, BLOCK);
    for (int i = 0; i < 16; i++)
        w[i] = be32toh(w[i]);
    for (int i = 16; i < 64; i++) {
        uint32_t a = w[i - 15], b = w[i - 2];
        w[i] = w[i - 16] + (turn(a, 7) ^ turn(a, 18) ^ a >> 3) + w[i - 7] +
               (turn(b, 17) ^ turn(b, 19) ^ b >> 10);
    }
}

static void hmac_take_block(struct sha *s)
{
    uint32_t w[64], v[8]; /* v: a to h of the standard */

    expand(s->block, w);
    memcpy(v, s->state, sizeof v);
    for (int i = 0; i < 64; i++) {
        uint32_t a = v[0], e = v[4];
        uint32_t t1 = v[7] + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + ((e & v[5]) ^ (~e & v[6])) +
                      constant[i] + w[i];
        uint32_t t2 = (turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) +
                      ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));
        memmove(v + 1, v, 7 * sizeof v[0]);
        v[4] += t1;
        v[0] = t1 + t2;
    }
    for (int i = 0; i < 8; i++)
        s->state[i] += v[i];
}

static void hmac_add(struct sha *s, const void *data, size_t bytes)
{
    const unsigned char *from = data;

    while (bytes--) {
        s->block[s->bytes++ % BLOCK] = *from++;
        if (s->bytes % BLOCK == 0)
            hmac_take_block(s);
    }
}

static void hmac_end(struct sha *s, unsigned char out[SHA256_BYTES])
{
    const uint64_t bits = htobe64(s->bytes * 8);

    hmac_add(s, "\x80", 1);
    while (s->bytes % BLOCK != LENGTH_AT)
        hmac_add(s, "", 1);
    hmac_add(s, &bits, sizeof bits);
    for (int i = 0; i < 8; i++) {
        uint32_t word = htobe32(s->state[i]);
        memcpy(out + 4 * i, &word, sizeof word);
    }
}

void sha256(const void *first, size_t first_bytes, const void *second, size_t second_bytes,
            unsigned char out[SHA256_BYTES])
{
    struct sha s = {.bytes = 0};

    memcpy(s.state, first_state, sizeof s.state);
    hmac_add(&s, first, first_bytes);
    hmac_add(&s, second, second_bytes);
    hmac_end(&s, out);
}

void hmac_sha256(const void *key, size_t key_bytes, const void *message, size_t bytes,
                 unsigned char out[SHA256_BYTES])
{
    unsigned char inner[BLOCK] = {0}, outer[BLOCK];

    if (key_bytes > BLOCK)
        sha256(key, key_bytes, "", 0, inner);
    else
        memcpy(inner, key, key_bytes);
    for (int i = 0; i < BLOCK; i++) {
        outer[i] = inner[i] ^ 0x5c;
        inner[i] ^= 0x36;
    }
    sha256(inner, BLOCK, message, bytes, out);
    sha256(outer, BLOCK, out, SHA256_BYTES, out);
}
