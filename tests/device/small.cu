/* half and bfloat16: every value through float and back, and what is done with them against the
 * nearest of all values there are, ties to the even one, found by search. */
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "device.h"

template <class T> static T from_bits(unsigned short bits)
{
    T value;

    memcpy((void *)&value, &bits, sizeof value);
    return value;
}

template <class T> static unsigned short bits_of(T value)
{
    unsigned short bits;

    memcpy(&bits, (const void *)&value, sizeof bits);
    return bits;
}

/* Positive values in order, by their bits; the one after the last stands for infinity. */
template <class T> static std::vector<double> all_values(unsigned short infinity)
{
    std::vector<double> values;

    for (unsigned bits = 0; bits < infinity; bits++)
        values.push_back((double)(float)from_bits<T>((unsigned short)bits));
    values.push_back(2 * values.back() - values[values.size() - 2]);
    return values;
}

/* rest: what `exact` lacks, where it is between two. */
static unsigned short nearest(const std::vector<double> &values, double exact, double rest = 0)
{
    double size = std::fabs(exact);
    size_t above = std::lower_bound(values.begin(), values.end(), size) - values.begin();
    unsigned short sign = std::signbit(exact) ? 0x8000 : 0;

    if (above == values.size())
        return sign | (unsigned short)(above - 1);
    if (above == 0)
        return sign;
    double up = values[above] - size, down = size - values[above - 1];
    bool take_above = up < down || (up == down && above % 2 == 0);
    if (up == down && rest != 0)
        take_above = std::signbit(rest) == std::signbit(exact);
    return sign | (unsigned short)(take_above ? above : above - 1);
}

/* What a sum of two lacks: an exact number. */
static double rest_of(double a, double b)
{
    double sum = a + b;

    return std::fabs(a) >= std::fabs(b) ? (a - sum) + b : (b - sum) + a;
}

/* Kernels for sm_75 have no bfloat16: there these are empty. */
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
#define HAVE_BOTH 1
#endif

template <class T> struct results {
    T sum, difference, product, quotient, fused, root, larger, shuffled;
    bool less, equal;
};

template <class T> __global__ void calculate(const T *a, const T *b, results<T> *out)
{
#ifdef HAVE_BOTH
    int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    T x = a[i], y = b[i];

    out[i].sum = x + y;
    out[i].difference = __hsub(x, y);
    out[i].product = x;
    out[i].product *= y;
    out[i].quotient = x / y;
    out[i].fused = __hfma(x, y, x);
    out[i].root = hsqrt(__habs(x));
    out[i].larger = __hmax(x, y);
    out[i].shuffled = __shfl_xor_sync(0xffffffff, x, 1);
    out[i].less = x < y;
    out[i].equal = __heq(x, x);
#endif
}

static unsigned random_state = 1;

static unsigned next_random()
{
    random_state = random_state * 1664525u + 1013904223u;
    return random_state >> 8;
}

template <class T> static void check_calculations(const std::vector<double> &values)
{
    const int threads = 64, blocks = 32, n = threads * blocks;
    T *a = shared_array<T>(n), *b = shared_array<T>(n);
    results<T> *out = shared_array<results<T>>(n);
    auto any = [&] {
        unsigned size = next_random() % (values.size() - 1);
        return from_bits<T>((unsigned short)(size | (next_random() & 1) << 15));
    };

    for (int i = 0; i < n; i++) {
        a[i] = any();
        b[i] = i % 3 ? any() : from_bits<T>(bits_of(a[i]) ^ (next_random() & 0x7f));
    }
    calculate<<<blocks, threads>>>(a, b, out);
    CHECK_LAUNCH();
    for (int i = 0; i < n; i++) {
        double x = (float)a[i], y = (float)b[i];
        if (y == 0)
            continue;
        CHECK_EQ(bits_of(out[i].sum), nearest(values, x + y));
        CHECK_EQ(bits_of(out[i].difference), nearest(values, x - y));
        CHECK_EQ(bits_of(out[i].product), nearest(values, x * y));
        CHECK_EQ(bits_of(out[i].quotient), nearest(values, x / y));
        CHECK_EQ(bits_of(out[i].fused), nearest(values, x * y + x, rest_of(x * y, x)));
        CHECK_EQ(bits_of(out[i].root), nearest(values, std::sqrt(std::fabs(x))));
        CHECK_EQ(bits_of(out[i].larger), bits_of(x > y ? a[i] : b[i]));
        CHECK_EQ(bits_of(out[i].shuffled), bits_of(a[i ^ 1]));
        CHECK_EQ(out[i].less, x < y);
        CHECK(out[i].equal);
    }
    CHECK_CUDA(cudaFree(a));
    CHECK_CUDA(cudaFree(b));
    CHECK_CUDA(cudaFree(out));
}

