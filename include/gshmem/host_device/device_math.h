/* CUDA's mathematics where it goes beyond <math.h>: min and max of all types, the fast and the
 * rounded forms (all as exact as the host's functions), and values as bits. */
#ifndef GSHMEM_HOST_DEVICE_DEVICE_MATH_H
#define GSHMEM_HOST_DEVICE_DEVICE_MATH_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

namespace gshmem_host
{

/* Converts a whole number to the nearest value of the integer type. As on a GPU, NaN becomes 0, or,
 * if one of the two types has 64 bits, the integer with only the highest bit set. */
template <class To, class From> inline To to_integer(From x)
{
    const bool is_signed = (To)-1 < (To)1;
    const int bits = 8 * (int)sizeof(To);
    const From limit = (From)ldexp(1.0, bits - is_signed);
    const uint64_t highest = (uint64_t)1 << (bits - 1);

    if (x != x)
        return sizeof(To) < 8 && sizeof(From) < 8 ? (To)0 : (To)highest;
    if (x >= limit)
        return (To)(is_signed ? highest - 1 : ~(uint64_t)0);
    if (x < (is_signed ? -limit : (From)0))
        return is_signed ? (To)highest : (To)0;
    return (To)x;
}

/* sin(pi * (quarters / 2 + x)), for an x so small that the product loses no bits. */
inline double sine_of_quarters(double x, int quarters)
{
    const double y =
        quarters & 1 ? cos(x * 3.14159265358979323846) : sin(x * 3.14159265358979323846);

    return quarters & 2 ? -y : y;
}

/* The remainder of the angle x, in units of pi, modulo a quarter turn (1/2). The number of quarter
 * turns is returned too. Both are exact. */
inline double without_quarters(double x, int *quarters)
{
    const double turn = fmod(x, 2.0), whole = rint(2 * turn);

    *quarters = whole != whole ? 0 : (int)whole;
    return turn - whole / 2;
}

inline double sine_of_turns(double x)
{
    int quarters;
    const double rest = without_quarters(x, &quarters), y = sine_of_quarters(rest, quarters);

    return y == 0 ? copysign(0.0, x) : y;
}

inline double cosine_of_turns(double x)
{
    int quarters;
    const double rest = without_quarters(x, &quarters), y = sine_of_quarters(rest, quarters + 1);

    return y == 0 ? 0.0 : y;
}

/* The smaller of the two; if one is NaN, the other. -0 is smaller than +0. */
template <class T> inline T least(T a, T b)
{
    return a != a ? b : b != b ? a : a == b ? (__builtin_signbit(a) ? a : b) : a < b ? a : b;
}

template <class T> inline T most(T a, T b)
{
    return a != a ? b : b != b ? a : a == b ? (__builtin_signbit(a) ? b : a) : a < b ? b : a;
}

} /* namespace gshmem_host */

#define GSHMEM_HOST_MIN_MAX(type)                                                                  \
    static inline constexpr type min(type a, type b)                                               \
    {                                                                                              \
        return b < a ? b : a;                                                                      \
    }                                                                                              \
    static inline constexpr type max(type a, type b)                                               \
    {                                                                                              \
        return a < b ? b : a;                                                                      \
    }
#define GSHMEM_HOST_MIN_MAX_MIXED(type, a_type, b_type)                                            \
    static inline constexpr type min(a_type a, b_type b)                                           \
    {                                                                                              \
        return min((type)a, (type)b);                                                              \
    }                                                                                              \
    static inline constexpr type max(a_type a, b_type b)                                           \
    {                                                                                              \
        return max((type)a, (type)b);                                                              \
    }                                                                                              \
    static inline constexpr type min(b_type a, a_type b)                                           \
    {                                                                                              \
        return min((type)a, (type)b);                                                              \
    }                                                                                              \
    static inline constexpr type max(b_type a, a_type b)                                           \
    {                                                                                              \
        return max((type)a, (type)b);                                                              \
    }
