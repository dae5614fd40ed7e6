/* Floating point numbers of 16 bits, under cuda_fp16.h and cuda_bf16.h: kept as bits, computed as
 * float, and rounded to the nearest (ties to even) after each operation, as on a GPU. */
#ifndef GSHMEM_HOST_DEVICE_SMALL_FLOAT_H
#define GSHMEM_HOST_DEVICE_SMALL_FLOAT_H

#include "cuda_runtime.h"
#include "half_bits.h"

namespace gshmem_host
{

/* 5 bits of exponent and 10 of fraction. */
struct half_format {
    static constexpr unsigned infinity = 0x7c00;

    static uint16_t narrow(float value)
    {
        return gshmem_half_of_float(value);
    }

    static float widen(uint16_t bits)
    {
        return gshmem_half_to_float(bits);
    }
};

/* float's upper half. */
struct bfloat16_format {
    static constexpr unsigned infinity = 0x7f80;

    static uint16_t narrow(float value)
    {
        return gshmem_bfloat16_of_float(value);
    }

    static float widen(uint16_t bits)
    {
        return gshmem_bfloat16_to_float(bits);
    }
};

/* A value that float cannot represent is first rounded to odd. The second rounding then sees that
 * bits were lost. */
inline float to_odd(long double value)
{
    float near = (float)value;

    if (near == value || near != near)
        return near;
    uint32_t bits = gshmem_single_bits(near);
    if (bits & 1)
        return near;
    bool away = near < value ? value > 0 : value < 0;
    return gshmem_single_of(near == 0 ? 1 | (value < 0 ? 0x80000000u : 0u)
                            : away    ? bits + 1
                                      : bits - 1);
}

/* a * b + c, rounded to odd. The product of two small numbers is exact in double, and the error of
 * the sum is a double. */
inline double fused(double a, double b, double c)
{
    const double product = a * b, sum = product + c, other = sum - product;
    const double error = (product - (sum - other)) + (c - other);
    uint64_t bits;

    if (!(error != 0) || !__builtin_isfinite(sum))
        return sum;
    memcpy(&bits, &sum, sizeof bits);
    return bits & 1 ? sum : nextafter(sum, error > 0 ? INFINITY : -INFINITY);
}

/* A number and all operations on it, by CUDA's names. The compiler finds them by an argument's
 * type. */
template <class Format> struct small {
    struct raw {
        unsigned short x;
    };
    unsigned short bits;

    small() = default;
    small(raw r) : bits(r.x)
    {
    }
    small(float value) : bits(Format::narrow(value))
    {
    }
    small(double value) : small(to_odd(value))
    {
    }
    small(short value) : small((float)value)
    {
    }
    small(unsigned short value) : small((float)value)
    {
    }
    small(int value) : small((double)value)
    {
    }
    small(unsigned value) : small((double)value)
    {
    }
    small(long value) : small(to_odd(value))
    {
    }
    small(unsigned long value) : small(to_odd(value))
    {
    }
    small(long long value) : small(to_odd(value))
    {
    }
    small(unsigned long long value) : small(to_odd(value))
    {
    }
    operator float() const
    {
        return Format::widen(bits);
    }
    operator raw() const
    {
        return raw{bits};
    }

#define GSHMEM_HOST_SMALL_OPERATOR(sign, name)                                                     \
    friend small operator sign(small a, small b)                                                   \
    {                                                                                              \
        return small((double)(float)a sign(double)(float) b);                                      \
    }                                                                                              \
    friend small &operator sign##=(small &a, small b)                                              \
    {                                                                                              \
        return a = a sign b;                                                                       \
    }                                                                                              \
    friend small name(small a, small b)                                                            \
    {                                                                                              \
        return a sign b;                                                                           \
    }
    GSHMEM_HOST_SMALL_OPERATOR(+, __hadd)
    GSHMEM_HOST_SMALL_OPERATOR(-, __hsub)
    GSHMEM_HOST_SMALL_OPERATOR(*, __hmul)
    GSHMEM_HOST_SMALL_OPERATOR(/, __hdiv)
#undef GSHMEM_HOST_SMALL_OPERATOR

/* A plain comparison with a NaN is false, also "not equal". The names that end in u return true. */
#define GSHMEM_HOST_SMALL_COMPARE(sign, name)                                                      \
    friend bool operator sign(small a, small b)                                                    \
    {                                                                                              \
        return (float)a sign(float) b;                                                             \
    }                                                                                              \
    friend bool name(small a, small b)                                                             \
    {                                                                                              \
        return !__hisnan(a) && !__hisnan(b) && a sign b;                                           \
    }                                                                                              \
    friend bool name##u(small a, small b)                                                          \
    {                                                                                              \
        return __hisnan(a) || __hisnan(b) || a sign b;                                             \
    }
    GSHMEM_HOST_SMALL_COMPARE(==, __heq)
    GSHMEM_HOST_SMALL_COMPARE(!=, __hne)
    GSHMEM_HOST_SMALL_COMPARE(<, __hlt)
    GSHMEM_HOST_SMALL_COMPARE(<=, __hle)
    GSHMEM_HOST_SMALL_COMPARE(>, __hgt)
    GSHMEM_HOST_SMALL_COMPARE(>=, __hge)
#undef GSHMEM_HOST_SMALL_COMPARE

#define GSHMEM_HOST_SMALL_OF(name, expression)                                                     \
    friend small name(small a)                                                                     \
    {                                                                                              \
        return small(expression);                                                                  \
    }
    GSHMEM_HOST_SMALL_OF(operator+, a)
    GSHMEM_HOST_SMALL_OF(operator-, (raw{(unsigned short)(a.bits ^ 0x8000)}))
    GSHMEM_HOST_SMALL_OF(__hneg, -a)
    GSHMEM_HOST_SMALL_OF(__habs, (raw{(unsigned short)(a.bits & 0x7fff)}))
    GSHMEM_HOST_SMALL_OF(hsqrt, sqrtf(a))
    GSHMEM_HOST_SMALL_OF(hrsqrt, 1.0f / sqrtf(a))
    GSHMEM_HOST_SMALL_OF(hrcp, 1.0f / (float)a)
    GSHMEM_HOST_SMALL_OF(hexp, expf(a))
    GSHMEM_HOST_SMALL_OF(hexp2, exp2f(a))
    GSHMEM_HOST_SMALL_OF(hexp10, powf(10.0f, a))
    GSHMEM_HOST_SMALL_OF(hlog, logf(a))
    GSHMEM_HOST_SMALL_OF(hlog2, log2f(a))
    GSHMEM_HOST_SMALL_OF(hlog10, log10f(a))
    GSHMEM_HOST_SMALL_OF(hsin, sinf(a))
    GSHMEM_HOST_SMALL_OF(hcos, cosf(a))
    GSHMEM_HOST_SMALL_OF(htanh, tanhf(a))
    GSHMEM_HOST_SMALL_OF(hfloor, floorf(a))
    GSHMEM_HOST_SMALL_OF(hceil, ceilf(a))
    GSHMEM_HOST_SMALL_OF(hrint, rintf(a))
    GSHMEM_HOST_SMALL_OF(htrunc, truncf(a))
#undef GSHMEM_HOST_SMALL_OF

    friend small __hfma(small a, small b, small c)
    {
        return small(fused((float)a, (float)b, (float)c));
    }
    friend small __hmin(small a, small b)
    {
        return small(least((float)a, (float)b));
    }
    friend small __hmax(small a, small b)
    {
        return small(most((float)a, (float)b));
    }
    friend bool __hisnan(small a)
    {
        return (a.bits & 0x7fff) > Format::infinity;
    }
    friend int __hisinf(small a)
    {
        return (a.bits & 0x7fff) != Format::infinity ? 0 : a.bits >> 15 ? -1 : 1;
    }
    friend small __ldg(const small *address)
    {
        return *address;
    }
    friend small atomicAdd(small *address, small value)
    {
        return update(address, [=](small old) { return old + value; });
    }
};

/* Two numbers in a word. Each operation applies to both. */
template <class Format> struct alignas(4) small_pair {
    typedef small<Format> number;

    number x, y;

    small_pair() = default;
    small_pair(number a, number b) : x(a), y(b)
    {
    }

#define GSHMEM_HOST_SMALL_OPERATOR(sign, name)                                                     \
    friend small_pair operator sign(small_pair a, small_pair b)                                    \
    {                                                                                              \
        return small_pair(a.x sign b.x, a.y sign b.y);                                             \
    }                                                                                              \
    friend small_pair &operator sign##=(small_pair &a, small_pair b)                               \
    {                                                                                              \
        return a = a sign b;                                                                       \
    }                                                                                              \
    friend small_pair name(small_pair a, small_pair b)                                             \
    {                                                                                              \
        return a sign b;                                                                           \
    }
    GSHMEM_HOST_SMALL_OPERATOR(+, __hadd2)
    GSHMEM_HOST_SMALL_OPERATOR(-, __hsub2)
    GSHMEM_HOST_SMALL_OPERATOR(*, __hmul2)
    GSHMEM_HOST_SMALL_OPERATOR(/, __h2div)
#undef GSHMEM_HOST_SMALL_OPERATOR

/* each: for each of the two numbers, 1 if the comparison is true, else 0. both: whether both
 * comparisons are true. NaN as above. */
#define GSHMEM_HOST_SMALL_EACH(one, each, both)                                                    \
    friend small_pair each(small_pair a, small_pair b)                                             \
    {                                                                                              \
        return small_pair((float)one(a.x, b.x), (float)one(a.y, b.y));                             \
    }                                                                                              \
    friend bool both(small_pair a, small_pair b)                                                   \
    {                                                                                              \
        return one(a.x, b.x) && one(a.y, b.y);                                                     \
    }
#define GSHMEM_HOST_SMALL_COMPARE(sign, name)                                                      \
    friend bool operator sign(small_pair a, small_pair b)                                          \
    {                                                                                              \
        return a.x sign b.x && a.y sign b.y;                                                       \
    }                                                                                              \
    GSHMEM_HOST_SMALL_EACH(__h##name, __h##name##2, __hb##name##2)                                 \
    GSHMEM_HOST_SMALL_EACH(__h##name##u, __h##name##u2, __hb##name##u2)
    GSHMEM_HOST_SMALL_COMPARE(==, eq)
    GSHMEM_HOST_SMALL_COMPARE(!=, ne)
    GSHMEM_HOST_SMALL_COMPARE(<, lt)
    GSHMEM_HOST_SMALL_COMPARE(<=, le)
    GSHMEM_HOST_SMALL_COMPARE(>, gt)
    GSHMEM_HOST_SMALL_COMPARE(>=, ge)
#undef GSHMEM_HOST_SMALL_EACH
#undef GSHMEM_HOST_SMALL_COMPARE

#define GSHMEM_HOST_SMALL_OF(name, of_one)                                                         \
    friend small_pair name(small_pair a)                                                           \
    {                                                                                              \
        return small_pair(of_one(a.x), of_one(a.y));                                               \
    }
    GSHMEM_HOST_SMALL_OF(operator-, -)
    GSHMEM_HOST_SMALL_OF(__hneg2, -)
    GSHMEM_HOST_SMALL_OF(__habs2, __habs)
    GSHMEM_HOST_SMALL_OF(h2sqrt, hsqrt)
    GSHMEM_HOST_SMALL_OF(h2rsqrt, hrsqrt)
    GSHMEM_HOST_SMALL_OF(h2rcp, hrcp)
    GSHMEM_HOST_SMALL_OF(h2exp, hexp)
    GSHMEM_HOST_SMALL_OF(h2exp2, hexp2)
    GSHMEM_HOST_SMALL_OF(h2log, hlog)
    GSHMEM_HOST_SMALL_OF(h2log2, hlog2)
    GSHMEM_HOST_SMALL_OF(h2sin, hsin)
    GSHMEM_HOST_SMALL_OF(h2cos, hcos)
    GSHMEM_HOST_SMALL_OF(h2floor, hfloor)
    GSHMEM_HOST_SMALL_OF(h2ceil, hceil)
    GSHMEM_HOST_SMALL_OF(h2rint, hrint)
    GSHMEM_HOST_SMALL_OF(h2trunc, htrunc)
#undef GSHMEM_HOST_SMALL_OF

    friend small_pair __hfma2(small_pair a, small_pair b, small_pair c)
    {
        return small_pair(__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y));
    }
    friend small_pair __hmin2(small_pair a, small_pair b)
    {
        return small_pair(__hmin(a.x, b.x), __hmin(a.y, b.y));
    }
    friend small_pair __hmax2(small_pair a, small_pair b)
    {
        return small_pair(__hmax(a.x, b.x), __hmax(a.y, b.y));
    }
    friend float __low2float(small_pair a)
    {
        return a.x;
    }
    friend float __high2float(small_pair a)
    {
        return a.y;
    }
    friend small_pair __lowhigh2highlow(small_pair a)
    {
        return small_pair(a.y, a.x);
    }
    friend small_pair __ldg(const small_pair *address)
    {
        return *address;
    }
    friend small_pair atomicAdd(small_pair *address, small_pair value)
    {
        return update(address, [=](small_pair old) { return old + value; });
    }
};

} /* namespace gshmem_host */

/* The names that contain the type: CUDA writes `one` for a number there, and `two` for a pair. */
#define GSHMEM_HOST_SMALL_NAME(result, name, parameters, expression)                               \
    static inline result name parameters                                                           \
    {                                                                                              \
        return expression;                                                                         \
    }
#define GSHMEM_HOST_SMALL_NAMES(number, pair, one, two)                                            \
    GSHMEM_HOST_SMALL_NAME(number, __float2##one, (float a), number(a))                            \
    GSHMEM_HOST_SMALL_NAME(number, __float2##one##_rn, (float a), number(a))                       \
    GSHMEM_HOST_SMALL_NAME(number, __double2##one, (double a), number(a))                          \
    GSHMEM_HOST_SMALL_NAME(float, __##one##2float, (number a), a)                                  \
    GSHMEM_HOST_SMALL_NAME(pair, __float2##two##_rn, (float a), pair(a, a))                        \
    GSHMEM_HOST_SMALL_NAME(pair, __floats2##two##_rn, (float a, float b), pair(a, b))              \
    GSHMEM_HOST_SMALL_NAME(pair, __float22##two##_rn, (float2 a), pair(a.x, a.y))                  \
    GSHMEM_HOST_SMALL_NAME(float2, __##two##2float2, (pair a), make_float2(a.x, a.y))              \
    GSHMEM_HOST_SMALL_NAME(pair, __##one##2##two, (number a), pair(a, a))                          \
    GSHMEM_HOST_SMALL_NAME(pair, __halves2##two, (number a, number b), pair(a, b))                 \
    GSHMEM_HOST_SMALL_NAME(pair, make_##two, (number a, number b), pair(a, b))                     \
    GSHMEM_HOST_SMALL_NAME(number, __low2##one, (pair a), a.x)                                     \
    GSHMEM_HOST_SMALL_NAME(number, __high2##one, (pair a), a.y)                                    \
    GSHMEM_HOST_SMALL_NAME(pair, __low2##two, (pair a), pair(a.x, a.x))                            \
    GSHMEM_HOST_SMALL_NAME(pair, __high2##two, (pair a), pair(a.y, a.y))                           \
    GSHMEM_HOST_SMALL_NAME(pair, __lows2##two, (pair a, pair b), pair(a.x, b.x))                   \
    GSHMEM_HOST_SMALL_NAME(pair, __highs2##two, (pair a, pair b), pair(a.y, b.y))                  \
    GSHMEM_HOST_SMALL_NAME(unsigned short, __##one##_as_ushort, (number a), a.bits)                \
    GSHMEM_HOST_SMALL_NAME(short, __##one##_as_short, (number a), (short)a.bits)                   \
    GSHMEM_HOST_SMALL_NAME(number, __ushort_as_##one, (unsigned short a), number::raw{a})          \
    GSHMEM_HOST_SMALL_NAME(number, __short_as_##one, (short a),                                    \
                           (typename number::raw{(unsigned short)a}))                              \
    GSHMEM_HOST_SMALL_INTEGER(number, one, short, short)                                           \
    GSHMEM_HOST_SMALL_INTEGER(number, one, ushort, unsigned short)                                 \
    GSHMEM_HOST_SMALL_INTEGER(number, one, int, int)                                               \
    GSHMEM_HOST_SMALL_INTEGER(number, one, uint, unsigned)                                         \
    GSHMEM_HOST_SMALL_INTEGER(number, one, ll, long long)                                          \
    GSHMEM_HOST_SMALL_INTEGER(number, one, ull, unsigned long long)
#define GSHMEM_HOST_SMALL_INTEGER(number, one, name, type)                                         \
    GSHMEM_HOST_SMALL_NAME(number, __##name##2##one##_rn, (type a), number(a))                     \
    GSHMEM_HOST_SMALL_NAME(type, __##one##2##name##_rn, (number a),                                \
                           gshmem_host::to_integer<type>(rintf(a)))                                \
    GSHMEM_HOST_SMALL_NAME(type, __##one##2##name##_rd, (number a),                                \
                           gshmem_host::to_integer<type>(floorf(a)))                               \
    GSHMEM_HOST_SMALL_NAME(type, __##one##2##name##_ru, (number a),                                \
                           gshmem_host::to_integer<type>(ceilf(a)))                                \
    GSHMEM_HOST_SMALL_NAME(type, __##one##2##name##_rz, (number a),                                \
                           gshmem_host::to_integer<type>(truncf(a)))

#endif
