/* cvt: between integers and floating point, and to integral values. */
#ifndef GSHMEM_HOST_DEVICE_PTX_CONVERT_H
#define GSHMEM_HOST_DEVICE_PTX_CONVERT_H

#include "half.h"
#include "real.h"
#include "types.h"

#define PTX_ROUND(T, suffix)                                                                       \
    static inline T ptx_round_##T##_rni(T x)                                                       \
    {                                                                                              \
        return __builtin_nearbyint##suffix(x);                                                     \
    }                                                                                              \
    static inline T ptx_round_##T##_rzi(T x)                                                       \
    {                                                                                              \
        return __builtin_trunc##suffix(x);                                                         \
    }                                                                                              \
    static inline T ptx_round_##T##_rmi(T x)                                                       \
    {                                                                                              \
        return __builtin_floor##suffix(x);                                                         \
    }                                                                                              \
    static inline T ptx_round_##T##_rpi(T x)                                                       \
    {                                                                                              \
        return __builtin_ceil##suffix(x);                                                          \
    }
PTX_ROUND(f32, f)
PTX_ROUND(f64, )

/* A value out of range becomes the nearest value in it. NaN becomes 0 if neither type has 64 bits,
 * otherwise the integer with only the highest bit set. beyond: the first value above the range. */
#define PTX_INTEGER_OF_ONE(To, From, rounding, least, most, beyond)                                \
    static inline To ptx_##To##_of_##From##_##rounding(From x)                                     \
    {                                                                                              \
        x = ptx_round_##From##_##rounding(x);                                                      \
        const To nan =                                                                             \
            sizeof(To) == 8 || sizeof(From) == 8 ? (To)((u64)1 << (8 * sizeof(To) - 1)) : 0;       \
        return x != x ? nan : x >= (From)(beyond) ? (most) : x <= (From)(least) ? (least) : (To)x; \
    }
#define PTX_INTEGER_OF(To, From, least, most, beyond)                                              \
    PTX_INTEGER_OF_ONE(To, From, rni, least, most, beyond)                                         \
    PTX_INTEGER_OF_ONE(To, From, rzi, least, most, beyond)                                         \
    PTX_INTEGER_OF_ONE(To, From, rmi, least, most, beyond)                                         \
    PTX_INTEGER_OF_ONE(To, From, rpi, least, most, beyond)
#define PTX_INTEGERS_OF(From)                                                                      \
    PTX_INTEGER_OF(u8, From, 0, UINT8_MAX, 0x1p8)                                                  \
    PTX_INTEGER_OF(s8, From, INT8_MIN, INT8_MAX, 0x1p7)                                            \
    PTX_INTEGER_OF(u16, From, 0, UINT16_MAX, 0x1p16)                                               \
    PTX_INTEGER_OF(s16, From, INT16_MIN, INT16_MAX, 0x1p15)                                        \
    PTX_INTEGER_OF(u32, From, 0, UINT32_MAX, 0x1p32)                                               \
    PTX_INTEGER_OF(s32, From, INT32_MIN, INT32_MAX, 0x1p31)                                        \
    PTX_INTEGER_OF(u64, From, 0, UINT64_MAX, 0x1p64)                                               \
    PTX_INTEGER_OF(s64, From, INT64_MIN, INT64_MAX, 0x1p63)
PTX_INTEGERS_OF(f32)
PTX_INTEGERS_OF(f64)

/* Integers and f64 to f32 and f64. Rounding to nearest is done in place, other modes in the
 * library. */
#pragma GCC visibility push(default)
f32 gshmem_host_ptx_f32_of_integer(int rounding, int is_signed, u64 x);
f64 gshmem_host_ptx_f64_of_integer(int rounding, int is_signed, u64 x);
f32 gshmem_host_ptx_f32_of_f64(int rounding, f64 x);
#pragma GCC visibility pop

#define PTX_REAL_OF_ONE(To, From, is_signed)                                                       \
    static inline To ptx_##To##_of_##From##_rn(From x)                                             \
    {                                                                                              \
        return (To)x;                                                                              \
    }                                                                                              \
    static inline To ptx_##To##_of_##From##_rz(From x)                                             \
    {                                                                                              \
        return gshmem_host_ptx_##To##_of_integer(PTX_RZ, is_signed, (u64)x);                       \
    }                                                                                              \
    static inline To ptx_##To##_of_##From##_rm(From x)                                             \
    {                                                                                              \
        return gshmem_host_ptx_##To##_of_integer(PTX_RM, is_signed, (u64)x);                       \
    }                                                                                              \
    static inline To ptx_##To##_of_##From##_rp(From x)                                             \
    {                                                                                              \
        return gshmem_host_ptx_##To##_of_integer(PTX_RP, is_signed, (u64)x);                       \
    }
