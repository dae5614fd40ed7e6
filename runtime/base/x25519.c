#define _GNU_SOURCE
#include "runtime/base/x25519.h"

#include <endian.h>
#include <stdint.h>
#include <string.h>

/* A number modulo p = 2^255 - 19, as the sum of limb[i] * 2^(51 i). Results of multiply are below
 * 2^52 in each limb, those of add and subtract below 2^55; multiply takes any of these. A number
 * has several such forms until encode chooses the one below p. */
struct number {
    uint64_t limb[5];
};

__extension__ typedef unsigned __int128 wide;

static const uint64_t limb_mask = ((uint64_t)1 << 51) - 1;

static uint64_t load64(const unsigned char *at)
{
    uint64_t value;

    memcpy(&value, at, sizeof value);
    return le64toh(value);
}

/* RFC 7748, section 5: the topmost bit is ignored. */
static struct number decode(const unsigned char in[X25519_BYTES])
{
    return (struct number){{load64(in) & limb_mask, load64(in + 6) >> 3 & limb_mask,
                            load64(in + 12) >> 6 & limb_mask, load64(in + 19) >> 1 & limb_mask,
                            load64(in + 24) >> 12 & limb_mask}};
}

/* Makes all limbs except the first less than 2^51, and the first only a little more: the part above
 * the last limb is added to the first 19 times, since 2^255 = 19 modulo p. */
static void x25519_carry(struct number *a)
{
    for (int i = 0; i < 4; i++) {
        a->limb[i + 1] += a->limb[i] >> 51;
        a->limb[i] &= limb_mask;
    }
    a->limb[0] += 19 * (a->limb[4] >> 51);
    a->limb[4] &= limb_mask;
}

static void encode(unsigned char out[X25519_BYTES], struct number a)
{
    uint64_t above, word[4];

    x25519_carry(&a);
    x25519_carry(&a);               /* below 2^255 + a little: p has to be subtracted at most once
                                       more */
    above = (a.limb[0] + 19) >> 51; /* whether a >= p, which is whether a + 19 >= 2^255 */
    for (int i = 1; i < 5; i++)
        above = (a.limb[i] + above) >> 51;
    a.limb[0] += 19 * above;
    for (int i = 0; i < 4; i++) {
        a.limb[i + 1] += a.limb[i] >> 51;
        a.limb[i] &= limb_mask;
    }
    a.limb[4] &= limb_mask; /* drops the 2^255 that made a + 19 - 2^255 = a - p of it */
    word[0] = a.limb[0] | a.limb[1] << 51;
    word[1] = a.limb[1] >> 13 | a.limb[2] << 38;
    word[2] = a.limb[2] >> 26 | a.limb[3] << 25;
    word[3] = a.limb[3] >> 39 | a.limb[4] << 12;
    for (int i = 0; i < 4; i++) {
        word[i] = htole64(word[i]);
        memcpy(out + 8 * i, &word[i], 8);
    }
}

static struct number x25519_add(struct number a, struct number b)
{
    for (int i = 0; i < 5; i++)
        a.limb[i] += b.limb[i];
    return a;
}

/* b is a result of multiply or decode: 8 p is more than it in each limb. */
static struct number subtract(struct number a, struct number b)
{
    const uint64_t first = 8 * (limb_mask - 18), other = 8 * limb_mask;

    for (int i = 0; i < 5; i++)
        a.limb[i] += (i ? other : first) - b.limb[i];
    return a;
}

static struct number x25519_multiply(struct number a, struct number b)
{
    const uint64_t *x = a.limb, *y = b.limb;
    uint64_t y1 = 19 * y[1], y2 = 19 * y[2], y3 = 19 * y[3], y4 = 19 * y[4];
    wide sum[5] = {
        (wide)x[0] * y[0] + (wide)x[1] * y4 + (wide)x[2] * y3 + (wide)x[3] * y2 + (wide)x[4] * y1,
        (wide)x[0] * y[1] + (wide)x[1] * y[0] + (wide)x[2] * y4 + (wide)x[3] * y3 + (wide)x[4] * y2,
        (wide)x[0] * y[2] + (wide)x[1] * y[1] + (wide)x[2] * y[0] + (wide)x[3] * y4 + (wide)x[4] * y3,
        (wide)x[0] * y[3] + (wide)x[1] * y[2] + (wide)x[2] * y[1] + (wide)x[3] * y[0] + (wide)x[4] * y4,
        (wide)x[0] * y[4] + (wide)x[1] * y[3] + (wide)x[2] * y[2] + (wide)x[3] * y[1] + (wide)x[4] * y[0],
    };
    struct number c;
    wide over = 0;

