/* For ThreadSanitizer. With an argument, one mistake that it has to find; without, none.
 *
 * The right kernels order what they share by barriers, fences with atomics or volatiles, shuffles
 * after __syncwarp, streams, events; a report about one of them would be a false one. */
#include "device.h"

__global__ void sums(int *out, bool forget_barrier)
{
    __shared__ int parts[64];
    int i = (int)threadIdx.x;

    parts[i] = i;
    if (!forget_barrier)
        __syncthreads();
    out[blockIdx.x * 64 + i] = parts[(i + 33) % 64];
    __syncthreads();
    parts[63 - i] = 1;
}

__global__ void warps(int *out, bool forget_barrier)
{
    __shared__ int parts[64];
    int i = (int)threadIdx.x;

    parts[i] = i;
    if (!forget_barrier)
        __syncwarp();
    out[i] = parts[i ^ 1];
}

__global__ void unprotected(int *count)
{
    *count += 1;
}

/* The last block adds up what all have written, as in CUDA's guide. */
__global__ void last_block(int *parts, unsigned *arrived, int *out, bool forget_fence)
{
    __shared__ bool last;

    if (threadIdx.x == 0) {
        parts[blockIdx.x] = (int)blockIdx.x;
        if (!forget_fence)
            __threadfence();
        last = atomicInc(arrived, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && threadIdx.x == 0) {
        int sum = 0;
        for (unsigned i = 0; i < gridDim.x; i++)
            sum += parts[i];
        *out = sum;
    }
}

__global__ void message(int *data, volatile int *flag, int *out)
{
    if (blockIdx.x == 0) {
        *data = 42;
        __threadfence();
        *flag = 1;
    } else {
        while (*flag == 0)
            ;
        __threadfence();
        *out = *data;
    }
}

int main(int argc, char **argv)
{
    const char *which = argc > 1 ? argv[1] : "";
    int *words = shared_array<int>(256);
    cudaStream_t first, second;
    cudaEvent_t event;

    CHECK_CUDA(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
    CHECK_CUDA(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
    CHECK_CUDA(cudaEventCreate(&event));

    words[200] = 0;
    sums<<<2, 64>>>(words, strcmp(which, "block") == 0);
    CHECK_LAUNCH();
    CHECK_EQ(words[5], 38);
    warps<<<1, 64>>>(words, strcmp(which, "warp") == 0);
    CHECK_LAUNCH();
    CHECK_EQ(words[5], 4);
    if (strcmp(which, "counter") == 0)
        unprotected<<<1, 8>>>(&words[200]);
    CHECK_LAUNCH();
    last_block<<<8, 4>>>(&words[100], (unsigned *)&words[201], &words[202],
                         strcmp(which, "fence") == 0);
    CHECK_LAUNCH();
    CHECK_EQ(words[202], 28);
    message<<<2, 1>>>(&words[203], &words[204], &words[205]);
    CHECK_LAUNCH();
    CHECK_EQ(words[205], 42);

    unprotected<<<1, 1, 0, first>>>(&words[206]);
    unprotected<<<1, 1, 0, first>>>(&words[206]);
    CHECK_CUDA(cudaEventRecord(event, first));
    CHECK_CUDA(cudaStreamWaitEvent(second, event, 0));
    unprotected<<<1, 1, 0, second>>>(&words[206]);
    CHECK_CUDA(cudaStreamSynchronize(second));
    CHECK_EQ(words[206], 3);
    words[206]++;
    CHECK_CUDA(cudaMemset(&words[206], 0, 4));
    unprotected<<<1, 1>>>(&words[206]);
    CHECK_LAUNCH();

    CHECK_CUDA(cudaEventDestroy(event));
    CHECK_CUDA(cudaStreamDestroy(first));
    CHECK_CUDA(cudaStreamDestroy(second));
    CHECK_CUDA(cudaFree(words));
    return 0;
}
