/* <curand_kernel.h> for programs built for the host device: cuRAND's Philox4_32_10, with the
 * numbers that NVIDIA's header gives for the same seed, subsequence and offset. Normal numbers come
 * from the host's logarithm, sine and cosine, and differ from a GPU's in their last digits.
 *
 * A state is a position in 2^64 subsequences of 2^66 numbers. Block number `counter` has four of
 * them, made by ten rounds of a cipher with the seed as its key. What else there is in cuRAND does
 * not compile, and the message says what to use. */
#ifndef GSHMEM_HOST_DEVICE_CURAND_KERNEL_H
#define GSHMEM_HOST_DEVICE_CURAND_KERNEL_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "cuda_runtime.h"

#include "gshmem_names_begin.h"

namespace gshmem_host
{

/* The numbers of one block. */
inline void philox_block(const uint32_t counter[4], const uint32_t key[2], uint32_t block[4])
{
    uint32_t a = counter[0], b = counter[1], c = counter[2], d = counter[3];
    uint32_t first = key[0], second = key[1];

    for (int round = 0; round < 10; round++) {
        const uint64_t left = (uint64_t)a * 0xd2511f53u, right = (uint64_t)c * 0xcd9e8d57u;
        a = (uint32_t)(right >> 32) ^ b ^ first;
        b = (uint32_t)right;
        c = (uint32_t)(left >> 32) ^ d ^ second;
        d = (uint32_t)left;
        first += 0x9e3779b9u;
        second += 0xbb67ae85u;
    }
    block[0] = a;
    block[1] = b;
    block[2] = c;
    block[3] = d;
}

/* Invariant: block[next] is the number that comes next, and next is below 4. */
struct philox {
    uint32_t counter[4], key[2], block[4];
    uint32_t next;
    /* The second number of a pair that was made for one, and for which function; 0: none */
    int kept_for, kept_double_for;
    float kept;
    double kept_double;

    void begin(unsigned long long seed)
    {
        for (int i = 0; i < 4; i++)
            counter[i] = 0;
        key[0] = (uint32_t)seed;
        key[1] = (uint32_t)(seed >> 32);
        next = 0;
        kept_for = kept_double_for = 0;
        kept = 0;
        kept_double = 0;
    }
    /* Adds to the counter from its word `from` on. */
    void add(int from, unsigned long long n)
    {
        unsigned long long carry = n;

        for (int i = from; i < 4 && carry; i++) {
            const unsigned long long sum = counter[i] + (carry & 0xffffffffu);
            counter[i] = (uint32_t)sum;
            carry = (carry >> 32) + (sum >> 32);
        }
    }
    void make()
    {
        philox_block(counter, key, block);
    }
    void skip(unsigned long long n)
    {
        next += (uint32_t)(n & 3);
        add(0, n / 4 + next / 4);
        next &= 3;
        make();
    }
    uint32_t take()
    {
        const uint32_t number = block[next];

        if (++next == 4) {
            next = 0;
            add(0, 1);
            make();
        }
        return number;
    }
};

/* In (0, 1]. */
inline float philox_uniform(uint32_t x)
{
    return (float)x * 0x1p-32f + 0x1p-33f;
}

/* 53 bits of two numbers. */
inline uint64_t philox_bits(uint32_t low, uint32_t high)
{
    return low ^ (uint64_t)high << 21;
}

inline double philox_uniform_double(uint32_t low, uint32_t high)
{
    return (double)philox_bits(low, high) * 0x1p-53 + 0x1p-54;
}

/* Two normal numbers, by the method of Box and Muller. */
inline float2 philox_normals(philox *state)
{
    const float u = philox_uniform(state->take());
    const float turn = 0x1p-32f * 6.2831855f, angle = (float)state->take() * turn + turn / 2;
    const float length = sqrtf(-2 * logf(u));
    float2 pair;

    pair.x = length * sinf(angle);
    pair.y = length * cosf(angle);
    return pair;
}

inline double2 philox_normals_double(philox *state)
{
    uint32_t x[4];
    double2 pair;

    for (int i = 0; i < 4; i++)
        x[i] = state->take();
    const double length = sqrt(-2 * log(philox_uniform_double(x[0], x[1])));
    const double turns = (double)philox_bits(x[2], x[3]) * 0x1p-52 + 0x1p-53;
    pair.x = length * sine_of_turns(turns);
    pair.y = length * cosine_of_turns(turns);
    return pair;
}

struct philox_as_is {
    static constexpr int name = 1;
    template <class T> T operator()(T x) const
    {
        return x;
    }
};

struct philox_log {
    static constexpr int name = 2;
    double mean, deviation;

