/* A library with kernels whose names other libraries have, too: for plugins.cu, built once for each ANSWER. */
#include <gshmem.h>
#include <gshmem/stream.h>

#include "device.h"

__global__ void answer(int *out)
{
    __shared__ int words[32 * ANSWER];

    words[threadIdx.x] = ANSWER;
    __syncthreads();
    *out = words[blockDim.x - 1];
}

template <class T> __global__ void answer_as(T *out)
{
    *out = ANSWER;
}

extern "C" int by_brackets(void)
{
    int *out = shared_array<int>(2);

    answer<<<1, 32 * ANSWER>>>(out);
    answer_as<<<1, 1>>>(out + 1);
    CHECK_LAUNCH();
    CHECK_EQ(out[0], out[1]);
    int got = out[0];
    CHECK_CUDA(cudaFree(out));
    return got;
}

extern "C" int by_pointer(void)
{
    int *out = shared_array<int>(1);
    void *arguments[] = {&out};

    CHECK_CUDA(cudaLaunchKernel((const void *)answer, dim3(1), dim3(32), arguments, 0, 0));
    CHECK_LAUNCH();
    int got = *out;
    CHECK_CUDA(cudaFree(out));
    return got;
}

/* Takes a while, on several streams and in a graph, and writes when it ends. */
__global__ void answer_late(int *at)
{
    long long begin = clock64();

    while (clock64() - begin < 10000000)
        __nanosleep(10000);
    atomicAdd(at, ANSWER);
}

/* Returns while five of them are on their way. */
extern "C" void under_way(int *at)
{
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;

    CHECK_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    answer_late<<<1, 1, 0, stream>>>(at);
    CHECK_CUDA(cudaStreamEndCapture(stream, &graph));
    CHECK_CUDA(cudaGraphInstantiate(&exec, graph, 0));
    CHECK_CUDA(cudaGraphDestroy(graph));
    for (int i = 0; i < 2; i++)
        CHECK_CUDA(cudaGraphLaunch(exec, stream));
    CHECK_CUDA(cudaGraphExecDestroy(exec));
    answer_late<<<1, 1, 0, stream>>>(at);
    for (int i = 0; i < 2; i++)
        answer_late<<<1, 1>>>(at);
    CHECK_CUDA(cudaStreamDestroy(stream));
}

/* The job's operations come to this library's streams. */
extern "C" void on_stream(int *at)
{
    cudaStream_t stream;

    CHECK_CUDA(cudaStreamCreate(&stream));
    CHECK_OK(gshmem_int_p_on_stream(at, ANSWER, gshmem_my_pe(), stream));
    CHECK_CUDA(cudaStreamSynchronize(stream));
    CHECK_CUDA(cudaStreamDestroy(stream));
    CHECK_EQ(*at, ANSWER);
}