GSHMEM_HOST_MIN_MAX(int)
GSHMEM_HOST_MIN_MAX(unsigned)
GSHMEM_HOST_MIN_MAX(long)
GSHMEM_HOST_MIN_MAX(unsigned long)
GSHMEM_HOST_MIN_MAX(long long)
GSHMEM_HOST_MIN_MAX(unsigned long long)
GSHMEM_HOST_MIN_MAX_MIXED(unsigned, int, unsigned)
GSHMEM_HOST_MIN_MAX_MIXED(unsigned long, long, unsigned long)
GSHMEM_HOST_MIN_MAX_MIXED(unsigned long long, long long, unsigned long long)
#undef GSHMEM_HOST_MIN_MAX
#undef GSHMEM_HOST_MIN_MAX_MIXED

/* The same by names for one type. */
#define GSHMEM_HOST_MIN_MAX(least, most, type)                                                     \
    static inline constexpr type least(type a, type b)                                             \
    {                                                                                              \
        return b < a ? b : a;                                                                      \
    }                                                                                              \
    static inline constexpr type most(type a, type b)                                              \
    {                                                                                              \
        return a < b ? b : a;                                                                      \
    }
GSHMEM_HOST_MIN_MAX(umin, umax, unsigned)
GSHMEM_HOST_MIN_MAX(llmin, llmax, long long)
GSHMEM_HOST_MIN_MAX(ullmin, ullmax, unsigned long long)
#undef GSHMEM_HOST_MIN_MAX

static inline float min(float a, float b)
{
    return gshmem_host::least(a, b);
}

static inline float max(float a, float b)
{
    return gshmem_host::most(a, b);
}

static inline double min(double a, double b)
{
    return gshmem_host::least(a, b);
}

static inline double max(double a, double b)
{
    return gshmem_host::most(a, b);
}

#define GSHMEM_HOST_MATH1(type, name, expression)                                                  \
    static inline type name(type x)                                                                \
    {                                                                                              \
        return expression;                                                                         \
    }
#define GSHMEM_HOST_MATH2(type, name, expression)                                                  \
    static inline type name(type x, type y)                                                        \
    {                                                                                              \
        return expression;                                                                         \
    }
#define GSHMEM_HOST_MATH3(type, name, expression)                                                  \
    static inline type name(type x, type y, type z)                                                \
    {                                                                                              \
        return expression;                                                                         \
    }
GSHMEM_HOST_MATH1(float, rsqrtf, 1.0f / sqrtf(x))
GSHMEM_HOST_MATH1(double, rsqrt, 1.0 / sqrt(x))
GSHMEM_HOST_MATH1(float, rcbrtf, 1.0f / cbrtf(x))
GSHMEM_HOST_MATH1(double, rcbrt, 1.0 / cbrt(x))
GSHMEM_HOST_MATH1(float, sinpif, (float)gshmem_host::sine_of_turns(x))
GSHMEM_HOST_MATH1(float, cospif, (float)gshmem_host::cosine_of_turns(x))
GSHMEM_HOST_MATH1(double, sinpi, gshmem_host::sine_of_turns(x))
GSHMEM_HOST_MATH1(double, cospi, gshmem_host::cosine_of_turns(x))
GSHMEM_HOST_MATH1(float, __saturatef, x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f)
GSHMEM_HOST_MATH1(float, __frsqrt_rn, 1.0f / sqrtf(x))
GSHMEM_HOST_MATH1(float, __fsqrt_rn, sqrtf(x))
GSHMEM_HOST_MATH1(float, __frcp_rn, 1.0f / x)
GSHMEM_HOST_MATH1(double, __dsqrt_rn, sqrt(x))
GSHMEM_HOST_MATH1(double, __drcp_rn, 1.0 / x)
GSHMEM_HOST_MATH2(float, rhypotf, 1.0f / hypotf(x, y))
GSHMEM_HOST_MATH2(double, rhypot, 1.0 / hypot(x, y))
GSHMEM_HOST_MATH3(float, norm3df, hypotf(hypotf(x, y), z))
GSHMEM_HOST_MATH3(double, norm3d, hypot(hypot(x, y), z))
GSHMEM_HOST_MATH3(float, rnorm3df, 1.0f / norm3df(x, y, z))
GSHMEM_HOST_MATH3(double, rnorm3d, 1.0 / norm3d(x, y, z))
GSHMEM_HOST_MATH2(float, __fdividef, x / y)
GSHMEM_HOST_MATH2(float, fdividef, x / y)
GSHMEM_HOST_MATH2(float, __fadd_rn, x + y)
GSHMEM_HOST_MATH2(float, __fsub_rn, x - y)
GSHMEM_HOST_MATH2(float, __fmul_rn, x *y)
GSHMEM_HOST_MATH2(float, __fdiv_rn, x / y)
GSHMEM_HOST_MATH2(double, __dadd_rn, x + y)
GSHMEM_HOST_MATH2(double, __dsub_rn, x - y)
GSHMEM_HOST_MATH2(double, __dmul_rn, x *y)
GSHMEM_HOST_MATH2(double, __ddiv_rn, x / y)
GSHMEM_HOST_MATH3(float, __fmaf_rn, fmaf(x, y, z))
GSHMEM_HOST_MATH3(double, __fma_rn, fma(x, y, z))
GSHMEM_HOST_MATH2(int, __mul24, (int)((uint32_t)(x << 8 >> 8) * (uint32_t)(y << 8 >> 8)))
GSHMEM_HOST_MATH2(unsigned, __umul24, (x & 0xffffff) * (y & 0xffffff))
GSHMEM_HOST_MATH2(int, __mulhi, (int)((int64_t)x *y >> 32))
GSHMEM_HOST_MATH2(unsigned, __umulhi, (unsigned)((uint64_t)x *y >> 32))
GSHMEM_HOST_MATH2(long long, __mul64hi, (long long)((__int128)x *y >> 64))
GSHMEM_HOST_MATH2(unsigned long long, __umul64hi,
                  (unsigned long long)((unsigned __int128)x *y >> 64))