    float operator()(float x) const
    {
        return expf((float)mean + (float)deviation * x);
    }
    double operator()(double x) const
    {
        return exp(mean + deviation * x);
    }
};

/* One of a pair: every second call returns what the one before it has kept. */
template <class Shape> inline float philox_normal(philox *state, Shape shape)
{
    if (state->kept_for == Shape::name) {
        state->kept_for = 0;
        return state->kept;
    }
    const float2 pair = philox_normals(state);
    state->kept_for = Shape::name;
    state->kept = shape(pair.y);
    return shape(pair.x);
}

template <class Shape> inline double philox_normal_double(philox *state, Shape shape)
{
    if (state->kept_double_for == Shape::name) {
        state->kept_double_for = 0;
        return state->kept_double;
    }
    const double2 pair = philox_normals_double(state);
    state->kept_double_for = Shape::name;
    state->kept_double = shape(pair.y);
    return shape(pair.x);
}

template <class Shape> inline float2 philox_normal2(philox *state, Shape shape)
{
    const float2 pair = philox_normals(state);

    return make_float2(shape(pair.x), shape(pair.y));
}

template <class Shape> inline float4 philox_normal4(philox *state, Shape shape)
{
    const float2 first = philox_normals(state), second = philox_normals(state);

    return make_float4(shape(first.x), shape(first.y), shape(second.x), shape(second.y));
}

template <class Shape> inline double2 philox_normal2_double(philox *state, Shape shape)
{
    const double2 pair = philox_normals_double(state);

    return make_double2(shape(pair.x), shape(pair.y));
}

template <class Shape> inline double4 philox_normal4_double(philox *state, Shape shape)
{
    const double2 first = philox_normals_double(state), second = philox_normals_double(state);

    return make_double4(shape(first.x), shape(first.y), shape(second.x), shape(second.y));
}

} /* namespace gshmem_host */

struct curandStatePhilox4_32_10 : gshmem_host::philox {
};
typedef curandStatePhilox4_32_10 curandStatePhilox4_32_10_t;

/* ---- Where a state is ---- */

/* Moves on by n numbers. */
static inline void skipahead(unsigned long long n, curandStatePhilox4_32_10_t *state)
{
    state->skip(n);
}

/* By n subsequences. */
static inline void skipahead_sequence(unsigned long long n, curandStatePhilox4_32_10_t *state)
{
    state->add(2, n);
    state->make();
}

static inline void curand_init(unsigned long long seed, unsigned long long subsequence,
                               unsigned long long offset, curandStatePhilox4_32_10_t *state)
{
    state->begin(seed);
    state->add(2, subsequence);
    state->skip(offset);
}

/* ---- Its numbers ---- */

static inline unsigned int curand(curandStatePhilox4_32_10_t *state)
{
    return state->take();
}

static inline uint4 curand4(curandStatePhilox4_32_10_t *state)
{
    uint4 four;

    four.x = state->take();
    four.y = state->take();
    four.z = state->take();
    four.w = state->take();
    return four;
}

static inline float curand_uniform(curandStatePhilox4_32_10_t *state)
{
    return gshmem_host::philox_uniform(state->take());
}

static inline float4 curand_uniform4(curandStatePhilox4_32_10_t *state)
{
    const uint4 four = curand4(state);

    return make_float4(gshmem_host::philox_uniform(four.x), gshmem_host::philox_uniform(four.y),
                       gshmem_host::philox_uniform(four.z), gshmem_host::philox_uniform(four.w));
}

/* Of one number, as NVIDIA's: 32 bits. Those by twos and fours have 53. */
static inline double curand_uniform_double(curandStatePhilox4_32_10_t *state)
{
    return (double)state->take() * 0x1p-32 + 0x1p-32;
}

static inline double2 curand_uniform2_double(curandStatePhilox4_32_10_t *state)
{
    const uint4 four = curand4(state);

    return make_double2(gshmem_host::philox_uniform_double(four.x, four.y),
                        gshmem_host::philox_uniform_double(four.z, four.w));
}

static inline double4 curand_uniform4_double(curandStatePhilox4_32_10_t *state)
{
    const double2 first = curand_uniform2_double(state), second = curand_uniform2_double(state);

    return make_double4(first.x, first.y, second.x, second.y);
}

#define GSHMEM_HOST_CURAND_NORMAL(type, number)                                                    \
    static inline type curand_normal##number(curandStatePhilox4_32_10_t *state)                    \
    {                                                                                              \
        return gshmem_host::philox_normal##number(state, gshmem_host::philox_as_is());             \
    }
