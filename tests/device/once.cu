/* What one thread does for all of a block, or of some lanes of a warp: how GSHMEM's collectives of
 * blocks are done on the host device. Not CUDA, so nvcc does not compile this. */
#include "device.h"

enum { TIMES = 20, BLOCKS = 5 };

/* What the threads of a block bring and get. */
struct desk {
    int brought[1024];
    int *others; /* counts blocks that are at work */
    int calls, sum;
    int wait_for; /* so many of them, then */
};

static int add_up(void *argument)
{
    struct desk *d = (struct desk *)argument;

    d->calls++;
    d->sum = 0;
    for (int i = 0; i < 1024; i++)
        d->sum += d->brought[i];
    if (d->wait_for) {
        atomicAdd(d->others, 1);
        while (atomicAdd(d->others, 0) < d->wait_for)
            ;
    }
    return d->sum % 1000;
}

static __device__ int once(struct desk *d)
{
    return gshmem_host_once_block(add_up, d, __FILE__, __LINE__);
}

/* Each brings its number and the turn; who comes last is not always the same one. */
__global__ void turns(struct desk *desks, int *wrong)
{
    struct desk *d = &desks[blockIdx.x];
    int n = (int)blockDim.x, i = (int)threadIdx.x;

    for (int turn = 1; turn <= TIMES; turn++) {
        if ((i + turn) % 7 == 0)
            __nanosleep(1);
        d->brought[i] = i * turn;
        int sum = n * (n - 1) / 2 * turn, got = once(d);
        if (got != sum % 1000 || d->sum != sum || d->calls != turn)
            atomicAdd(wrong, 1);
        __syncthreads();
    }
}

static void check_turns(int threads)
{
    struct desk *desks = shared_array<struct desk>(BLOCKS);
    int *wrong = shared_array<int>(1);

    turns<<<BLOCKS, threads>>>(desks, wrong);
    CHECK_LAUNCH();
    CHECK_EQ(*wrong, 0);
    CHECK_CUDA(cudaFree(desks));
    CHECK_CUDA(cudaFree(wrong));
}

/* Some threads end instead: before the others come, and after all of them have. */
__global__ void leave(struct desk *d, int *wrong)
{
    int i = (int)threadIdx.x;

    if (i % 4 == 1)
        return;
    if (i % 4 == 2) {
        for (int turn = 0; turn < 10; turn++)
            __nanosleep(1);
        return;
    }
    for (int turn = 1; turn <= 2; turn++) {
        d->brought[i] = turn;
        if (once(d) != (int)blockDim.x / 2 * turn || d->calls != turn)
            atomicAdd(wrong, 1);
        __syncthreads();
    }
}

/* The works of several blocks wait for each other. */
__global__ void wait(struct desk *desks, int *others, int *wrong)
{
    struct desk *d = &desks[blockIdx.x];

    if (threadIdx.x == 0) {
        d->others = others;
        d->wait_for = (int)gridDim.x;
    }
    d->brought[threadIdx.x] = 1;
    if (once(d) != (int)blockDim.x)
        atomicAdd(wrong, 1);
}

static void check_blocks()
{
    struct desk *desks = shared_array<struct desk>(BLOCKS);
    int *count = shared_array<int>(2);

    leave<<<1, 200>>>(desks, &count[0]);
    CHECK_LAUNCH();
    memset((void *)desks, 0, BLOCKS * sizeof *desks);
    wait<<<BLOCKS, 96>>>(desks, &count[1], &count[0]);
    CHECK_LAUNCH();
    CHECK_EQ(count[0], 0);
    CHECK_EQ(count[1], BLOCKS);
    CHECK_CUDA(cudaFree(desks));
    CHECK_CUDA(cudaFree(count));
}

/* ---- Lanes of a warp ---- */

/* Groups of lanes of one warp at the same time; one lane of each has ended. */
__global__ void lanes(struct desk *desks, int *wrong)
{
    int lane = (int)threadIdx.x, group = lane % 4;
    struct desk *d = &desks[group];
    unsigned mask = 0x11111111u << group;

    if (lane / 4 == group) {
        for (int turn = 0; turn < lane % 3 * 5; turn++)
            __nanosleep(1);
        return;
    }
    for (int turn = 1; turn <= TIMES; turn++) {
        if ((lane + turn) % 5 == 0)
            __nanosleep(1);
        d->brought[lane] = turn;
        int got = gshmem_host_once_warp(mask, add_up, d, __FILE__, __LINE__);
        if (got != 7 * turn || d->calls != turn)
            atomicAdd(wrong, 1);
        __syncwarp(mask);
    }
}

static void check_lanes()
{
    struct desk *desks = shared_array<struct desk>(4);
    int *wrong = shared_array<int>(1);

    lanes<<<1, 32>>>(desks, wrong);
    CHECK_LAUNCH();
    CHECK_EQ(*wrong, 0);
    CHECK_CUDA(cudaFree(desks));
    CHECK_CUDA(cudaFree(wrong));
}

/* ---- A work that fails ends its launch, and nothing else ---- */

static int fail(void *)
{
    __trap();
    return 0;
}

__global__ void fail_in_block()
{
    gshmem_host_once_block(fail, nullptr, __FILE__, __LINE__);
}

__global__ void fail_in_warp()
{
    gshmem_host_once_warp(0xffffffff, fail, nullptr, __FILE__, __LINE__);
}

static void check_failure(void (*kernel)(void))
{
    kernel<<<1, 64>>>();
    CHECK_CUDA_FAILS(cudaDeviceSynchronize(), cudaErrorLaunchFailure);
    CHECK_CUDA(cudaDeviceReset());
}

int main(void)
{
    static struct desk mine;

    mine.brought[3] = 1234;
    CHECK_EQ(gshmem_host_once_block(add_up, &mine, __FILE__, __LINE__), 234);
    CHECK_EQ(gshmem_host_once_warp(1, add_up, &mine, __FILE__, __LINE__), 234);
    for (int threads : {1, 2, 33, 100, 1024})
        check_turns(threads);
    check_blocks();
    check_lanes();
    check_failure(fail_in_block);
    check_failure(fail_in_warp);
    check_turns(64);
    return 0;
}
