/* A kernel's arguments are destroyed by the worker that ran its last thread, when that thread is no more: a
 * signal that interrupts the destructor has nobody yield, though others wait for the worker. */
#include "device.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

enum { WAITING = 64, LAUNCHES = 200, SPINS = 20000 };

static int over;

struct slow {
    volatile int *unused;
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

static void *flood(void *)
{
    while (!__atomic_load_n(&over, __ATOMIC_RELAXED))
        CHECK_EQ(kill(getpid(), SIGURG), 0);
    return nullptr;
}

int main()
{
    int *shared = shared_array<int>(2);
    pthread_t sender;
    sigset_t urgent;
    cudaStream_t other;

    sigemptyset(&urgent); /* so that the device's workers get all of them */
    sigaddset(&urgent, SIGURG);
    CHECK_EQ(pthread_sigmask(SIG_BLOCK, &urgent, nullptr), 0);
    CHECK_CUDA(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    wait_for<<<WAITING, 1, 0, other>>>(shared + 1);
    CHECK_EQ(pthread_create(&sender, nullptr, flood, nullptr), 0);
    for (int i = 0; i < LAUNCHES; i++)
        take<<<1, 1>>>(slow{shared}, shared);
    CHECK_CUDA(cudaStreamSynchronize(nullptr));
    __atomic_store_n(shared + 1, 1, __ATOMIC_RELEASE);
    CHECK_CUDA(cudaStreamSynchronize(other));
    CHECK_EQ(shared[0], LAUNCHES);
    __atomic_store_n(&over, 1, __ATOMIC_RELAXED);
    CHECK_EQ(pthread_join(sender, nullptr), 0);
    CHECK_CUDA(cudaStreamDestroy(other));
    CHECK_CUDA(cudaFree(shared));
    return 0;
}
