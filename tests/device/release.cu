/* A kernel's arguments are destroyed by the worker that ran its last thread, when that thread is no more: a
 * signal that interrupts the destructor has nobody yield, though others wait for the worker. */
#include "flood.h"

enum { WAITING = 64, LAUNCHES = 200, SPINS = 20000 };

struct slow {
    ~slow()
    {
        for (volatile int i = 0; i < SPINS; i = i + 1)
            ;
    }
};

__global__ void take(slow argument, int *count)
{
    (void)argument;
    *count += 1;
}

__global__ void wait_for(volatile int *flag)
{
    while (!*flag)
        ;
}

int main()
{
    int *shared = shared_array<int>(2);
    cudaStream_t other;

    CHECK_CUDA(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    flood_begin();
    wait_for<<<WAITING, 1, 0, other>>>(shared + 1);
    for (int i = 0; i < LAUNCHES; i++)
        take<<<1, 1>>>(slow{}, shared);
    CHECK_CUDA(cudaStreamSynchronize(nullptr));
    __atomic_store_n(shared + 1, 1, __ATOMIC_RELEASE);
    CHECK_CUDA(cudaStreamSynchronize(other));
    CHECK_EQ(shared[0], LAUNCHES);
    flood_end();
    CHECK_CUDA(cudaStreamDestroy(other));
    CHECK_CUDA(cudaFree(shared));
    return 0;
}
