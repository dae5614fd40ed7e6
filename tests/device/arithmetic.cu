/* Arithmetic of CUDA's own at its limits: conversions to integers, which saturate, comparisons with NaN, sines of
 * many turns, roundings that must be one. Expected is what long double, or integers, say. */
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <math.h>

#include <limits>

#include "device.h"

enum { ROUNDINGS = 4, MANY = 64 };

/* ---- To integers ---- */

/* By hand, in long double: to the nearest even, to zero, down, up. */
static long double rounded(long double x, int how)
{
    long double down = floorl(x), up = ceill(x);

    switch (how) {
    case 0:
        if (x - down == up - x)
            return fmodl(down, 2) == 0 ? down : up;
        return x - down < up - x ? down : up;
    case 1:
        return x < 0 ? up : down;
    case 2:
        return down;
    default:
        return up;
    }
}

template <class To> static To expected(long double x, int how, bool wide)
{
    const long double least = (long double)std::numeric_limits<To>::min();
    const long double most = (long double)std::numeric_limits<To>::max();

    if (x != x)
        return wide || sizeof(To) == 8 ? (To)((unsigned long long)1 << (8 * sizeof(To) - 1)) : (To)0;
    long double r = std::isinf((double)x) ? x : rounded(x, how);
    return r <= least ? std::numeric_limits<To>::min() : r >= most ? std::numeric_limits<To>::max() : (To)r;
}

#define OF_FLOAT(name, to)                                                                         \
    __global__ void float_to_##name(const float *x, to *out, int n)                                \
    {                                                                                              \
        for (int i = threadIdx.x; i < n; i += blockDim.x) {                                        \
            out[4 * i] = __float2##name##_rn(x[i]);                                                \
            out[4 * i + 1] = __float2##name##_rz(x[i]);                                            \
            out[4 * i + 2] = __float2##name##_rd(x[i]);                                            \
            out[4 * i + 3] = __float2##name##_ru(x[i]);                                            \
        }                                                                                          \
    }                                                                                              \
    __global__ void double_to_##name(const double *x, to *out, int n)                              \
    {                                                                                              \
        for (int i = threadIdx.x; i < n; i += blockDim.x) {                                        \
            out[4 * i] = __double2##name##_rn(x[i]);                                               \
            out[4 * i + 1] = __double2##name##_rz(x[i]);                                           \
            out[4 * i + 2] = __double2##name##_rd(x[i]);                                           \
            out[4 * i + 3] = __double2##name##_ru(x[i]);                                           \
        }                                                                                          \
    }
OF_FLOAT(int, int)
OF_FLOAT(uint, unsigned)
OF_FLOAT(ll, long long)
OF_FLOAT(ull, unsigned long long)

template <class From, class To>
static void check_one(const char *name, void (*kernel)(const From *, To *, int))
{
    static const double ends[] = {0, 0.4, 0.5, 0.6, 1, 1.5, 2.5, 127, 32767.5, 65535.5, 2147483647.0, 2147483648.0,
                                  4294967295.0, 4294967296.0, 9223372036854775808.0, 18446744073709551616.0, 3e9,
                                  1e20, 1e38, INFINITY, NAN, 0x1p-100, 8388607.5, 16777217};
    const int n = sizeof ends / sizeof ends[0] * 6;
    From *x = shared_array<From>(n);
    To *out = shared_array<To>(4 * n);

    for (int i = 0; i < n; i++) {
        From one = (From)ends[i / 6];
        one = i / 2 % 3 == 1 ? std::nextafter(one, (From)0) : i / 2 % 3 == 2 ? std::nextafter(one, (From)INFINITY) : one;
        x[i] = i % 2 ? -one : one;
    }
    kernel<<<1, MANY>>>(x, out, n);
    CHECK_LAUNCH();
    for (int i = 0; i < 4 * n; i++) {
        To want = expected<To>((long double)x[i / 4], i % 4, sizeof(From) == 8);
        if (out[i] != want)
            CHECK_FAIL("%s of %a, rounding %d: %lld, expected %lld", name, (double)x[i / 4], i % 4, (long long)out[i],
                       (long long)want);
    }
    CHECK_CUDA(cudaFree(x));
    CHECK_CUDA(cudaFree(out));
}

