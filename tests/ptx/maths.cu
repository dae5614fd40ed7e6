/* CUDA's own functions, as nvcc compiles them: mathematics in double and single precision, integers
 * of 64 and 128 bits, bytes in a word. Each gives what the host's library and compiler give. For nvcc
 * alone. */
#include <cuda_runtime.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { VALUES = 512, BLOCK = 256 };

typedef __int128 wide;
typedef unsigned __int128 unsigned_wide;

/* name, how far a result may be from the host's */
#define OF_ONE(F)                                                                                  \
    F(sin, 1)                                                                                      \
    F(cos, 1)                                                                                      \
    F(tan, 1)                                                                                      \
    F(exp, 1)                                                                                      \
    F(exp2, 1)                                                                                     \
    F(expm1, 1)                                                                                    \
    F(log, 1)                                                                                      \
    F(log2, 1)                                                                                     \
    F(log1p, 1)                                                                                    \
    F(sqrt, 1)                                                                                     \
    F(cbrt, 1)                                                                                     \
    F(asin, 1)                                                                                     \
    F(acos, 1)                                                                                     \
    F(atan, 1)                                                                                     \
    F(sinh, 1)                                                                                     \
    F(tanh, 1)                                                                                     \
    F(asinh, 1)                                                                                    \
    F(erf, 1)                                                                                      \
    F(erfc, 1)                                                                                     \
    F(tgamma, 10)                                                                                  \
    F(floor, 0)                                                                                    \
    F(round, 0)                                                                                    \
    F(rint, 0)                                                                                     \
    F(trunc, 0)
#define OF_TWO(F)                                                                                  \
    F(pow, 1)                                                                                      \
    F(atan2, 1)                                                                                    \
    F(fmod, 0)                                                                                     \
    F(remainder, 0)                                                                                \
    F(hypot, 1)                                                                                    \
    F(fdim, 0)                                                                                     \
    F(copysign, 0)

#define NUMBER(name, far) REAL_##name,
enum { OF_ONE(NUMBER) OF_TWO(NUMBER) REALS };
static const struct {
    const char *name;
    int far; /* in 1e-14 of the result; of single precision in 1e-6 */
} real[] = {
#define RECORD(name, far) {#name, far},
    OF_ONE(RECORD) OF_TWO(RECORD)};

__host__ __device__ static double compute(int which, double x, double y)
{
    switch (which) {
#define DOUBLE_ONE(name, far)                                                                      \
    case REAL_##name:                                                                              \
        return name(x);
#define DOUBLE_TWO(name, far)                                                                      \
    case REAL_##name:                                                                              \
        return name(x, y);
        OF_ONE(DOUBLE_ONE)
        OF_TWO(DOUBLE_TWO)
    default:
        return 0;
    }
}

__host__ __device__ static float compute(int which, float x, float y)
{
    switch (which) {
#define SINGLE_ONE(name, far)                                                                      \
    case REAL_##name:                                                                              \
        return name##f(x);
#define SINGLE_TWO(name, far)                                                                      \
    case REAL_##name:                                                                              \
        return name##f(x, y);
        OF_ONE(SINGLE_ONE)
        OF_TWO(SINGLE_TWO)
    default:
        return 0;
    }
}

enum { INTEGERS = 12 };

/* Of a, b, and numbers of 128 bits that are made of them; no divisor is 0, no quotient too large. */
__host__ __device__ static uint64_t compute(int which, uint64_t a, uint64_t b)
{
    const uint64_t d = b | 1;
    const unsigned_wide large = (unsigned_wide)a * b + a;
    const unsigned_wide divisor = (unsigned_wide)(b & 0xffff) << 64 | d;
    const wide negative = -(wide)(large >> 1);

    switch (which) {
    case 0:
        return a / d + a % d;
    case 1:
        return (uint64_t)((int64_t)a / (int64_t)(d >> 1 | 1));
    case 2:
        return (uint64_t)((int64_t)a % (int64_t)(d >> 1 | 1));
    case 3:
        return (uint32_t)a / ((uint32_t)b | 1) + (uint32_t)a % ((uint32_t)b | 1);
    case 4:
        return (uint64_t)(large / divisor);
    case 5:
        return (uint64_t)(large % divisor);
    case 6:
        return (uint64_t)(negative / (wide)divisor) + (uint64_t)(negative % (wide)divisor);
    case 7:
        return (uint64_t)(large << (b & 127) >> 64) + (uint64_t)(negative >> (a & 127));
    case 8:
        return (uint64_t)(large * divisor >> 64);
    case 9:
        return (uint64_t)(double)(large >> 66) + (uint64_t)(float)(a >> 1);
    case 10:
        return (uint64_t)(unsigned_wide)(double)a;
    default:
        return (large < divisor) + 2 * (negative < (wide)b) + (a << (b & 63)) + (b >> (a & 63));
    }
}

