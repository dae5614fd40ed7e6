/* Cooperative launches on several streams, each as large as fits: the places of blocks that end one by one
 * go to one of them, and not to each a part of what it waits for. */
#include "device.h"

#include <cooperative_groups.h>

__global__ void meet(int *count)
{
    cooperative_groups::this_grid().sync();
    if (threadIdx.x == 0)
        atomicAdd(count, 1);
    cooperative_groups::this_grid().sync();
}

/* Its blocks end one after the other, when the host has said so; then room comes by a block at a time. */
__global__ void brief(const volatile int *go, int *turn)
{
    if (threadIdx.x)
        return;
    while (!*go)
        __nanosleep(1000);
    while (atomicAdd(turn, 0) != (int)blockIdx.x)
        __nanosleep(1000);
    __nanosleep(100000);
    atomicAdd(turn, 1);
}

static int most(int threads)
{
    int processors = 0, each = 0;

    CHECK_CUDA(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0));
    CHECK_CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, meet, threads, 0));
    return processors * each;
}

int main()
{
    enum { STREAMS = 5, BRIEF = 64 };
    static const int threads[STREAMS] = {1024, 32, 256, 1024, 96};
    cudaStream_t first, stream[STREAMS];
    int *count = shared_array<int>(STREAMS), *go = shared_array<int>(2);

    CHECK_CUDA(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
    for (int i = 0; i < STREAMS; i++)
        CHECK_CUDA(cudaStreamCreateWithFlags(&stream[i], cudaStreamNonBlocking));
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < STREAMS; i++)
            count[i] = 0;
        go[0] = go[1] = 0;
        brief<<<BRIEF, 32, 0, first>>>(go, go + 1);
        for (int i = 0; i < STREAMS; i++) {
            int *own = count + i;
            void *arguments[] = {&own};
            CHECK_CUDA(cudaLaunchCooperativeKernel(meet, dim3(most(threads[i])), dim3(threads[i]), arguments, 0,
                                                   stream[i]));
        }
        *(volatile int *)go = 1;
        CHECK_LAUNCH();
        for (int i = 0; i < STREAMS; i++)
            CHECK_EQ(count[i], most(threads[i]));
    }
    return 0;
}
