/* Threads that wait in plain loops while the signal that interrupts them comes faster than it can be
 * handled, as where the machine is slow: their stacks hold, and all of them go on. */
#include "device.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

enum { BLOCKS = 4, THREADS = 8, ROUNDS = 10 };

static int over;

__global__ void in_turn(volatile int *turn)
{
    const int all = BLOCKS * THREADS, mine = (int)(blockIdx.x * THREADS + threadIdx.x);

    for (int round = 0; round < ROUNDS; round++) {
        while (*turn != round * all + mine)
            ;
        __threadfence();
        *turn = *turn + 1;
    }
}

static void *flood(void *)
{
    while (!__atomic_load_n(&over, __ATOMIC_RELAXED))
        CHECK_EQ(kill(getpid(), SIGURG), 0);
    return nullptr;
}

int main()
{
    int *turn = shared_array<int>(1);
    pthread_t sender;
    sigset_t urgent;

    /* so that the device's workers get all of them */
    sigemptyset(&urgent);
    sigaddset(&urgent, SIGURG);
    CHECK_EQ(pthread_sigmask(SIG_BLOCK, &urgent, nullptr), 0);
    CHECK_EQ(pthread_create(&sender, nullptr, flood, nullptr), 0);
    in_turn<<<BLOCKS, THREADS>>>(turn);
    CHECK_LAUNCH();
    CHECK_EQ(*turn, BLOCKS * THREADS * ROUNDS);
    __atomic_store_n(&over, 1, __ATOMIC_RELAXED);
    CHECK_EQ(pthread_join(sender, nullptr), 0);
    CHECK_CUDA(cudaFree(turn));
    return 0;
}
