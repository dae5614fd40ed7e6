/* Threads, blocks and streams that wait for each other in loops: all that fit have to go on. */
#include "device.h"

#include <time.h>

enum { BLOCKS = 24, THREADS = 64 };

/* Each block waits for the one before, by atomics. */
__global__ void chain_atomic(int *turn, int *order)
{
    if (threadIdx.x == 0) {
        while (atomicAdd(turn, 0) != (int)(gridDim.x - 1 - blockIdx.x))
            ;
        order[gridDim.x - 1 - blockIdx.x] = (int)blockIdx.x;
        __threadfence();
        atomicAdd(turn, 1);
    }
    __syncthreads();
}

/* The same by compare-and-swap, and all threads of a block in the loop. */
__global__ void chain_swap(int *turn)
{
    int mine = (int)((gridDim.x - 1 - blockIdx.x) * blockDim.x + threadIdx.x);

    while (atomicCAS(turn, mine, mine + 1) != mine)
        ;
}

__global__ void chain_sleep(volatile int *turn)
{
    int mine = (int)(gridDim.x - 1 - blockIdx.x);

    if (threadIdx.x == 0) {
        while (*turn != mine)
            __nanosleep(20);
        __threadfence();
        *turn = mine + 1;
    }
}

/* A plain loop over a volatile: nothing in it that says it waits. */
__global__ void chain_volatile(volatile int *turn)
{
    int mine = (int)(gridDim.x - 1 - blockIdx.x);

    if (threadIdx.x == 0) {
        while (*turn != mine)
            ;
        __threadfence();
        *turn = mine + 1;
    }
}

static void check_chains()
{
    int *turn = shared_array<int>(1), *order = shared_array<int>(BLOCKS);

    chain_atomic<<<BLOCKS, THREADS>>>(turn, order);
    CHECK_LAUNCH();
    CHECK_EQ(*turn, BLOCKS);
    for (int i = 0; i < BLOCKS; i++)
        CHECK_EQ(order[i], BLOCKS - 1 - i);

    *turn = 0;
    chain_swap<<<4, THREADS>>>(turn);
    CHECK_LAUNCH();
    CHECK_EQ(*turn, 4 * THREADS);

    *turn = 0;
    chain_sleep<<<BLOCKS, THREADS>>>(turn);
    CHECK_LAUNCH();
    CHECK_EQ(*turn, BLOCKS);

    *turn = 0;
    chain_volatile<<<BLOCKS, THREADS>>>(turn);
    CHECK_LAUNCH();
    CHECK_EQ(*turn, BLOCKS);
    CHECK_CUDA(cudaFree(turn));
    CHECK_CUDA(cudaFree(order));
}

/* A lock that the threads of all blocks take in turn. */
__global__ void locked(int *lock, int *count)
{
    for (bool done = false; !done;) {
        if (atomicCAS(lock, 0, 1) == 0) {
            __threadfence();
            *(volatile int *)count = *(volatile int *)count + 1;
            __threadfence();
            atomicExch(lock, 0);
            done = true;
        }
    }
}

static void check_lock()
{
    int *words = shared_array<int>(2);

    locked<<<8, 96>>>(&words[0], &words[1]);
    CHECK_LAUNCH();
    CHECK_EQ(words[1], 8 * 96);
    CHECK_CUDA(cudaFree(words));
}

__global__ void wait_for(volatile int *flag, int value, int *seen)
{
    while (*flag != value)
        ;
    __threadfence_system();
    *seen = 1;
}

__global__ void set(volatile int *flag, int value)
{
    __threadfence_system();
    *flag = value;
}

/* A kernel waits for one that is launched after it in another stream, and for the host. */
static void check_streams()
{
    int *words = shared_array<int>(4);
    cudaStream_t first, second;

    CHECK_CUDA(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
    CHECK_CUDA(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
    wait_for<<<1, 1, 0, first>>>(&words[0], 5, &words[1]);
    set<<<1, 1, 0, second>>>(&words[0], 5);
    CHECK_CUDA(cudaStreamSynchronize(first));
    CHECK_EQ(words[1], 1);

    wait_for<<<2, 1, 0, first>>>(&words[2], 6, &words[3]);
    struct timespec pause = {0, 20000000};
    nanosleep(&pause, nullptr);
    CHECK_EQ(cudaStreamQuery(first), cudaErrorNotReady);
    *(volatile int *)&words[2] = 6;
    CHECK_CUDA(cudaStreamSynchronize(first));
    CHECK_CUDA(cudaStreamQuery(first));
    CHECK_EQ(words[3], 1);
    CHECK_CUDA(cudaStreamDestroy(first));
    CHECK_CUDA(cudaStreamDestroy(second));
    CHECK_CUDA(cudaFree(words));
}

__global__ void clocks(long long *out)
{
    long long before = clock64();

    __nanosleep(1000);
    long long after = clock64();
    out[threadIdx.x] = after - before;
}

int main()
{
    check_chains();
    check_lock();
    check_streams();

    long long *out = shared_array<long long>(32);
    clocks<<<1, 32>>>(out);
    CHECK_LAUNCH();
    for (int i = 0; i < 32; i++)
        CHECK(out[i] > 0);
    CHECK_CUDA(cudaFree(out));
    return 0;
}
