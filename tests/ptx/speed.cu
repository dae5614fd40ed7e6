/* Kernels that compute: prints the nanoseconds of CPU time of each, medians of many launches. By
 * hand, compiled with --device=host and with --device=ptx; device/host/ptx/README.md has figures. */
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <vector>

#include <cuda_runtime.h>

#define N     (1 << 20)
#define WIDTH 1024
#define BLOCK 256

__global__ void saxpy(float a, const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n)
        y[i] = a * x[i] + y[i];
}

/* Each thread does many elements, as programs on a GPU do with large data. */
__global__ void saxpy_loop(float a, const float *x, float *y, int n)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        y[i] = a * x[i] + y[i];
}

__global__ void stencil(const float *from, float *to)
{
    int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y;

    if (column == 0 || column == WIDTH - 1 || row == 0 || row == N / WIDTH - 1)
        return;
    const float *at = from + row * WIDTH + column;
    to[row * WIDTH + column] = 0.2f * (at[0] + at[-1] + at[1] + at[-WIDTH] + at[WIDTH]);
}

__global__ void reduce(const float *from, float *to)
{
    __shared__ float part[BLOCK];
    float sum = 0;

    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < N; i += gridDim.x * blockDim.x)
        sum += from[i];
    part[threadIdx.x] = sum;
    __syncthreads();
    for (int half = BLOCK / 2; half > 0; half /= 2) {
        if ((int)threadIdx.x < half)
            part[threadIdx.x] += part[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0)
        to[blockIdx.x] = part[0];
}

/* A barrier after each few instructions. */
__global__ void barriers(float *to, int times)
{
    for (int i = 0; i < times; i++) {
        to[threadIdx.x] += 1;
        __syncthreads();
    }
}

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

template <class Launch> static void measure(const char *name, Launch launch)
{
    std::vector<double> times;

    for (int i = 0; i < 25; i++) {
        double begin = now();
        launch();
        if (cudaDeviceSynchronize() != cudaSuccess)
            exit(1);
        times.push_back(now() - begin);
    }
    std::sort(times.begin(), times.end());
    printf("%s %.0f\n", name, times[times.size() / 2]);
}

int main()
{
    float *x, *y;

    if (cudaMalloc((void **)&x, N * sizeof *x) || cudaMalloc((void **)&y, N * sizeof *y) ||
        cudaMemset(x, 0, N * sizeof *x) || cudaMemset(y, 0, N * sizeof *y))
        return 1;
    measure("saxpy", [&] { saxpy<<<N / BLOCK, BLOCK>>>(2, x, y, N); });
    measure("saxpy-loop", [&] { saxpy_loop<<<4, BLOCK>>>(2, x, y, N); });
    measure("stencil", [&] { stencil<<<dim3(WIDTH / BLOCK, N / WIDTH), BLOCK>>>(x, y); });
    measure("reduce", [&] { reduce<<<64, BLOCK>>>(x, y); });
    measure("barriers", [&] { barriers<<<1, BLOCK>>>(y, 1000); });
    return cudaFree(x) || cudaFree(y);
}
