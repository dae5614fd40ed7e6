/* e4m3 and e5m2: floating point of 8 bits, two of them in a word of 16. e4m3 has no infinity, and
 * one NaN of each sign; conversions to these types give the largest number for what is larger. */
#ifndef GSHMEM_HOST_DEVICE_PTX_BYTES_H
#define GSHMEM_HOST_DEVICE_PTX_BYTES_H

#include "half.h"

/* `beyond`: the first bits that stand for no number. */
static inline u16 ptx_byte_of_f64(f64 x, int fraction, int exponent_min, u32 beyond)
{
    const u16 bits = gshmem_host_ptx_small_of_f64(x, fraction, exponent_min, beyond, PTX_RN);
    const u32 size = bits & 0x7fff;

    return x != x ? 0x7f : (u16)(bits >> 15 << 7 | (size < beyond ? size : beyond - 1));
}

static inline u16 ptx_e4m3_of_f64(f64 x)
{
    return ptx_byte_of_f64(x, 3, -6, 0x7f);
}

static inline u16 ptx_e5m2_of_f64(f64 x)
{
    return ptx_byte_of_f64(x, 2, -14, 0x7c);
}

static inline u16 ptx_relu_byte(u16 x)
{
    return x >> 7 ? 0 : x; /* a NaN that a conversion gives has no sign */
}

/* e5m2 is the upper half of an f16. */
static inline u16 ptx_f16_of_e5m2(u16 x)
{
    const u16 bits = (u16)(x << 8);

    return (bits & 0x7fff) > 0x7c00 ? 0x7fff : bits;
}

static inline u16 ptx_f16_of_e4m3(u16 x)
{
    const u16 sign = (u16)((x & 0x80) << 8), size = x & 0x7f;

    if (size == 0x7f)
        return 0x7fff;
    return sign |
           (size < 8 ? ptx_f16_of_f64_rn(size * 0x1p-9) : (u16)((size << 7) + ((15 - 7) << 10)));
}

/* .satfinite of wider types: the largest number instead of an infinity. */
#define PTX_SATFINITE(T, U, infinity, step)                                                        \
    static inline U ptx_satfinite_##T(U x)                                                         \
    {                                                                                              \
        return (x & ((U) ~(U)0 >> 1)) == infinity ? (U)(x - step) : x;                             \
    }
PTX_SATFINITE(f16, u16, 0x7c00, 1)
PTX_SATFINITE(bf16, u16, 0x7f80, 1)
PTX_SATFINITE(tf32, u32, 0x7f800000u, 0x2000u)

#endif