GSHMEM_HOST_MATH2(int, __hadd, (int)(((int64_t)x + y) >> 1))
GSHMEM_HOST_MATH2(int, __rhadd, (int)(((int64_t)x + y + 1) >> 1))
GSHMEM_HOST_MATH3(unsigned, __usad, (x > y ? x - y : y - x) + z)
#undef GSHMEM_HOST_MATH1
#undef GSHMEM_HOST_MATH2
#undef GSHMEM_HOST_MATH3

/* The C library declares functions of these names, for itself. */
#define __expf(x)                  expf(x)
#define __exp10f(x)                powf(10.0f, x)
#define __logf(x)                  logf(x)
#define __log2f(x)                 log2f(x)
#define __log10f(x)                log10f(x)
#define __sinf(x)                  sinf(x)
#define __cosf(x)                  cosf(x)
#define __tanf(x)                  tanf(x)
#define __powf(x, y)               powf(x, y)
#define __sincosf(x, sine, cosine) sincosf(x, sine, cosine)

#define GSHMEM_HOST_BITS(name, from, to)                                                           \
    static inline to name(from x)                                                                  \
    {                                                                                              \
        to bits;                                                                                   \
        memcpy(&bits, &x, sizeof bits);                                                            \
        return bits;                                                                               \
    }
GSHMEM_HOST_BITS(__float_as_int, float, int)
GSHMEM_HOST_BITS(__float_as_uint, float, unsigned)
GSHMEM_HOST_BITS(__int_as_float, int, float)
GSHMEM_HOST_BITS(__uint_as_float, unsigned, float)
GSHMEM_HOST_BITS(__double_as_longlong, double, long long)
GSHMEM_HOST_BITS(__longlong_as_double, long long, double)
#undef GSHMEM_HOST_BITS

