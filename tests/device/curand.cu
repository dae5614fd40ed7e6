/* cuRAND's Philox4_32_10 in kernels: the published answers of the cipher, positions and how they are skipped, and what
 * becomes of the numbers. nvcc compiles it with NVIDIA's own header. */
#include "device.h"

#include <curand_kernel.h>
#include <math.h>

#if defined(__NVCC__) == defined(GSHMEM_HOST_DEVICE)
#error "nvcc has to take NVIDIA's headers, and gshmemcc ours"
#endif

typedef unsigned long long number;

/* --- The cipher: Random123's known answers --- */

struct answer {
    number block[2], key; /* low words first; block[1] is the subsequence */
    unsigned out[4];
};

static const answer answers[] = {
    {{0, 0}, 0, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
    {{~0ull, ~0ull}, ~0ull, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
    {{0x85a308d3243f6a88, 0x0370734413198a2e}, 0x299f31d0a4093822, {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
};
enum { ANSWERS = sizeof answers / sizeof answers[0] };

/* By four steps, since one can skip 2^62 blocks at most. */
__device__ static void skip_blocks(number n, curandStatePhilox4_32_10_t *state)
{
    for (int i = 0; i < 4; i++)
        skipahead(4 * (n / 4), state);
    skipahead(4 * (n % 4), state);
}

__global__ void known(const answer *a, unsigned *out)
{
    curandStatePhilox4_32_10_t state;

    for (int i = 0; i < ANSWERS; i++) {
        curand_init(a[i].key, a[i].block[1], 0, &state);
        skip_blocks(a[i].block[0], &state);
        for (int j = 0; j < 4; j++)
            out[4 * i + j] = curand(&state);
    }
}

static void check_known()
{
    answer *a = shared_array<answer>(ANSWERS);
    unsigned *out = shared_array<unsigned>(4 * ANSWERS);

    memcpy(a, answers, sizeof answers);
    known<<<1, 1>>>(a, out);
    CHECK_LAUNCH();
    for (int i = 0; i < 4 * ANSWERS; i++)
        CHECK_EQ(out[i], answers[i / 4].out[i % 4]);
    CHECK_CUDA(cudaFree(a));
    CHECK_CUDA(cudaFree(out));
}

/* --- Positions --- */

enum { N = 40, SEED = 1234567 };

struct positions {
    unsigned all[N], second[N]; /* the beginnings of subsequences 5 and 6 */
    unsigned by_offset[N], by_skip[N], by_four[N][4];
    unsigned over[8]; /* the last four of subsequence 5, and what is behind them */
    unsigned skipped_sequence[N];
};

__global__ void positions_kernel(positions *p)
{
    curandStatePhilox4_32_10_t state, other;

    curand_init(SEED, 5, 0, &state);
    for (int i = 0; i < N; i++)
        p->all[i] = curand(&state);
    curand_init(SEED, 6, 0, &state);
    for (int i = 0; i < N; i++)
        p->second[i] = curand(&state);
    for (int i = 0; i < N; i++) {
        curand_init(SEED, 5, i, &state);
        other = state; /* states are copied like numbers */
        p->by_offset[i] = curand(&state);
        const uint4 four = curand4(&other);
        p->by_four[i][0] = four.x;
        p->by_four[i][1] = four.y;
        p->by_four[i][2] = four.z;
        p->by_four[i][3] = four.w;
        curand_init(SEED, 5, i / 3, &state);
        skipahead(i - i / 3, &state);
        p->by_skip[i] = curand(&state);
        curand_init(SEED, 4, i, &state);
        skipahead_sequence(2, &state);
        p->skipped_sequence[i] = curand(&state);
    }
    curand_init(SEED, 5, 0, &state);
    skip_blocks(~0ull, &state);
    for (int i = 0; i < 8; i++)
        p->over[i] = curand(&state);
}

static void check_positions()
{
    positions *p = shared_array<positions>(1);

    positions_kernel<<<1, 1>>>(p);
    CHECK_LAUNCH();
    for (int i = 0; i < N; i++) {
        CHECK_EQ(p->by_offset[i], p->all[i]);
        CHECK_EQ(p->by_skip[i], p->all[i]);
        CHECK_EQ(p->skipped_sequence[i], p->second[i]);
        for (int j = 0; j < 4 && i + j < N; j++)
            CHECK_EQ(p->by_four[i][j], p->all[i + j]);
    }
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(p->over[4 + i], p->second[i]);
        CHECK(p->over[i] != p->second[i]);
    }
    CHECK_CUDA(cudaFree(p));
}

/* --- Numbers --- */

struct numbers {
    unsigned raw[N];
    float uniform[N], uniform4[N], normal[N], normal2[N], normal4[N], log_normal[N], log_normal2[N], log_normal4[N];
    double uniform_double[N], uniform2[N], uniform4_double[N], normal_double[N], normal2_double[N], normal4_double[N];
    double log_double[N], log2_double[N], log4_double[N];
};

__device__ static void begin(curandStatePhilox4_32_10_t *state)
{
    curand_init(SEED, 1, 0, state);
}

__device__ static void keep(float *out, float2 two)
{
    out[0] = two.x;
    out[1] = two.y;
}

__device__ static void keep(double *out, double2 two)
{
    out[0] = two.x;
    out[1] = two.y;
}

template <class T, class Four> __device__ static void keep4(T *out, Four four)
{
    out[0] = four.x;
    out[1] = four.y;
    out[2] = four.z;
    out[3] = four.w;
}

__global__ void numbers_kernel(numbers *p)
{
    curandStatePhilox4_32_10_t s[18];

    for (int i = 0; i < 18; i++)
        begin(&s[i]);
    for (int i = 0; i < N; i++) {
        p->raw[i] = curand(&s[0]);
        p->uniform[i] = curand_uniform(&s[1]);
        p->uniform_double[i] = curand_uniform_double(&s[2]);
        p->normal[i] = curand_normal(&s[3]);
        p->normal_double[i] = curand_normal_double(&s[4]);
        p->log_normal[i] = curand_log_normal(&s[5], 0.5f, 0.25f);
        p->log_double[i] = curand_log_normal_double(&s[6], 0.5, 0.25);
    }
    for (int i = 0; i < N; i += 2) {
        keep(p->uniform2 + i, curand_uniform2_double(&s[7]));
        keep(p->normal2 + i, curand_normal2(&s[8]));
        keep(p->normal2_double + i, curand_normal2_double(&s[9]));
        keep(p->log_normal2 + i, curand_log_normal2(&s[10], 0.5f, 0.25f));
        keep(p->log2_double + i, curand_log_normal2_double(&s[11], 0.5, 0.25));
    }
    for (int i = 0; i < N; i += 4) {
        keep4(p->uniform4 + i, curand_uniform4(&s[12]));
        keep4(p->normal4 + i, curand_normal4(&s[13]));
        keep4(p->normal4_double + i, curand_normal4_double(&s[14]));
        keep4(p->log_normal4 + i, curand_log_normal4(&s[15], 0.5f, 0.25f));
        keep4(p->log4_double + i, curand_log_normal4_double(&s[16], 0.5, 0.25));
        keep4(p->uniform4_double + i, curand_uniform4_double(&s[17]));
    }
}

static void near(double got, double expected, double error)
{
    if (!(fabs(got - expected) <= error))
        CHECK_FAIL("%.17g, expected %.17g", got, expected);
}

static double bits53(const unsigned *raw)
{
    return (double)(raw[0] ^ (number)raw[1] << 21) * pow(2, -53) + pow(2, -54);
}

static void check_numbers()
{
    numbers *p = shared_array<numbers>(1);
    const double pi = acos(-1.0);

    numbers_kernel<<<1, 1>>>(p);
    CHECK_LAUNCH();
    for (int i = 0; i < N; i++) {
        near(p->uniform[i], p->raw[i] * pow(2, -32) + pow(2, -33), 1e-7);
        CHECK(p->uniform[i] == p->uniform4[i] && p->uniform[i] > 0 && p->uniform[i] <= 1);
        near(p->uniform_double[i], p->raw[i] * pow(2, -32) + pow(2, -32), 0);
    }
    for (int i = 0; i < N; i += 2) {
        const double length = sqrt(-2 * log(p->raw[i] * pow(2, -32) + pow(2, -33)));
        const double angle = (p->raw[i + 1] + 0.5) * pow(2, -32) * 2 * pi;
        near(p->normal[i], length * sin(angle), 1e-4);
        near(p->normal[i + 1], length * cos(angle), 1e-4);
    }
    for (int i = 0; i < N / 2; i++)
        near(p->uniform2[i], bits53(p->raw + 2 * i), 0);
    for (int i = 0; 2 * i + 3 < N; i += 2) {
        const double length = sqrt(-2 * log(bits53(p->raw + 2 * i))), angle = bits53(p->raw + 2 * i + 2) * 2 * pi;
        near(p->normal_double[i], length * sin(angle), 1e-12);
        near(p->normal_double[i + 1], length * cos(angle), 1e-12);
    }
    for (int i = 0; i < N; i++) {
        CHECK(p->normal2[i] == p->normal[i] && p->normal4[i] == p->normal[i]);
        CHECK(p->normal2_double[i] == p->normal_double[i] && p->normal4_double[i] == p->normal_double[i]);
        CHECK(p->uniform4_double[i] == p->uniform2[i]);
        near(p->log_normal[i], exp(0.5 + 0.25 * p->normal[i]), 1e-4);
        near(p->log_double[i], exp(0.5 + 0.25 * p->normal_double[i]), 1e-12);
        near(p->log_normal2[i], p->log_normal[i], 1e-5);
        near(p->log_normal4[i], p->log_normal[i], 1e-5);
        near(p->log2_double[i], p->log_double[i], 1e-14);
        near(p->log4_double[i], p->log_double[i], 1e-14);
    }
    CHECK_CUDA(cudaFree(p));
}

/* The usual program: a state for each thread, kept in memory; pi by throwing darts, the same at each run. */
enum { THREADS = 256, DARTS = 400 };

__global__ void set_up(curandStatePhilox4_32_10_t *states)
{
    const int id = threadIdx.x + blockIdx.x * blockDim.x;

    curand_init(42, id, 0, &states[id]);
}

__global__ void throw_darts(curandStatePhilox4_32_10_t *states, unsigned *inside)
{
    const int id = threadIdx.x + blockIdx.x * blockDim.x;
    curandStatePhilox4_32_10_t own = states[id];
    unsigned hits = 0;

    for (int i = 0; i < DARTS; i++) {
        const float x = curand_uniform(&own), y = curand_uniform(&own);
        hits += x * x + y * y <= 1;
    }
    states[id] = own;
    atomicAdd(inside, hits);
}

static void check_darts()
{
    curandStatePhilox4_32_10_t *states = NULL;
    unsigned *inside = shared_array<unsigned>(1);

    CHECK_CUDA(cudaMalloc(&states, THREADS * sizeof *states));
    set_up<<<4, THREADS / 4>>>(states);
    throw_darts<<<4, THREADS / 4>>>(states, inside);
    throw_darts<<<4, THREADS / 4>>>(states, inside); /* goes on behind the first */
    CHECK_LAUNCH();
    near(4.0 * *inside / (2.0 * THREADS * DARTS), acos(-1.0), 0.01);
    CHECK_CUDA(cudaFree(states));
    CHECK_CUDA(cudaFree(inside));
}

int main()
{
    check_known();
    check_positions();
    check_numbers();
    check_darts();
    return 0;
}