template <class T> __global__ void compute_all(T *out, const T *in, int functions)
{
    const int i = (int)(blockIdx.x * blockDim.x + threadIdx.x), j = i % VALUES;

    if (i / VALUES < functions)
        out[i] = compute(i / VALUES, in[j], in[(j * 5 + 7) % VALUES]);
}

static bool is_near(double got, double wanted, double far)
{
    if (isnan(got) || isnan(wanted))
        return isnan(got) && isnan(wanted);
    return got == wanted || fabs(got - wanted) <= far * fmax(fabs(wanted), 0.1);
}

static bool is_right(int which, double got, double wanted)
{
    return is_near(got, wanted, real[which].far * 2e-14);
}

static bool is_right(int which, float got, float wanted)
{
    return is_near(got, wanted, real[which].far * 2e-6);
}

static bool is_right(int, uint64_t got, uint64_t wanted)
{
    return got == wanted;
}

/* How many functions are wrong. */
template <class T> static int try_all(const T *in, int functions, const char *type)
{
    const size_t bytes = (size_t)functions * VALUES * sizeof(T);
    T *from, *to;
    int wrong = 0;

    if (cudaMallocManaged(&from, VALUES * sizeof(T)) || cudaMallocManaged(&to, bytes))
        return 1;
    memcpy(from, in, VALUES * sizeof(T));
    compute_all<T><<<(functions * VALUES + BLOCK - 1) / BLOCK, BLOCK>>>(to, from, functions);
    const cudaError_t error = cudaDeviceSynchronize();
    if (error) {
        printf("%s: %s\n", type, cudaGetErrorString(error));
        return 1;
    }
    for (int f = 0; f < functions; f++) {
        for (int j = 0; j < VALUES; j++) {
            const T got = to[f * VALUES + j], x = in[j], y = in[(j * 5 + 7) % VALUES];
            const T wanted = compute(f, x, y);
            if (!is_right(f, got, wanted)) {
                printf("%s, function %d (%s) of %.17g and %.17g: %.17g instead of %.17g\n", type, f,
                       functions == REALS ? real[f].name : "integers", (double)x, (double)y,
                       (double)got, (double)wanted);
                wrong++;
                break;
            }
        }
    }
    cudaFree(from);
    cudaFree(to);
    return wrong;
}

int main(void)
{
    static const double first[] = {0, -0.0, 1, -1, 0.5, 2, INFINITY, -INFINITY, NAN, 1e-300};
    static const uint64_t edge[] = {
        0, 1, 2, UINT64_MAX, UINT64_C(1) << 63, UINT32_MAX, UINT64_C(1) << 32};
    static double doubles[VALUES];
    static float floats[VALUES];
    static uint64_t words[VALUES];
    uint64_t random = UINT64_C(88172645463325252);

    for (int i = 0; i < VALUES; i++) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        doubles[i] = ldexp((double)(int64_t)random / 9.3e18, (int)(random % 9) - 4);
        words[i] = random >> i % 64;
        if (i < (int)(sizeof first / sizeof *first))
            doubles[i] = first[i];
        if (i < (int)(sizeof edge / sizeof *edge))
            words[i] = edge[i];
        floats[i] = (float)doubles[i];
    }
    const int wrong = try_all(doubles, REALS, "double") + try_all(floats, REALS, "float") +
                      try_all(words, INTEGERS, "uint64_t");
    return wrong != 0;
}