static void check_integers()
{
    check_one<float, int>("__float2int", float_to_int);
    check_one<float, unsigned>("__float2uint", float_to_uint);
    check_one<float, long long>("__float2ll", float_to_ll);
    check_one<float, unsigned long long>("__float2ull", float_to_ull);
    check_one<double, int>("__double2int", double_to_int);
    check_one<double, unsigned>("__double2uint", double_to_uint);
    check_one<double, long long>("__double2ll", double_to_ll);
    check_one<double, unsigned long long>("__double2ull", double_to_ull);
}

/* Kernels for sm_75 have no bfloat16: there these are empty. */
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
#define HAVE_BOTH 1
#endif

struct integers {
    short s[2];
    unsigned short us[2];
    int i[4];
    unsigned u[4];
    long long ll[4];
    unsigned long long ull[4];
};

#define ALL_FOUR(out, one, name, x)                                                                \
    out[0] = __##one##2##name##_rn(x);                                                             \
    out[1] = __##one##2##name##_rz(x);                                                             \
    out[2] = __##one##2##name##_rd(x);                                                             \
    out[3] = __##one##2##name##_ru(x)

#define SMALL_INTEGERS(T, one)                                                                     \
    __device__ void to_integers(T x, integers *o)                                                  \
    {                                                                                              \
        o->s[0] = __##one##2short_rn(x);                                                           \
        o->s[1] = __##one##2short_rz(x);                                                           \
        o->us[0] = __##one##2ushort_rn(x);                                                         \
        o->us[1] = __##one##2ushort_rz(x);                                                         \
        ALL_FOUR(o->i, one, int, x);                                                               \
        ALL_FOUR(o->u, one, uint, x);                                                              \
        ALL_FOUR(o->ll, one, ll, x);                                                               \
        ALL_FOUR(o->ull, one, ull, x);                                                             \
    }

template <class T> static __host__ __device__ T of_bits(unsigned bits)
{
    unsigned short half = (unsigned short)bits;
    T x;

    memcpy((void *)&x, &half, sizeof x);
    return x;
}

#ifdef HAVE_BOTH
SMALL_INTEGERS(__half, half)
SMALL_INTEGERS(__nv_bfloat16, bfloat16)
#endif

template <class T> __global__ void all_to_integers(integers *out)
{
#ifdef HAVE_BOTH
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

    to_integers(of_bits<T>(i), &out[i]);
#endif
}

template <class T> static void check_small_integers()
{
    integers *out = shared_array<integers>(65536);

    all_to_integers<T><<<256, 256>>>(out);
    CHECK_LAUNCH();
    for (unsigned bits = 0; bits < 65536; bits++) {
        const long double x = (float)of_bits<T>(bits);
        for (int how = 0; how < ROUNDINGS; how++) {
            if (how < 2) {
                CHECK_EQ(out[bits].s[how], expected<short>(x, how, false));
                CHECK_EQ(out[bits].us[how], expected<unsigned short>(x, how, false));
            }
            CHECK_EQ(out[bits].i[how], expected<int>(x, how, false));
            CHECK_EQ(out[bits].u[how], expected<unsigned>(x, how, false));
            CHECK_EQ(out[bits].ll[how], expected<long long>(x, how, false));
            CHECK_EQ(out[bits].ull[how], expected<unsigned long long>(x, how, false));
        }
    }
    CHECK_CUDA(cudaFree(out));
}

/* ---- Comparisons, the least and the most ---- */

struct compared {
    bool ordered[6], unordered[6], operators[6];
    float each[6], each_unordered[6];
    bool both[6], both_unordered[6];
    unsigned short least, most;
};

