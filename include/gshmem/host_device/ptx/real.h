/* f32 and f64. To nearest is what C does; other rounding modes are calls of the library, which
 * changes the processor's mode where nothing can interrupt it. */
#ifndef GSHMEM_HOST_DEVICE_PTX_REAL_H
#define GSHMEM_HOST_DEVICE_PTX_REAL_H

#include "types.h"

enum ptx_rounding { PTX_RN, PTX_RZ, PTX_RM, PTX_RP };
enum ptx_arithmetic { PTX_OP_ADD, PTX_OP_SUB, PTX_OP_MUL, PTX_OP_DIV, PTX_OP_FMA, PTX_OP_SQRT };

#pragma GCC visibility push(default)
f32 gshmem_host_ptx_f32(int operation, int rounding, f32 a, f32 b, f32 c);
f64 gshmem_host_ptx_f64(int operation, int rounding, f64 a, f64 b, f64 c);
#pragma GCC visibility pop

#define PTX_REAL_OPERATION(name, NAME, T, nearest, parameters, ...)                                \
    static inline T ptx_##name##_##T parameters                                                    \
    {                                                                                              \
        return nearest;                                                                            \
    }                                                                                              \
    static inline T ptx_##name##_##T##_rz parameters                                               \
    {                                                                                              \
        return gshmem_host_ptx_##T(PTX_OP_##NAME, PTX_RZ, __VA_ARGS__);                            \
    }                                                                                              \
    static inline T ptx_##name##_##T##_rm parameters                                               \
    {                                                                                              \
        return gshmem_host_ptx_##T(PTX_OP_##NAME, PTX_RM, __VA_ARGS__);                            \
    }                                                                                              \
    static inline T ptx_##name##_##T##_rp parameters                                               \
    {                                                                                              \
        return gshmem_host_ptx_##T(PTX_OP_##NAME, PTX_RP, __VA_ARGS__);                            \
    }
PTX_REAL_OPERATION(add, ADD, f32, a + b, (f32 a, f32 b), a, b, 0)
PTX_REAL_OPERATION(sub, SUB, f32, a - b, (f32 a, f32 b), a, b, 0)
PTX_REAL_OPERATION(mul, MUL, f32, a *b, (f32 a, f32 b), a, b, 0)
PTX_REAL_OPERATION(div, DIV, f32, a / b, (f32 a, f32 b), a, b, 0)
PTX_REAL_OPERATION(fma, FMA, f32, __builtin_fmaf(a, b, c), (f32 a, f32 b, f32 c), a, b, c)
PTX_REAL_OPERATION(sqrt, SQRT, f32, __builtin_sqrtf(a), (f32 a), a, 0, 0)
PTX_REAL_OPERATION(add, ADD, f64, a + b, (f64 a, f64 b), a, b, 0)
PTX_REAL_OPERATION(sub, SUB, f64, a - b, (f64 a, f64 b), a, b, 0)
PTX_REAL_OPERATION(mul, MUL, f64, a *b, (f64 a, f64 b), a, b, 0)
PTX_REAL_OPERATION(div, DIV, f64, a / b, (f64 a, f64 b), a, b, 0)
PTX_REAL_OPERATION(fma, FMA, f64, __builtin_fma(a, b, c), (f64 a, f64 b, f64 c), a, b, c)
PTX_REAL_OPERATION(sqrt, SQRT, f64, __builtin_sqrt(a), (f64 a), a, 0, 0)

/* Subnormal numbers become a zero of the same sign. */
static inline f32 ptx_ftz_f32(f32 x)
{
    const u32 bits = ptx_bits_f32(x);

    return bits & 0x7f800000u ? x : ptx_f32(bits & 0x80000000u);
}

static inline f64 ptx_ftz_f64(f64 x)
{
    const u64 bits = ptx_bits_f64(x);

    return bits & 0x7ff0000000000000u ? x : ptx_f64(bits & 0x8000000000000000u);
}

/* To 0 … 1; NaN to +0. */
static inline f32 ptx_sat_f32(f32 x)
{
    return x > 0 ? x < 1 ? x : 1 : 0;
}

static inline f64 ptx_sat_f64(f64 x)
{
    return x > 0 ? x < 1 ? x : 1 : 0;
}

static inline f32 ptx_relu_f32(f32 x)
{
    return x != x ? ptx_f32(0x7fffffff) : x > 0 ? x : 0;
}

/* A reciprocal and a square root, exact to 20 bits or more; only the upper half is computed. */
static inline f64 ptx_rcp_approx_f64(f64 x)
{
    return ptx_bits_f64(x) & 0x7ff0000000000000u
               ? ptx_ftz_f64(1 / x)
               : ptx_f64((ptx_bits_f64(x) & 0x8000000000000000u) | 0x7ff0000000000000u);
}

static inline f64 ptx_rsqrt_approx_f64(f64 x)
{
    return 1 / __builtin_sqrt(ptx_ftz_f64(x));
}

static inline f32 ptx_rsqrt_f32(f32 x)
{
    return (f32)(1 / __builtin_sqrt((f64)x));
}

static inline f32 ptx_abs_f32(f32 x)
{
    return __builtin_fabsf(x);
}