/* An integer to a half, by way of f64, which represents all integers that are finite as halves. */
#define PTX_HALF_OF_INTEGER(To, From, rounding)                                                    \
    static inline u16 ptx_##To##_of_##From##_##rounding(From x)                                    \
    {                                                                                              \
        return ptx_##To##_of_f64_##rounding(ptx_odd_of_##From(x));                                 \
    }
#define PTX_REALS_OF(From, is_signed, U)                                                           \
    PTX_REAL_OF_ONE(f32, From, is_signed)                                                          \
    PTX_REAL_OF_ONE(f64, From, is_signed)                                                          \
    static inline f64 ptx_odd_of_##From(From x)                                                    \
    {                                                                                              \
        return gshmem_host_ptx_odd_of_integer(is_signed, (u64)x);                                  \
    }                                                                                              \
    PTX_HALF_OF_INTEGER(f16, From, rn)                                                             \
    PTX_HALF_OF_INTEGER(f16, From, rz)                                                             \
    PTX_HALF_OF_INTEGER(f16, From, rm)                                                             \
    PTX_HALF_OF_INTEGER(f16, From, rp)                                                             \
    PTX_HALF_OF_INTEGER(bf16, From, rn)                                                            \
    PTX_HALF_OF_INTEGER(bf16, From, rz)                                                            \
    PTX_HALF_OF_INTEGER(bf16, From, rm)                                                            \
    PTX_HALF_OF_INTEGER(bf16, From, rp)

/* An integer as f64; where bits are lost its last bit is 1, so that a second rounding is right. */
static inline f64 gshmem_host_ptx_odd_of_integer(int is_signed, u64 x)
{
    const int negative = is_signed && (s64)x < 0;
    u64 size = negative ? 0 - x : x;

    if (size >> 53)
        size = (size & ~(u64)0x7ff) | ((size & 0x7ff) ? 0x800 : 0);
    return negative ? -(f64)size : (f64)size;
}

PTX_REALS_OF(u8, 0, u8)
PTX_REALS_OF(s8, 1, u8)
PTX_REALS_OF(u16, 0, u16)
PTX_REALS_OF(s16, 1, u16)
PTX_REALS_OF(u32, 0, u32)
PTX_REALS_OF(s32, 1, u32)
PTX_REALS_OF(u64, 0, u64)
PTX_REALS_OF(s64, 1, u64)

static inline f32 ptx_f32_of_f64_rn(f64 x)
{
    return (f32)x;
}

#define PTX_NARROW(rounding, ROUNDING)                                                             \
    static inline f32 ptx_f32_of_f64_##rounding(f64 x)                                             \
    {                                                                                              \
        return gshmem_host_ptx_f32_of_f64(ROUNDING, x);                                            \
    }
PTX_NARROW(rz, PTX_RZ)
PTX_NARROW(rm, PTX_RM)
PTX_NARROW(rp, PTX_RP)

/* tf32: 10 bits of fraction in a word of 32. */
static inline u32 ptx_tf32_of_f32_rna(f32 x)
{
    const u32 bits = ptx_bits_f32(x);

    return x != x                                ? 0x7fffffff
           : (bits & 0x7f800000u) == 0x7f800000u ? bits
                                                 : (bits + 0x1000) & ~0x1fffu;
}

static inline u32 ptx_tf32_of_f32_rn(f32 x)
{
    const u32 bits = ptx_bits_f32(x);

    return x != x                                ? 0x7fffffff
           : (bits & 0x7f800000u) == 0x7f800000u ? bits
                                                 : (bits + 0xfff + (bits >> 13 & 1)) & ~0x1fffu;
}

static inline u32 ptx_tf32_of_f32_rz(f32 x)
{
    return x != x ? 0x7fffffff : ptx_bits_f32(x) & ~0x1fffu;
}

static inline u32 ptx_relu_tf32(u32 bits)
{
    return bits >> 31 && (bits & 0x7fffffffu) <= 0x7f800000u ? 0 : bits;
}

#endif
