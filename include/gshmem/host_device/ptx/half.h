/* f16 and bf16, singly and in pairs: kept as bits, computed in f64 and rounded once.
 *
 * A sum of two f64 that stand for halves may be inexact; then its last bit is made 1 (rounding to
 * odd), so that rounding it to a half gives what rounding the exact sum would. */
#ifndef GSHMEM_HOST_DEVICE_PTX_HALF_H
#define GSHMEM_HOST_DEVICE_PTX_HALF_H

#include "real.h"
#include "types.h"

#pragma GCC visibility push(default)
u16 gshmem_host_ptx_small_of_f64(f64 x, int fraction, int exponent_min, u32 infinity, int rounding);
#pragma GCC visibility pop

/* --- Conversions --- */

static inline f32 ptx_f32_of_bf16(u16 x)
{
    return ptx_f32((u32)x << 16);
}

static inline f32 ptx_f32_of_f16(u16 x)
{
    const u32 sign = (u32)(x & 0x8000) << 16, rest = x & 0x7fff;

    if (rest >= 0x7c00) /* infinite, or NaN */
        return ptx_f32(sign | 0x7f800000u | (rest & 0x3ff) << 13);
    if (rest >= 0x400)
        return ptx_f32(sign | ((rest << 13) + ((127 - 15) << 23)));
    return ptx_f32(sign | ptx_bits_f32((f32)rest * 0x1p-24f));
}

#define PTX_SMALL(T, fraction, exponent_min, infinity)                                             \
    static inline u16 ptx_##T##_of_f64_rn(f64 x)                                                   \
    {                                                                                              \
        return gshmem_host_ptx_small_of_f64(x, fraction, exponent_min, infinity, PTX_RN);          \
    }                                                                                              \
    static inline u16 ptx_##T##_of_f64_rz(f64 x)                                                   \
    {                                                                                              \
        return gshmem_host_ptx_small_of_f64(x, fraction, exponent_min, infinity, PTX_RZ);          \
    }                                                                                              \
    static inline u16 ptx_##T##_of_f64_rm(f64 x)                                                   \
    {                                                                                              \
        return gshmem_host_ptx_small_of_f64(x, fraction, exponent_min, infinity, PTX_RM);          \
    }                                                                                              \
    static inline u16 ptx_##T##_of_f64_rp(f64 x)                                                   \
    {                                                                                              \
        return gshmem_host_ptx_small_of_f64(x, fraction, exponent_min, infinity, PTX_RP);          \
    }                                                                                              \
    static inline u16 ptx_##T##_of_f32_rn(f32 x)                                                   \
    {                                                                                              \
        return ptx_##T##_of_f64_rn(x);                                                             \
    }                                                                                              \
    static inline u16 ptx_##T##_of_f32_rz(f32 x)                                                   \
    {                                                                                              \
        return ptx_##T##_of_f64_rz(x);                                                             \
    }                                                                                              \
    static inline u16 ptx_##T##_of_f32_rm(f32 x)                                                   \
    {                                                                                              \
        return ptx_##T##_of_f64_rm(x);                                                             \
    }                                                                                              \
    static inline u16 ptx_##T##_of_f32_rp(f32 x)                                                   \
    {                                                                                              \
        return ptx_##T##_of_f64_rp(x);                                                             \
    }
PTX_SMALL(f16, 10, -14, 0x7c00)
PTX_SMALL(bf16, 7, -126, 0x7f80)

/* --- Arithmetic --- */

static inline f64 ptx_odd_sum(f64 a, f64 b)
{
    const f64 sum = a + b, part = sum - a;
    const f64 lost = (a - (sum - part)) + (b - part);
    const u64 bits = ptx_bits_f64(sum);

    if (sum - sum != 0 || lost == 0 || bits & 1)
        return sum;
    return ptx_f64((lost > 0) == (sum > 0) ? bits + 1 : bits - 1);
}

