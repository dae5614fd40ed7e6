/* Shuffles, votes, matches and reductions of warps: every type and width, against the plain meaning
 * of each, also for warps that are not full and for parts of a warp. */
#include "device.h"

enum { WARPS = 3, THREADS = 32 * WARPS };
static const unsigned full = 0xffffffff;

template <class T> __host__ __device__ T value_of(int thread)
{
    return (T)(thread * 3 - 7) / (T)2;
}

/* out[thread] of the four shuffles, one after the other. */
template <class T> __global__ void shuffles(T *out, int by, int width)
{
    int i = (int)threadIdx.x;
    T mine = value_of<T>(i);

    out[i] = __shfl_sync(full, mine, by, width);
    out[THREADS + i] = __shfl_up_sync(full, mine, (unsigned)by, width);
    out[2 * THREADS + i] = __shfl_down_sync(full, mine, (unsigned)by, width);
    out[3 * THREADS + i] = __shfl_xor_sync(full, mine, by, width);
}

static int source_of(int kind, int lane, int by, int width)
{
    int first = lane / width * width, within = lane % width;

    switch (kind) {
    case 0:
        return first + by % width;
    case 1:
        return within >= by ? lane - by : lane;
    case 2:
        return within + by < width ? lane + by : lane;
    default:
        return (lane ^ by) < first + width ? lane ^ by : lane;
    }
}

template <class T> static void check_shuffles()
{
    T *out = shared_array<T>(4 * THREADS);

    for (int width = 2; width <= 32; width *= 2) {
        for (int by = 0; by < 32; by += 1 + by / 4) {
            shuffles<<<1, THREADS>>>(out, by, width);
            CHECK_LAUNCH();
            for (int i = 0; i < 4 * THREADS; i++) {
                int thread = i % THREADS, base = thread / 32 * 32;
                int source = base + source_of(i / THREADS, thread % 32, by, width);
                if (out[i] != value_of<T>(source))
                    CHECK_FAIL("shuffle %d of thread %d by %d in %d is not thread %d's",
                               i / THREADS, thread, by, width, source);
            }
        }
    }
    CHECK_CUDA(cudaFree(out));
}

__global__ void votes(unsigned *out, unsigned bits)
{
    int lane = (int)threadIdx.x % 32;
    int mine = bits >> lane & 1;

    out[threadIdx.x] = __ballot_sync(full, mine);
    out[THREADS + threadIdx.x] = (unsigned)(__any_sync(full, mine) != 0) |
                                 (unsigned)(__all_sync(full, mine) != 0) << 1;
}

static void check_votes()
{
    unsigned *out = shared_array<unsigned>(2 * THREADS);
    static const unsigned patterns[] = {0, full, 1, 0x80000000, 0x12345678};

    for (unsigned bits : patterns) {
        votes<<<1, THREADS>>>(out, bits);
        CHECK_LAUNCH();
        for (int i = 0; i < THREADS; i++) {
            CHECK_EQ(out[i], bits);
            CHECK_EQ(out[THREADS + i], (bits != 0) | (bits == full) << 1);
        }
    }
    CHECK_CUDA(cudaFree(out));
}

__global__ void matches(unsigned *out, long long *values, int same)
{
    unsigned lane = threadIdx.x;
    long long mine = same ? 5 : values[lane];
    int predicate = -1;

    out[lane] = __match_any_sync(full, mine);
    out[32 + lane] = __match_any_sync(full, (int)mine);
    out[64 + lane] = __match_all_sync(full, mine, &predicate);
    out[96 + lane] = (unsigned)predicate;
}

static void check_matches()
{
    unsigned *out = shared_array<unsigned>(128);
    long long *values = shared_array<long long>(32);

    for (int i = 0; i < 32; i++)
        values[i] = i % 5 + ((long long)(i % 2) << 40); /* the int sees fewer differences */
    matches<<<1, 32>>>(out, values, 0);
    CHECK_LAUNCH();
    for (int i = 0; i < 32; i++) {
        unsigned wide = 0, narrow = 0;
        for (int j = 0; j < 32; j++) {
            wide |= (unsigned)(values[i] == values[j]) << j;
            narrow |= (unsigned)((int)values[i] == (int)values[j]) << j;
        }
        CHECK_EQ(out[i], wide);
        CHECK_EQ(out[32 + i], narrow);
        CHECK_EQ(out[64 + i], 0);
        CHECK_EQ(out[96 + i], 0);
    }
    matches<<<1, 32>>>(out, values, 1);
    CHECK_LAUNCH();
    for (int i = 0; i < 32; i++) {
        CHECK_EQ(out[i], full);
        CHECK_EQ(out[64 + i], full);
        CHECK_EQ(out[96 + i], 1);
    }
    CHECK_CUDA(cudaFree(values));
    CHECK_CUDA(cudaFree(out));
}

__global__ void reductions(int *out, const int *values)
{
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    int mine = values[threadIdx.x];
    int *to = out + 9 * threadIdx.x;

    to[0] = __reduce_add_sync(full, mine);
    to[1] = __reduce_min_sync(full, mine);
    to[2] = __reduce_max_sync(full, mine);
    to[3] = (int)__reduce_min_sync(full, (unsigned)mine);
    to[4] = (int)__reduce_max_sync(full, (unsigned)mine);
    to[5] = (int)__reduce_and_sync(full, (unsigned)mine);
    to[6] = (int)__reduce_or_sync(full, (unsigned)mine);
    to[7] = (int)__reduce_xor_sync(full, (unsigned)mine);
    to[8] = (int)__reduce_add_sync(full, (unsigned)mine);
#else
    (void)out;
    (void)values;
#endif
}

