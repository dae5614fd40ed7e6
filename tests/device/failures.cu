/* Kernels that cannot go on: which one is chosen by name. Each ends with a launch failure and a report
 * of where its threads wait, and a later launch fails too, until the device is reset. */
#include "device.h"

#include <assert.h>
#include <cooperative_groups.h>
#include <pthread.h>
#include <time.h>

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

__global__ void assertion(int *at)
{
    if (blockIdx.x == 1)
        assert(*at == 1);
}

__global__ void grid_barrier(int *valid)
{
    *valid = cooperative_groups::this_grid().is_valid();
    cooperative_groups::this_grid().sync();
}

static void count_calls(void *calls)
{
    ++*(int *)calls;
}

static void count_failures(cudaStream_t, cudaError_t error, void *failures)
{
    *(int *)failures += error != cudaSuccess;
}

__global__ void harmless(int *out)
{
    *out += 1;
}

__global__ void hold(volatile int *words)
{
    words[0] = 1;
    while (words[1] == 0)
        __nanosleep(1000);
    words[2] = 1;
}

static void *open_gate(void *words)
{
    const struct timespec moment = {0, 50000000};

    nanosleep(&moment, nullptr);
    ((volatile int *)words)[1] = 1;
    return nullptr;
}

/* A kernel of another stream has failed: what this stream runs is waited for all the same. */
static void wait_beside(unsigned flags, bool by_default)
{
    volatile int *words = shared_array<int>(3);
    cudaStream_t stream, failing;
    pthread_t thread;

    CHECK_CUDA(cudaStreamCreateWithFlags(&stream, flags));
    CHECK_CUDA(cudaStreamCreateWithFlags(&failing, cudaStreamNonBlocking));
    hold<<<1, 1, 0, stream>>>(words);
    trap<<<4, 32, 0, failing>>>();
    CHECK_EQ(cudaStreamSynchronize(failing), cudaErrorLaunchFailure);
    while (!words[0])
        ;
    CHECK_EQ(pthread_create(&thread, nullptr, open_gate, (void *)words), 0);
    CHECK_EQ(cudaStreamSynchronize(by_default ? 0 : stream), cudaErrorLaunchFailure);
    CHECK_EQ(words[2], 1);
    CHECK_EQ(pthread_join(thread, nullptr), 0);
    CHECK_CUDA(cudaDeviceReset());
    CHECK_CUDA(cudaStreamDestroy(stream));
    CHECK_CUDA(cudaStreamDestroy(failing));
    CHECK_CUDA(cudaFree((void *)words));
}

int main(int argc, char **argv)
{
    const char *which = argc > 1 ? argv[1] : "";
    int *out = shared_array<int>(3);

    if (strcmp(which, "barrier_and_shuffle") == 0)
        barrier_and_shuffle<<<1, 64>>>(out);
    else if (strcmp(which, "half_a_warp") == 0)
        half_a_warp<<<dim3(2, 2), dim3(8, 4)>>>();
    else if (strcmp(which, "grid_without_one") == 0)
        grid_without_one<<<6, 64>>>(out);
    else if (strcmp(which, "trap") == 0)
        trap<<<4, 32>>>();
    else if (strcmp(which, "assertion") == 0)
        assertion<<<2, 1>>>(out);
    else if (strcmp(which, "grid_barrier") == 0)
        grid_barrier<<<1, 1>>>(out);
#ifndef __NVCC__
    else if (strcmp(which, "too_much_shared") == 0)
        too_much_shared<<<1, 32>>>();
#endif
    else if (strcmp(which, "beside") == 0) {
        wait_beside(cudaStreamNonBlocking, false);
        wait_beside(cudaStreamDefault, false);
        wait_beside(cudaStreamDefault, true);
        return 0;
    } else if (strcmp(which, "different_barriers") == 0) {
        different_barriers<<<3, 8>>>(out);
        CHECK_LAUNCH();
        CHECK_EQ(*out, 1);
        return 0;
    } else
        CHECK_FAIL("usage: failures KERNEL");

    /* Nothing behind it is done; it is put there before or after the kernel has failed. */
    const cudaError_t error = strcmp(which, "assertion") == 0 ? cudaErrorAssert : cudaErrorLaunchFailure;
    int calls = 0, failures = 0, before = 0;
    (void)cudaGetLastError();
    for (int i = 0; i < 2000; i++)
        harmless<<<1, 1>>>(out + 1);
    (void)cudaLaunchHostFunc(0, count_calls, &calls);
    cudaError_t told = cudaStreamAddCallback(0, count_failures, &failures, 0);
    (void)cudaMemcpyAsync(&before, out + 2, sizeof before, cudaMemcpyDeviceToHost, 0);
    CHECK_EQ(cudaDeviceSynchronize(), error);
    CHECK_EQ(out[1], 0);
    CHECK_EQ(calls, 0);
    CHECK_EQ(failures, told == cudaSuccess);
    CHECK_EQ(out[0], 0); /* is_valid */
    harmless<<<1, 1>>>(out);
    CHECK_EQ(cudaGetLastError(), error);
    CHECK_EQ(cudaStreamSynchronize(0), error);
    void *none;
    cudaStream_t stream;
    cudaEvent_t event;
    CHECK_EQ(cudaMalloc(&none, 4), error);
    CHECK_EQ(cudaMallocManaged(&none, 4), error);
    CHECK_EQ(cudaStreamCreate(&stream), error);
    CHECK_EQ(cudaEventCreate(&event), error);
    CHECK_EQ(cudaMemcpy(out, out + 1, 4, cudaMemcpyDefault), error);
    CHECK_EQ(cudaMemset(out, 1, 4), error);
    CHECK_EQ(cudaLaunchHostFunc(0, count_calls, &calls), error);
    CHECK_EQ(cudaGetLastError(), error);
    CHECK_CUDA(cudaDeviceReset());
    *out = 0;
    for (int i = 0; i < 50; i++)
        harmless<<<2, 1>>>(out);
    CHECK_LAUNCH();
    CHECK(*out >= 50);
    CHECK_CUDA(cudaFree(out));
    return 0;
}