#define PTX_HALF_1(name, T, expression)                                                            \
    static inline u16 ptx_##name##_##T(u16 x)                                                      \
    {                                                                                              \
        const f32 a = ptx_f32_of_##T(x);                                                           \
        (void)a;                                                                                   \
        return expression;                                                                         \
    }                                                                                              \
    static inline u32 ptx_##name##_##T##x2(u32 x)                                                  \
    {                                                                                              \
        return (u32)ptx_##name##_##T((u16)(x >> 16)) << 16 | ptx_##name##_##T((u16)x);             \
    }
#define PTX_HALF_2(name, T, expression)                                                            \
    static inline u16 ptx_##name##_##T(u16 x, u16 y)                                               \
    {                                                                                              \
        const f32 a = ptx_f32_of_##T(x), b = ptx_f32_of_##T(y);                                    \
        return expression;                                                                         \
    }                                                                                              \
    static inline u32 ptx_##name##_##T##x2(u32 x, u32 y)                                           \
    {                                                                                              \
        return (u32)ptx_##name##_##T((u16)(x >> 16), (u16)(y >> 16)) << 16 |                       \
               ptx_##name##_##T((u16)x, (u16)y);                                                   \
    }
#define PTX_HALF_3(name, T, expression)                                                            \
    static inline u16 ptx_##name##_##T(u16 x, u16 y, u16 z)                                        \
    {                                                                                              \
        const f32 a = ptx_f32_of_##T(x), b = ptx_f32_of_##T(y), c = ptx_f32_of_##T(z);             \
        return expression;                                                                         \
    }                                                                                              \
    static inline u32 ptx_##name##_##T##x2(u32 x, u32 y, u32 z)                                    \
    {                                                                                              \
        return (u32)ptx_##name##_##T((u16)(x >> 16), (u16)(y >> 16), (u16)(z >> 16)) << 16 |       \
               ptx_##name##_##T((u16)x, (u16)y, (u16)z);                                           \
    }
#define PTX_HALF(T, one, exponent)                                                                 \
    PTX_HALF_1(ftz, T, x &exponent ? x : x & 0x8000)                                               \
    PTX_HALF_1(sat, T, a > 0 ? a < 1 ? x : one : 0)                                                \
    PTX_HALF_1(relu, T, a != a ? 0x7fff : a > 0 ? x : 0)                                           \
    PTX_HALF_1(abs, T, x & 0x7fff)                                                                 \
    PTX_HALF_1(neg, T, x ^ 0x8000)                                                                 \
    PTX_HALF_1(ex2, T, ptx_##T##_of_f64_rn(__builtin_exp2((f64)a)))                                \
    PTX_HALF_1(tanh, T, ptx_##T##_of_f64_rn(__builtin_tanh((f64)a)))                               \
    PTX_HALF_2(add, T, ptx_##T##_of_f64_rn(ptx_odd_sum(a, b)))                                     \
    PTX_HALF_2(sub, T, ptx_##T##_of_f64_rn(ptx_odd_sum(a, -(f64)b)))                               \
    PTX_HALF_2(mul, T, ptx_##T##_of_f64_rn((f64)a *b))                                             \
    PTX_HALF_2(min, T, ptx_##T##_of_f32_rn(ptx_min_f32(a, b)))                                     \
    PTX_HALF_2(max, T, ptx_##T##_of_f32_rn(ptx_max_f32(a, b)))                                     \
    PTX_HALF_2(min_nan, T, ptx_##T##_of_f32_rn(ptx_min_nan_f32(a, b)))                             \
    PTX_HALF_2(max_nan, T, ptx_##T##_of_f32_rn(ptx_max_nan_f32(a, b)))                             \
    PTX_HALF_3(fma, T, ptx_##T##_of_f64_rn(ptx_odd_sum((f64)a *b, c)))
PTX_HALF(f16, 0x3c00, 0x7c00)
PTX_HALF(bf16, 0x3f80, 0x7f80)

#endif
