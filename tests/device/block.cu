/* What the threads of a block share: barriers of every kind, and shared memory of every kind. */
#include "device.h"

/* Each step reads what the others wrote in the step before. */
__global__ void turns(int *out, int steps)
{
    __shared__ int a[1024], b[1024];
    int n = (int)blockDim.x, i = (int)threadIdx.x;
    int *from = a, *to = b;

    a[i] = i;
    __syncthreads();
    for (int s = 0; s < steps; s++) {
        to[i] = from[(i + 1) % n] + 1;
        int *swap = from;
        from = to;
        to = swap;
        __syncthreads();
    }
    out[(int)blockIdx.x * n + i] = from[i];
}

static void check_turns(int n, int steps)
{
    int blocks = 5, *out = shared_array<int>((size_t)(blocks * n));

    turns<<<blocks, n>>>(out, steps);
    CHECK_LAUNCH();
    for (int i = 0; i < blocks * n; i++)
        CHECK_EQ(out[i], (i % n + steps) % n + steps);
    CHECK_CUDA(cudaFree(out));
}

__global__ void counts(int *out)
{
    int i = (int)threadIdx.x, n = (int)blockDim.x;

    out[i] = __syncthreads_count(i % 3 == 0);
    out[n + i] = __syncthreads_and(i >= 0);
    out[2 * n + i] = __syncthreads_and(i != 7);
    out[3 * n + i] = __syncthreads_or(i == 7);
    out[4 * n + i] = __syncthreads_or(i < 0);
    out[5 * n + i] = __syncthreads_count(1);
}

static void check_counts()
{
    int n = 100, *out = shared_array<int>(600);

    counts<<<1, n>>>(out);
    CHECK_LAUNCH();
    for (int i = 0; i < n; i++) {
        CHECK_EQ(out[i], 34);
        CHECK_EQ(out[n + i] != 0, 1);
        CHECK_EQ(out[2 * n + i] != 0, 0);
        CHECK_EQ(out[3 * n + i] != 0, 1);
        CHECK_EQ(out[4 * n + i] != 0, 0);
        CHECK_EQ(out[5 * n + i], 100);
    }
    CHECK_CUDA(cudaFree(out));
}

/* Threads beyond the data leave early; the others' barriers do without them. */
__global__ void early_exit(int *out, int n)
{
    __shared__ int sum;

    if ((int)threadIdx.x >= n)
        return;
    if (threadIdx.x == 0)
        sum = 0;
    __syncthreads();
    atomicAdd(&sum, 1);
    __syncthreads();
    out[threadIdx.x] = sum;
}

extern __shared__ double file_scope[];

template <class T, int N> __device__ T *table()
{
    __shared__ T here[N][2];

    return &here[0][0];
}

union word {
    float f;
    unsigned u;
};

__global__ void kinds(int *out, int n)
{
    extern __shared__ __align__(16) char bytes[];
    __shared__ word w;
    __shared__ volatile int counter;
    static __shared__ struct {
        short a, b[3];
    } unnamed, *pointer;
    __shared__ int (*row)[4], grid4[2][4];
    int *first = table<int, 8>(), *second = table<int, 9>();

    if (threadIdx.x == 0) {
        w.f = 1.0f;
        counter = 3;
        unnamed.b[2] = 9;
        pointer = &unnamed;
        row = grid4;
        grid4[1][2] = 70;
        first[1] = 100;
        second[1] = 200;
    }
    for (int i = (int)threadIdx.x; i < n; i += (int)blockDim.x)
        file_scope[i] = i;
    __syncthreads();
    if (threadIdx.x == blockDim.x - 1) {
        out[0] = (int)(w.u >> 20);
        out[1] = counter;
        out[2] = pointer->b[2];
        out[3] = row[1][2];
        out[4] = table<int, 8>()[1];
        out[5] = table<int, 9>()[1];
        out[6] = (char *)&file_scope[0] == bytes;
        out[7] = (int)file_scope[n - 1];
        out[8] = (int)sizeof grid4;
    }
}

static void check_kinds()
{
    int *out = shared_array<int>(9);

    early_exit<<<1, 64>>>(out, 9);
    CHECK_LAUNCH();
    CHECK_EQ(out[8], 9);

    kinds<<<1, 50, 300 * sizeof(double)>>>(out, 300);
    CHECK_LAUNCH();
    static const int expected[] = {0x3f8, 3, 9, 70, 100, 200, 1, 299, 32};
    for (int i = 0; i < 9; i++)
        CHECK_EQ(out[i], expected[i]);

    /* More than 48 KiB has to be asked for. */
    int n = 60 * 1024 / (int)sizeof(double);
    kinds<<<1, 50, n * sizeof(double)>>>(out, n);
    CHECK_CUDA_FAILS(cudaGetLastError(), cudaErrorInvalidValue);
    CHECK_CUDA(cudaFuncSetAttribute(kinds, cudaFuncAttributeMaxDynamicSharedMemorySize, 60 * 1024));
    kinds<<<1, 50, n * sizeof(double)>>>(out, n);
    CHECK_LAUNCH();
    CHECK_EQ(out[7], n - 1);
    CHECK_CUDA(cudaFree(out));
}

/* The sum of a block as the textbooks do it: shared memory, then shuffles. */
template <class T> __global__ void sum(T *out, const T *in, int n)
{
    __shared__ T parts[32];
    T mine = T(0);

    for (int i = (int)(blockIdx.x * blockDim.x + threadIdx.x); i < n;
         i += (int)(gridDim.x * blockDim.x))
        mine += in[i];
    for (int by = 16; by; by /= 2)
        mine += __shfl_down_sync(0xffffffff, mine, by);
    if (threadIdx.x % 32 == 0)
        parts[threadIdx.x / 32] = mine;
    __syncthreads();
    if (threadIdx.x < 32) {
        mine = threadIdx.x < blockDim.x / 32 ? parts[threadIdx.x] : T(0);
        for (int by = 16; by; by /= 2)
            mine += __shfl_xor_sync(0xffffffff, mine, by);
        if (threadIdx.x == 0)
            atomicAdd(out, mine);
    }
}

static void check_sum()
{
    int n = 100000, *in = shared_array<int>((size_t)n), *out = shared_array<int>(1);
    int expected = 0;

    for (int i = 0; i < n; i++) {
        in[i] = i % 17;
        expected += in[i];
    }
    sum<<<7, 256>>>(out, in, n);
    CHECK_LAUNCH();
    CHECK_EQ(*out, expected);
    CHECK_CUDA(cudaFree(in));
    CHECK_CUDA(cudaFree(out));
}

int main()
{
    check_turns(1, 3);
    check_turns(33, 50);
    check_turns(1024, 20);
    check_counts();
    check_kinds();
    check_sum();
    return 0;
}