#define GSHMEM_HOST_CURAND_LOG_NORMAL(type, number, real)                                          \
    static inline type curand_log_normal##number(curandStatePhilox4_32_10_t *state, real mean,     \
                                                 real stddev)                                      \
    {                                                                                              \
        return gshmem_host::philox_normal##number(state, gshmem_host::philox_log{mean, stddev});   \
    }
GSHMEM_HOST_CURAND_NORMAL(float, )
GSHMEM_HOST_CURAND_NORMAL(float2, 2)
GSHMEM_HOST_CURAND_NORMAL(float4, 4)
GSHMEM_HOST_CURAND_NORMAL(double, _double)
GSHMEM_HOST_CURAND_NORMAL(double2, 2_double)
GSHMEM_HOST_CURAND_NORMAL(double4, 4_double)
GSHMEM_HOST_CURAND_LOG_NORMAL(float, , float)
GSHMEM_HOST_CURAND_LOG_NORMAL(float2, 2, float)
GSHMEM_HOST_CURAND_LOG_NORMAL(float4, 4, float)
GSHMEM_HOST_CURAND_LOG_NORMAL(double, _double, double)
GSHMEM_HOST_CURAND_LOG_NORMAL(double2, 2_double, double)
GSHMEM_HOST_CURAND_LOG_NORMAL(double4, 4_double, double)
#undef GSHMEM_HOST_CURAND_NORMAL
#undef GSHMEM_HOST_CURAND_LOG_NORMAL

/* ---- What is not there ---- */

/* Their states can be declared; a call with one does not compile. */
typedef struct curandStateXORWOW {
    unsigned int unused;
} curandStateXORWOW_t, curandState_t, curandState;
typedef struct curandStateMRG32k3a {
    unsigned int unused;
} curandStateMRG32k3a_t;

#define GSHMEM_HOST_CURAND_MISSING(type, name, parameters)                                         \
    template <class State> inline type name parameters                                             \
    {                                                                                              \
        static_assert(sizeof(State) == (size_t)-1,                                                 \
                      #name " of XORWOW (curandState) and MRG32k3a is not there for the host "     \
                            "device: use curandStatePhilox4_32_10_t; --device=ptx takes "          \
                            "NVIDIA's cuRAND");                                                    \
        return type();                                                                             \
    }
GSHMEM_HOST_CURAND_MISSING(void, curand_init,
                           (unsigned long long, unsigned long long, unsigned long long, State *))
GSHMEM_HOST_CURAND_MISSING(void, skipahead, (unsigned long long, State *))
GSHMEM_HOST_CURAND_MISSING(void, skipahead_sequence, (unsigned long long, State *))
GSHMEM_HOST_CURAND_MISSING(unsigned, curand, (State *))
GSHMEM_HOST_CURAND_MISSING(float, curand_uniform, (State *))
GSHMEM_HOST_CURAND_MISSING(double, curand_uniform_double, (State *))
GSHMEM_HOST_CURAND_MISSING(float, curand_normal, (State *))
GSHMEM_HOST_CURAND_MISSING(float2, curand_normal2, (State *))
GSHMEM_HOST_CURAND_MISSING(double, curand_normal_double, (State *))
GSHMEM_HOST_CURAND_MISSING(double2, curand_normal2_double, (State *))
GSHMEM_HOST_CURAND_MISSING(float, curand_log_normal, (State *, float, float))
GSHMEM_HOST_CURAND_MISSING(float2, curand_log_normal2, (State *, float, float))
GSHMEM_HOST_CURAND_MISSING(double, curand_log_normal_double, (State *, double, double))
GSHMEM_HOST_CURAND_MISSING(double2, curand_log_normal2_double, (State *, double, double))
#undef GSHMEM_HOST_CURAND_MISSING

#define GSHMEM_HOST_CURAND_MISSING(type, name)                                                     \
    template <class State> inline type name(State *, double)                                       \
    {                                                                                              \
        static_assert(sizeof(State) == (size_t)-1,                                                 \
                      #name " is not there for the host device: --device=ptx takes NVIDIA's "      \
                            "cuRAND");                                                             \
        return type();                                                                             \
    }
GSHMEM_HOST_CURAND_MISSING(unsigned, curand_poisson)
GSHMEM_HOST_CURAND_MISSING(uint4, curand_poisson4)
#undef GSHMEM_HOST_CURAND_MISSING

#include "gshmem_names_end.h"

#endif
