/* Kernels that cannot go on: which one is chosen by name. Each ends with a launch failure and a report
 * of where its threads wait, and a later launch fails too, until the device is reset. */
#include "device.h"

__global__ void barrier_and_shuffle(int *out)
{
    if (threadIdx.x < 48)
        __syncthreads();
    else
        *out = __shfl_sync(0xffffffff, 1, 0);
}

__global__ void half_a_warp()
{
    if (threadIdx.x % 2)
        __syncwarp();
    else
        __syncthreads();
}

__global__ void grid_without_one(int *arrived)
{
    if (blockIdx.x == 1) {
        if (threadIdx.x == 0)
            __syncwarp(0x3);
        else
            __syncthreads();
    }
    while (atomicAdd(arrived, 0) == 0) /* others must not wait for ever for the one that is stuck */
        ;
}

__global__ void different_barriers(int *out)
{
    if (threadIdx.x == 3)
        __syncthreads();
    else
        __syncthreads_count(1);
    *out = 1;
}

__global__ void trap()
{
    if (blockIdx.x == 2 && threadIdx.x == 5)
        __trap();
    __syncthreads();
}

#ifndef __NVCC__ /* which sees that when it compiles */
__global__ void too_much_shared()
{
    __shared__ char many[100][1000], more[100][1000], yet_more[100][1000];

    many[0][threadIdx.x] = more[0][threadIdx.x] = yet_more[0][threadIdx.x] = 1;
}
#endif

__global__ void harmless(int *out)
{
    *out += 1;
}

int main(int argc, char **argv)
{
    const char *which = argc > 1 ? argv[1] : "";
    int *out = shared_array<int>(1);

    if (strcmp(which, "barrier_and_shuffle") == 0)
        barrier_and_shuffle<<<1, 64>>>(out);
    else if (strcmp(which, "half_a_warp") == 0)
        half_a_warp<<<dim3(2, 2), dim3(8, 4)>>>();
    else if (strcmp(which, "grid_without_one") == 0)
        grid_without_one<<<6, 64>>>(out);
    else if (strcmp(which, "trap") == 0)
        trap<<<4, 32>>>();
#ifndef __NVCC__
    else if (strcmp(which, "too_much_shared") == 0)
        too_much_shared<<<1, 32>>>();
#endif
    else if (strcmp(which, "different_barriers") == 0) {
        different_barriers<<<3, 8>>>(out);
        CHECK_LAUNCH();
        CHECK_EQ(*out, 1);
        return 0;
    } else
        CHECK_FAIL("usage: failures KERNEL");

    CHECK_CUDA(cudaGetLastError());
    CHECK_EQ(cudaDeviceSynchronize(), cudaErrorLaunchFailure);
    harmless<<<1, 1>>>(out);
    CHECK_EQ(cudaGetLastError(), cudaErrorLaunchFailure);
    CHECK_EQ(cudaStreamSynchronize(0), cudaErrorLaunchFailure);
    CHECK_CUDA(cudaDeviceReset());
    *out = 0;
    for (int i = 0; i < 50; i++)
        harmless<<<2, 1>>>(out);
    CHECK_LAUNCH();
    CHECK(*out >= 50);
    CHECK_CUDA(cudaFree(out));
    return 0;
}