template <class T> static void check_conversions(const std::vector<double> &values)
{
    for (unsigned bits = 0; bits < 65536; bits++) {
        T value = from_bits<T>((unsigned short)bits);
        if (!std::isnan((float)value))
            CHECK_EQ(bits_of(T((float)value)), bits);
        else
            CHECK(std::isnan((float)T((float)value)));
    }
    for (size_t i = 0; i + 1 < values.size(); i++) {
        double middle = (values[i] + values[i + 1]) / 2;
        CHECK_EQ(bits_of(T((float)middle)), nearest(values, middle));
        CHECK_EQ(bits_of(T(-middle)), nearest(values, -middle));
        double beyond = std::nextafter(middle, INFINITY); /* float does not know it from middle */
        CHECK_EQ(bits_of(T(beyond)), nearest(values, beyond));
    }
}

template <class T> __global__ void add_up(T *sum)
{
#ifdef HAVE_BOTH
    atomicAdd(sum, T(1.0f));
#endif
}

template <class T> static void check(unsigned short infinity)
{
    std::vector<double> values = all_values<T>(infinity);
    T *sum = shared_array<T>(1);

    check_conversions<T>(values);
    check_calculations<T>(values);
    *sum = T(0.0f);
    add_up<<<4, 32>>>(sum);
    CHECK_LAUNCH();
    CHECK_EQ((float)*sum, 128.0f);
    CHECK_CUDA(cudaFree(sum));
}

__global__ void pairs(__half2 *h, __nv_bfloat162 *b, float2 *out)
{
#ifdef HAVE_BOTH
    h[0] =
        __hfma2(h[0], __float2half2_rn(2.0f), __halves2half2(__int2half_rn(1), __float2half(0.5f)));
    atomicAdd(&h[0], __half2half2(__low2half(h[1])));
    b[0] = b[0] * __floats2bfloat162_rn(2.0f, 4.0f);
    out[0] = __half22float2(h[0]);
    out[1] = __bfloat1622float2(b[0]);
    out[2] = make_float2(__half2int_rz(__high2half(h[0])), __low2float(__lowhigh2highlow(h[0])));
#endif
}

static void check_pairs()
{
    __half2 *h = shared_array<__half2>(2);
    __nv_bfloat162 *b = shared_array<__nv_bfloat162>(1);
    float2 *out = shared_array<float2>(3);

    h[0] = __floats2half2_rn(3.0f, -1.75f);
    h[1] = __floats2half2_rn(0.25f, 9.0f);
    b[0] = __floats2bfloat162_rn(1.5f, -3.0f);
    pairs<<<1, 1>>>(h, b, out);
    CHECK_LAUNCH();
    CHECK_EQ(out[0].x, 7.25f);
    CHECK_EQ(out[0].y, -2.75f);
    CHECK_EQ(out[1].x, 3.0f);
    CHECK_EQ(out[1].y, -12.0f);
    CHECK_EQ(out[2].x, -2.0f);
    CHECK_EQ(out[2].y, -2.75f);
    CHECK_CUDA(cudaFree(h));
    CHECK_CUDA(cudaFree(b));
    CHECK_CUDA(cudaFree(out));
}

int main()
{
    check<__half>(0x7c00);
    check<__nv_bfloat16>(0x7f80);
    check_pairs();
    return 0;
}