/* The smaller or larger number; -0 is smaller than +0; two NaN give the canonical one. */
#define PTX_EXTREME(T, bits, nan)                                                                  \
    static inline T ptx_min_##T(T a, T b)                                                          \
    {                                                                                              \
        if (a != a)                                                                                \
            return b != b ? nan : b;                                                               \
        if (b != b)                                                                                \
            return a;                                                                              \
        return a == b ? (__builtin_signbit(a) ? a : b) : a < b ? a : b;                            \
    }                                                                                              \
    static inline T ptx_max_##T(T a, T b)                                                          \
    {                                                                                              \
        if (a != a)                                                                                \
            return b != b ? nan : b;                                                               \
        if (b != b)                                                                                \
            return a;                                                                              \
        return a == b ? (__builtin_signbit(a) ? b : a) : a > b ? a : b;                            \
    }                                                                                              \
    static inline T ptx_min_nan_##T(T a, T b)                                                      \
    {                                                                                              \
        return a != a || b != b ? nan : ptx_min_##T(a, b);                                         \
    }                                                                                              \
    static inline T ptx_max_nan_##T(T a, T b)                                                      \
    {                                                                                              \
        return a != a || b != b ? nan : ptx_max_##T(a, b);                                         \
    }
PTX_EXTREME(f32, ptx_bits_f32, ptx_f32(0x7fffffffu))
PTX_EXTREME(f64, ptx_bits_f64, ptx_f64(0x7fffffffffffffffu))

/* min and max .xorsign.abs: the sign is that of the product. */
static inline f32 ptx_xorsign_f32(f32 x, f32 a, f32 b)
{
    const u32 sign = (ptx_bits_f32(a) ^ ptx_bits_f32(b)) & 0x80000000u;

    return x != x ? x : ptx_f32((ptx_bits_f32(x) & 0x7fffffffu) | sign);
}

/* --- Two f32 in a word of 64 bits: each for itself --- */

static inline f32 ptx_low_f32(u64 two)
{
    return ptx_f32((u32)two);
}

static inline f32 ptx_high_f32(u64 two)
{
    return ptx_f32((u32)(two >> 32));
}

static inline u64 ptx_two_f32(f32 low, f32 high)
{
    return (u64)ptx_bits_f32(high) << 32 | ptx_bits_f32(low);
}

static inline u64 ptx_ftz_f32x2(u64 x)
{
    return ptx_two_f32(ptx_ftz_f32(ptx_low_f32(x)), ptx_ftz_f32(ptx_high_f32(x)));
}

#define PTX_TWO_F32_OF(name, suffix)                                                               \
    static inline u64 ptx_##name##_f32x2##suffix(u64 a, u64 b)                                     \
    {                                                                                              \
        return ptx_two_f32(ptx_##name##_f32##suffix(ptx_low_f32(a), ptx_low_f32(b)),               \
                           ptx_##name##_f32##suffix(ptx_high_f32(a), ptx_high_f32(b)));            \
    }
#define PTX_TWO_F32(suffix)                                                                        \
    PTX_TWO_F32_OF(add, suffix)                                                                    \
    PTX_TWO_F32_OF(sub, suffix)                                                                    \
    PTX_TWO_F32_OF(mul, suffix)                                                                    \
    static inline u64 ptx_fma_f32x2##suffix(u64 a, u64 b, u64 c)                                   \
    {                                                                                              \
        return ptx_two_f32(                                                                        \
            ptx_fma_f32##suffix(ptx_low_f32(a), ptx_low_f32(b), ptx_low_f32(c)),                   \
            ptx_fma_f32##suffix(ptx_high_f32(a), ptx_high_f32(b), ptx_high_f32(c)));               \
    }
PTX_TWO_F32()
PTX_TWO_F32(_rz)
PTX_TWO_F32(_rm)
PTX_TWO_F32(_rp)

#define PTX_TEST(name, T, expression)                                                              \
    static inline u8 ptx_testp_##name##_##T(T x)                                                   \
    {                                                                                              \
        return expression;                                                                         \
    }
#define PTX_TESTS(T)                                                                               \
    PTX_TEST(finite, T, __builtin_isfinite(x) != 0)                                                \
    PTX_TEST(infinite, T, !__builtin_isfinite(x) && x == x)                                        \
    PTX_TEST(number, T, x == x)                                                                    \
    PTX_TEST(notanumber, T, x != x)                                                                \
    PTX_TEST(normal, T, x == 0 || __builtin_isnormal(x)) /* both zeros are, by the PTX manual */   \
    PTX_TEST(subnormal, T, __builtin_isfinite(x) && x != 0 && !__builtin_isnormal(x))
PTX_TESTS(f32)
PTX_TESTS(f64)

/* Comparisons: the plain ones are false where a NaN is, those with u true. */
#define ptx_eq(a, b)  ((a) == (b))
#define ptx_ne(a, b)  ((a) < (b) || (a) > (b))
#define ptx_lt(a, b)  ((a) < (b))
#define ptx_le(a, b)  ((a) <= (b))
#define ptx_gt(a, b)  ((a) > (b))
#define ptx_ge(a, b)  ((a) >= (b))
#define ptx_equ(a, b) (!ptx_ne(a, b))
#define ptx_neu(a, b) ((a) != (b))
#define ptx_ltu(a, b) (!((a) >= (b)))
#define ptx_leu(a, b) (!((a) > (b)))
#define ptx_gtu(a, b) (!((a) <= (b)))
#define ptx_geu(a, b) (!((a) < (b)))
#define ptx_num(a, b) ((a) == (a) && (b) == (b))
#define ptx_nan(a, b) (!ptx_num(a, b))

#endif