    for (int i = 0; i < 5; i++) {
        sum[i] += over;
        c.limb[i] = (uint64_t)sum[i] & limb_mask;
        over = sum[i] >> 51;
    }
    over = over * 19 + c.limb[0]; /* more than 64 bits for the largest numbers */
    c.limb[0] = (uint64_t)over & limb_mask;
    c.limb[1] += (uint64_t)(over >> 51);
    return c;
}

/* a to the power of p - 2, which is 1 / a; 0 for 0. Which bits of p - 2 are set is no secret. */
static struct number invert(struct number a)
{
    struct number power = a; /* the topmost bit, 254 */

    for (int bit = 253; bit >= 0; bit--) {
        power = x25519_multiply(power, power);
        if (bit != 2 && bit != 4)
            power = x25519_multiply(power, a);
    }
    return power;
}

/* Swaps a and b if `swap` is 1, without a branch. */
static void swap_if(uint64_t swap, struct number *a, struct number *b)
{
    const uint64_t mask = 0 - swap;

    for (int i = 0; i < 5; i++) {
        uint64_t different = mask & (a->limb[i] ^ b->limb[i]);
        a->limb[i] ^= different;
        b->limb[i] ^= different;
    }
}

/* The ladder of RFC 7748, 5, with its names. */
static void scale(unsigned char out[X25519_BYTES], const unsigned char scalar[X25519_BYTES],
                  const unsigned char point[X25519_BYTES])
{
    const struct number one = {{1}}, a24 = {{121665}};
    struct number x1 = decode(point), x2 = one, z2 = {{0}}, x3 = x1, z3 = one;
    unsigned char k[X25519_BYTES];
    uint64_t swap = 0;

    memcpy(k, scalar, sizeof k);
    k[0] &= 248;
    k[31] = (k[31] & 127) | 64;
    for (int t = 254; t >= 0; t--) {
        uint64_t bit = k[t / 8] >> (t % 8) & 1;

        swap_if(swap ^ bit, &x2, &x3);
        swap_if(swap ^ bit, &z2, &z3);
        swap = bit;
        struct number a = x25519_add(x2, z2), b = subtract(x2, z2);
        struct number c = x25519_add(x3, z3), d = subtract(x3, z3);
        struct number aa = x25519_multiply(a, a), bb = x25519_multiply(b, b), e = subtract(aa, bb);
        struct number da = x25519_multiply(d, a), cb = x25519_multiply(c, b);
        struct number sum = x25519_add(da, cb), difference = subtract(da, cb);
        x3 = x25519_multiply(sum, sum);
        z3 = x25519_multiply(x1, x25519_multiply(difference, difference));
        x2 = x25519_multiply(aa, bb);
        z2 = x25519_multiply(e, x25519_add(aa, x25519_multiply(a24, e)));
    }
    swap_if(swap, &x2, &x3);
    swap_if(swap, &z2, &z3);
    encode(out, x25519_multiply(x2, invert(z2)));
    explicit_bzero(k, sizeof k);
}

void x25519_public(unsigned char public[X25519_BYTES], const unsigned char private[X25519_BYTES])
{
    static const unsigned char base[X25519_BYTES] = {9};

    scale(public, private, base);
}

bool x25519_agree(unsigned char secret[X25519_BYTES], const unsigned char private[X25519_BYTES],
                  const unsigned char public[X25519_BYTES])
{
    unsigned char any = 0;

    scale(secret, private, public);
    for (int i = 0; i < X25519_BYTES; i++)
        any |= secret[i];
    return any != 0;
}