static void check_reductions()
{
    int *out = shared_array<int>(9 * 32), *values = shared_array<int>(32);
    int sum = 0, least = 1 << 30, most = -1, both = -1, any = 0, odd = 0;
    unsigned uleast = full, umost = 0;

    for (int i = 0; i < 32; i++) {
        values[i] = (i - 9) * 1000003 | 4;
        sum += values[i];
        least = values[i] < least ? values[i] : least;
        most = values[i] > most ? values[i] : most;
        uleast = (unsigned)values[i] < uleast ? (unsigned)values[i] : uleast;
        umost = (unsigned)values[i] > umost ? (unsigned)values[i] : umost;
        both &= values[i];
        any |= values[i];
        odd ^= values[i];
    }
    reductions<<<1, 32>>>(out, values);
    CHECK_LAUNCH();
    int expected[9] = {sum, least, most, (int)uleast, (int)umost, both, any, odd, sum};
    for (int i = 0; i < 9 * 32; i++)
        CHECK_EQ(out[i], expected[i % 9]);
    CHECK_CUDA(cudaFree(values));
    CHECK_CUDA(cudaFree(out));
}

/* Halves of a warp go different ways and each does things together; then all meet again. */
__global__ void parts(int *out)
{
    unsigned lane = threadIdx.x % 32;
    unsigned low = 0x0000ffff, high = 0xffff0000, odd = 0xaaaaaaaa;
    int sum = (int)threadIdx.x;

    if (lane < 16) {
        for (int by = 8; by; by /= 2)
            sum += __shfl_xor_sync(low, sum, by);
        __syncwarp(low);
    } else {
        sum = (int)__ballot_sync(high, lane == 20);
        sum = __shfl_sync(high, sum, 17) + 1;
    }
    if (lane & 1)
        sum += __popc(__ballot_sync(odd, 1)) << 8;
    __syncwarp();
    out[threadIdx.x] = sum + __any_sync(full, lane == 31);
}

static void check_parts()
{
    int *out = shared_array<int>(THREADS);

    parts<<<1, THREADS>>>(out);
    CHECK_LAUNCH();
    for (int i = 0; i < THREADS; i++) {
        int lane = i % 32, base = i / 32 * 32;
        int expected = lane < 16 ? 16 * base + 120 : (1 << 20) + 1;
        CHECK_EQ(out[i], expected + (lane & 1 ? 16 << 8 : 0) + 1);
    }
    CHECK_CUDA(cudaFree(out));
}

/* A block of 45 threads: its second warp has 13 lanes. */
__global__ void not_full(unsigned *out)
{
    unsigned mask = threadIdx.x < 32 ? full : (1u << 13) - 1;

    __syncwarp();
    out[threadIdx.x] = __ballot_sync(mask, threadIdx.x % 2);
}

/* Threads that have ended are waited for by nobody. */
__global__ void some_end(unsigned *out)
{
    if (threadIdx.x % 4 == 0)
        return;
    __syncwarp();
    __syncthreads();
    out[threadIdx.x] = __ballot_sync(0xeeeeeeee, 1);
}

/* One atomic for all lanes that are there, as the textbooks do it. */
__global__ void aggregate(unsigned *counter, unsigned *ticket)
{
    if (threadIdx.x % 3 == 0) {
        unsigned lane = threadIdx.x % 32, active = __activemask();
        int leader = __ffs((int)active) - 1;
        unsigned base = 0;

        if ((int)lane == leader)
            base = atomicAdd(counter, (unsigned)__popc(active));
        base = __shfl_sync(active, base, leader);
        ticket[threadIdx.x] = base + (unsigned)__popc(active & ((1u << lane) - 1));
    }
}

static void check_odd_ones()
{
    unsigned *out = shared_array<unsigned>(THREADS + 1);
    bool seen[THREADS] = {false};

    not_full<<<1, 45>>>(out);
    CHECK_LAUNCH();
    CHECK_EQ(out[0], 0xaaaaaaaa);
    CHECK_EQ(out[44], 0xaaaaaaaa & ((1u << 13) - 1));

    some_end<<<1, THREADS>>>(out);
    CHECK_LAUNCH();
    CHECK_EQ(out[1], 0xeeeeeeee);

    aggregate<<<1, THREADS>>>(out + THREADS, out);
    CHECK_LAUNCH();
    CHECK_EQ(out[THREADS], THREADS / 3);
    for (int i = 0; i < THREADS; i += 3) {
        CHECK(out[i] < THREADS / 3 && !seen[out[i]]);
        seen[out[i]] = true;
    }
    CHECK_CUDA(cudaFree(out));
}

int main()
{
    int major = 0;

    check_shuffles<int>();
    check_shuffles<unsigned>();
    check_shuffles<long>();
    check_shuffles<unsigned long>();
    check_shuffles<long long>();
    check_shuffles<unsigned long long>();
    check_shuffles<float>();
    check_shuffles<double>();
    check_shuffles<bool>(); /* promoted to int, and back */
    check_shuffles<char>();
    check_shuffles<unsigned char>();
    check_shuffles<short>();
    check_votes();
    check_matches();
    CHECK_CUDA(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0));
    if (major >= 8)
        check_reductions();
    check_parts();
    check_odd_ones();
    return 0;
}
