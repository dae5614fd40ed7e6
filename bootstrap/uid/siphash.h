/* SipHash-2-4: a keyed hash of short messages that cannot be made without the key. */
#ifndef GSHMEM_UID_SIPHASH_H
#define GSHMEM_UID_SIPHASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct siphash {
    uint64_t a, b, c, d;
};

static inline uint64_t siphash_rotate(uint64_t x, int bits)
{
    return x << bits | x >> (64 - bits);
}

static inline void siphash_rounds(struct siphash *s, int rounds)
{
    while (rounds-- > 0) {
        s->a += s->b;
        s->c += s->d;
        s->b = siphash_rotate(s->b, 13) ^ s->a;
        s->d = siphash_rotate(s->d, 16) ^ s->c;
        s->a = siphash_rotate(s->a, 32);
        s->c += s->b;
        s->a += s->d;
        s->b = siphash_rotate(s->b, 17) ^ s->c;
        s->d = siphash_rotate(s->d, 21) ^ s->a;
        s->c = siphash_rotate(s->c, 32);
    }
}

static inline void siphash_word(struct siphash *s, uint64_t word)
{
    s->d ^= word;
    siphash_rounds(s, 2);
    s->a ^= word;
}

/* The hash of bytes under a key. Words are taken little-endian, as the CPU has them. */
static inline uint64_t siphash(const unsigned char key[16], const void *data, size_t bytes)
{
    const unsigned char *at = data;
    uint64_t k[2], word;

    memcpy(k, key, sizeof k);
    struct siphash s = {k[0] ^ 0x736f6d6570736575u, k[1] ^ 0x646f72616e646f6du,
                        k[0] ^ 0x6c7967656e657261u, k[1] ^ 0x7465646279746573u};
    for (size_t left = bytes; left >= 8; left -= 8, at += 8) {
        memcpy(&word, at, 8);
        siphash_word(&s, word);
    }
    word = (uint64_t)bytes << 56;
    for (size_t i = 0; i < bytes % 8; i++)
        word |= (uint64_t)at[i] << (8 * i);
    siphash_word(&s, word);
    s.c ^= 0xff;
    siphash_rounds(&s, 4);
    return s.a ^ s.b ^ s.c ^ s.d;
}

#endif