template <class T, class T2> __global__ void compare(const T *a, compared *out, int n)
{
#ifdef HAVE_BOTH
    for (int i = threadIdx.x; i < n * n; i += blockDim.x) {
        T x = a[i / n], y = a[i % n], least = __hmin(x, y), most = __hmax(x, y);
        T2 xx, yy;
        compared *o = &out[i];

        xx.x = xx.y = x;
        yy.x = yy.y = y;
        yy.x = a[0];
        xx.x = a[0]; /* equal, but where that is a NaN */
#define COMPARE(k, sign, name)                                                                     \
    o->ordered[k] = __h##name(x, y);                                                               \
    o->unordered[k] = __h##name##u(x, y);                                                          \
    o->operators[k] = x sign y;                                                                    \
    o->each[k] = __high2float(__h##name##2(xx, yy));                                               \
    o->each_unordered[k] = __high2float(__h##name##u2(xx, yy));                                    \
    o->both[k] = __hb##name##2(xx, yy);                                                            \
    o->both_unordered[k] = __hb##name##u2(xx, yy)
        COMPARE(0, ==, eq);
        COMPARE(1, !=, ne);
        COMPARE(2, <, lt);
        COMPARE(3, <=, le);
        COMPARE(4, >, gt);
        COMPARE(5, >=, ge);
#undef COMPARE
        memcpy(&o->least, &least, sizeof o->least);
        memcpy(&o->most, &most, sizeof o->most);
    }
#endif
}

template <class T, class T2> static void check_comparisons()
{
    static const float numbers[] = {1, -1, 0, -0.0f, 2, INFINITY, -INFINITY, NAN};
    const int n = sizeof numbers / sizeof numbers[0];
    T *a = shared_array<T>(n);
    compared *out = shared_array<compared>(n * n);

    for (int i = 0; i < n; i++)
        a[i] = T(numbers[i]);
    compare<T, T2><<<1, MANY>>>(a, out, n);
    CHECK_LAUNCH();
    for (int i = 0; i < n * n; i++) {
        const float x = numbers[i / n], y = numbers[i % n];
        const bool nan = x != x || y != y;
        const bool is[6] = {x == y, x != y, x < y, x <= y, x > y, x >= y};
        const bool first[6] = {true, false, false, true, false, true}; /* of a number with itself */
        for (int k = 0; k < 6; k++) {
            CHECK_EQ(out[i].ordered[k], is[k] && !nan);
            CHECK_EQ(out[i].unordered[k], is[k] || nan);
            CHECK_EQ(out[i].operators[k], is[k]);
            CHECK_EQ(out[i].each[k], is[k] && !nan);
            CHECK_EQ(out[i].each_unordered[k], is[k] || nan);
            CHECK_EQ(out[i].both[k], is[k] && !nan && first[k]);
            CHECK_EQ(out[i].both_unordered[k], (is[k] || nan) && first[k]);
        }
        if (x != x && y != y) {
            CHECK_EQ(out[i].least, 0x7fff);
            CHECK_EQ(out[i].most, 0x7fff);
            continue;
        }
        const bool y_is_less = x != x || y < x || (x == y && signbit(y));
        const bool y_is_more = x != x || y > x || (x == y && !signbit(y));
        const float least = y != y || !y_is_less ? x : y, most = y != y || !y_is_more ? x : y;
        float got = (float)of_bits<T>(out[i].least);
        CHECK(got == least && signbit(got) == signbit(least));
        got = (float)of_bits<T>(out[i].most);
        CHECK(got == most && signbit(got) == signbit(most));
    }
    CHECK_CUDA(cudaFree(a));
    CHECK_CUDA(cudaFree(out));
}

/* ---- One rounding ---- */

__global__ void round_once(float *out, float a, float b, float tiny)
{
#ifdef HAVE_BOTH
    out[0] = __bfloat162float(__hfma(__float2bfloat16(a), __float2bfloat16(b), __float2bfloat16(-tiny)));
    out[1] = __bfloat162float(__hfma(__float2bfloat16(a), __float2bfloat16(b), __float2bfloat16(tiny)));
    out[2] = __bfloat162float(__hfma(__float2bfloat16(-a), __float2bfloat16(b), __float2bfloat16(tiny)));
    /* A little more than half of the smallest there is. */
    out[3] = __bfloat162float(__float2bfloat16(0x1.02p-67f) * __float2bfloat16(0x1.fep-68f));
#endif
}

static void check_rounding()
{
    float *out = shared_array<float>(4);

    round_once<<<1, 1>>>(out, 1.75f, 1.15625f, 0x1p-100f); /* 2.0234375, between 2.015625 and 2.03125 */
    CHECK_LAUNCH();
    CHECK_EQ(out[0], 2.015625f);
    CHECK_EQ(out[1], 2.03125f);
    CHECK_EQ(out[2], -2.015625f);
    CHECK_EQ(out[3], 0x1p-133f);
    CHECK_CUDA(cudaFree(out));
}

/* ---- Sines of turns ---- */

/* ---- To floating types, in each rounding mode: a bound is the last value of the type on its side ---- */

#define TO_FLOATING(name, from, to)                                                                \
    __global__ void round_##name(const from *x, to *out, int n)                                    \
    {                                                                                              \
        for (int i = threadIdx.x; i < n; i += blockDim.x) {                                        \
            out[4 * i] = __##name##_rn(x[i]);                                                      \
            out[4 * i + 1] = __##name##_rz(x[i]);                                                  \
            out[4 * i + 2] = __##name##_rd(x[i]);                                                  \
            out[4 * i + 3] = __##name##_ru(x[i]);                                                  \
        }                                                                                          \
    }
TO_FLOATING(int2float, int, float)
TO_FLOATING(uint2float, unsigned, float)
TO_FLOATING(ll2float, long long, float)
TO_FLOATING(ull2float, unsigned long long, float)
TO_FLOATING(ll2double, long long, double)
TO_FLOATING(ull2double, unsigned long long, double)
TO_FLOATING(double2float, double, float)

template <class From, class To>
static void check_floating(const char *name, void (*kernel)(const From *, To *, int), const From *x, int n)
{
    To *out = shared_array<To>(4 * n);

    kernel<<<1, MANY>>>(x, out, n);
    CHECK_LAUNCH();
    for (int i = 0; i < n; i++) {
        const To nearest = out[4 * i], zero = out[4 * i + 1], down = out[4 * i + 2], up = out[4 * i + 3];
        const long double value = (long double)x[i];
        const bool exact = down == up;
        if (nearest != (To)x[i] || (long double)down > value || (long double)up < value ||
            (exact ? (long double)down != value : up != std::nextafter(down, (To)INFINITY)) ||
            zero != (value < 0 ? up : down))
            CHECK_FAIL("%s of %La: nearest %a, to zero %a, down %a, up %a", name, value, (double)nearest, (double)zero,
                       (double)down, (double)up);
    }
    CHECK_CUDA(cudaFree(out));
}

/* Powers of two and the whole numbers beside them, of both signs where the type has two. */
template <class From, class To> static void check_wholes(const char *name, void (*kernel)(const From *, To *, int))
{
    const int bits = 8 * sizeof(From);
    From *x = shared_array<From>(6 * bits);
    int n = 0;

    for (int bit = 0; bit < bits; bit++) {
        for (int beside = -1; beside <= 1; beside++) {
            x[n++] = (From)(((unsigned long long)1 << bit) + beside);
            x[n++] = (From)(0 - ((unsigned long long)1 << bit) + beside);
        }
    }
    check_floating(name, kernel, x, n);
    CHECK_CUDA(cudaFree(x));
}

static void check_to_floating()
{
    static const double doubles[] = {0, 1, 0.1, 1.0 / 3, 16777217, 1e20, 0x1.fffffep127, 0x1.ffffffp127, 1e300, 1e-40, 1e-300};
    const int n = 2 * sizeof doubles / sizeof doubles[0];
    double *x = shared_array<double>(n);

    check_wholes("__int2float", round_int2float);
    check_wholes("__uint2float", round_uint2float);
    check_wholes("__ll2float", round_ll2float);
    check_wholes("__ull2float", round_ull2float);
    check_wholes("__ll2double", round_ll2double);
    check_wholes("__ull2double", round_ull2double);
    for (int i = 0; i < n; i++)
        x[i] = i % 2 ? -doubles[i / 2] : doubles[i / 2];
    check_floating("__double2float", round_double2float, x, n);
    CHECK_CUDA(cudaFree(x));
}

__global__ void extremes(long long *out)
{
    out[0] = llmin(-5LL, 3LL), out[1] = llmax(-5LL, 3LL);
    out[2] = ullmin(~0ULL, 3ULL) == 3, out[3] = ullmax(~0ULL, 3ULL) == ~0ULL;
    out[4] = umin(~0u, 3u) == 3, out[5] = umax(~0u, 3u) == ~0u;
}

static void check_extremes()
{
    long long *out = shared_array<long long>(6);

    extremes<<<1, 1>>>(out);
    CHECK_LAUNCH();
    CHECK(out[0] == -5 && out[1] == 3 && out[2] && out[3] && out[4] && out[5]);
    CHECK_CUDA(cudaFree(out));
}

__global__ void turn(const double *x, double *out, int n)
{
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        out[4 * i] = sinpi(x[i]);
        out[4 * i + 1] = cospi(x[i]);
        out[4 * i + 2] = sinpif((float)x[i]);
        out[4 * i + 3] = cospif((float)x[i]);
    }
}

static bool near_by(double got, long double want, double within)
{
    if (want == 0)
        return got == 0;
    return fabsl((long double)got - want) <= within * fabsl(want);
}

static void check_turns()
{
    static const double turns[] = {0, 0.25, 0.5, 0.75, 1, 1.25, 1.5, 1.75, 2, 3, 100.5, 1e6, 1e15, 1e15 + 0.5, 1e300,
                                   1.0 / 3, 12345.678, 0x1p-30, 1e-300};
    const long double pi = acosl(-1.0L);
    const int n = 2 * sizeof turns / sizeof turns[0];
    double *x = shared_array<double>(n), *out = shared_array<double>(4 * n);

    for (int i = 0; i < n; i++)
        x[i] = i % 2 ? -turns[i / 2] : turns[i / 2];
    turn<<<1, MANY>>>(x, out, n);
    CHECK_LAUNCH();
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < 2; k++) {
            const long double at = fmodl(k ? (long double)(float)x[i] : x[i], 2.0L);
            const bool whole = at == floorl(at), half = !whole && 2 * at == floorl(2 * at);
            long double sine = whole ? 0 : sinl(at * pi), cosine = half ? 0 : cosl(at * pi);
            if (k && !isfinite((float)x[i]))
                continue;
            if (!near_by(out[4 * i + 2 * k], sine, k ? 0x1p-22 : 0x1p-51) ||
                !near_by(out[4 * i + 2 * k + 1], cosine, k ? 0x1p-22 : 0x1p-51))
                CHECK_FAIL("of %a turns: sine %a, expected %La; cosine %a, expected %La", x[i], out[4 * i + 2 * k],
                           sine, out[4 * i + 2 * k + 1], cosine);
            if (sine == 0)
                CHECK_EQ(signbit(out[4 * i + 2 * k]) != 0, signbit(x[i]) != 0);
        }
    }
    CHECK_CUDA(cudaFree(x));
    CHECK_CUDA(cudaFree(out));
}

int main()
{
    check_integers();
    check_to_floating();
    check_extremes();
    check_small_integers<__half>();
    check_small_integers<__nv_bfloat16>();
    check_comparisons<__half, __half2>();
    check_comparisons<__nv_bfloat16, __nv_bfloat162>();
    check_rounding();
    check_turns();
    return 0;
}