/* To integers in each of the four rounding modes, limited to the integer's range; and back. */
#define GSHMEM_HOST_ROUND(of, name, to, f)                                                         \
    static inline to __##of##2##name##_rn(of x)                                                    \
    {                                                                                              \
        return gshmem_host::to_integer<to>(rint##f(x));                                            \
    }                                                                                              \
    static inline to __##of##2##name##_rz(of x)                                                    \
    {                                                                                              \
        return gshmem_host::to_integer<to>(trunc##f(x));                                           \
    }                                                                                              \
    static inline to __##of##2##name##_rd(of x)                                                    \
    {                                                                                              \
        return gshmem_host::to_integer<to>(floor##f(x));                                           \
    }                                                                                              \
    static inline to __##of##2##name##_ru(of x)                                                    \
    {                                                                                              \
        return gshmem_host::to_integer<to>(ceil##f(x));                                            \
    }                                                                                              \
    static inline of __##name##2##of##_rn(to x)                                                    \
    {                                                                                              \
        return (of)x;                                                                              \
    }
GSHMEM_HOST_ROUND(float, int, int, f)
GSHMEM_HOST_ROUND(float, uint, unsigned, f)
GSHMEM_HOST_ROUND(float, ll, long long, f)
GSHMEM_HOST_ROUND(float, ull, unsigned long long, f)
GSHMEM_HOST_ROUND(double, ll, long long, )
GSHMEM_HOST_ROUND(double, ull, unsigned long long, )
#undef GSHMEM_HOST_ROUND

/* Every int is exact as a double. Therefore the way back is not rounded, and CUDA has other names
 * for it. */
#define GSHMEM_HOST_ROUND(name, to)                                                                \
    static inline to __double2##name##_rn(double x)                                                \
    {                                                                                              \
        return gshmem_host::to_integer<to>(rint(x));                                               \
    }                                                                                              \
    static inline to __double2##name##_rz(double x)                                                \
    {                                                                                              \
        return gshmem_host::to_integer<to>(trunc(x));                                              \
    }                                                                                              \
    static inline to __double2##name##_rd(double x)                                                \
    {                                                                                              \
        return gshmem_host::to_integer<to>(floor(x));                                              \
    }                                                                                              \
    static inline to __double2##name##_ru(double x)                                                \
    {                                                                                              \
        return gshmem_host::to_integer<to>(ceil(x));                                               \
    }                                                                                              \
    static inline double __##name##2double_rn(to x)                                                \
    {                                                                                              \
        return x;                                                                                  \
    }
GSHMEM_HOST_ROUND(int, int)
GSHMEM_HOST_ROUND(uint, unsigned)
#undef GSHMEM_HOST_ROUND

static inline float __double2float_rn(double x)
{
    return (float)x;
}

namespace gshmem_host
{

/* The value of the floating type below x, where `rounded` is the one nearest to it; above; and
 * towards 0. Exact is a type that has all values of both. An x beyond the largest value is rounded
 * to that, or to infinity, as the direction says. */
template <class Exact, class To> inline To downwards(Exact x, To rounded)
{
    return (Exact)rounded > x ? nextafter(rounded, (To)-INFINITY) : rounded;
}

template <class Exact, class To> inline To upwards(Exact x, To rounded)
{
    return (Exact)rounded < x ? nextafter(rounded, (To)INFINITY) : rounded;
}

template <class Exact, class To> inline To inwards(Exact x, To rounded)
{
    return x < 0 ? upwards(x, rounded) : downwards(x, rounded);
}

} /* namespace gshmem_host */

/* To floating types in the other three rounding modes. */
#define GSHMEM_HOST_ROUND(name, from, exact, to)                                                   \
    static inline to __##name##_rz(from x)                                                         \
    {                                                                                              \
        return gshmem_host::inwards<exact, to>(x, (to)x);                                          \
    }                                                                                              \
    static inline to __##name##_rd(from x)                                                         \
    {                                                                                              \
        return gshmem_host::downwards<exact, to>(x, (to)x);                                        \
    }                                                                                              \
    static inline to __##name##_ru(from x)                                                         \
    {                                                                                              \
        return gshmem_host::upwards<exact, to>(x, (to)x);                                          \
    }
GSHMEM_HOST_ROUND(int2float, int, double, float)
GSHMEM_HOST_ROUND(uint2float, unsigned, double, float)
GSHMEM_HOST_ROUND(ll2float, long long, __int128, float)
GSHMEM_HOST_ROUND(ull2float, unsigned long long, __int128, float)
GSHMEM_HOST_ROUND(ll2double, long long, __int128, double)
GSHMEM_HOST_ROUND(ull2double, unsigned long long, __int128, double)
GSHMEM_HOST_ROUND(double2float, double, double, float)
#undef GSHMEM_HOST_ROUND

#endif
