/* A thread that computes with atomic operations, for long, while the others of its block wait for it: its worker
 * neither sleeps meanwhile nor asks the system all the time whether somebody else wants the CPU. The program's own
 * functions count that, on the worker's thread. */
#include <sched.h>
#include <time.h>

#include "kernel.h"

enum { THREADS = 64, ATOMICS = 1200000, BETWEEN_YIELDS = 24 };

static __thread long sleeps, yields;

extern "C" int nanosleep(const struct timespec *time, struct timespec *left)
{
    sleeps++;
    return clock_nanosleep(CLOCK_MONOTONIC, 0, time, left);
}

extern "C" int sched_yield(void)
{
    yields++;
    return 0;
}

struct counted {
    long sleeps, yields;
    unsigned sum;
};

/* The host device leaves out turns of a thread that waits so. */
__device__ void wait_to_be_left_out(const uint64_t *done)
{
    struct gshmem_kernel_wait w = {};

    gshmem_kernel_wait_is_for(&w, GSHMEM_SHOWN_VARIABLE, done);
    while (gshmem_load_acquire(done) == 0)
        gshmem_kernel_wait_word(&w, gshmem_device_here.ctx.job->failure, done, 0);
    gshmem_kernel_waited();
}

__global__ void compute(uint64_t *done, struct counted *c, bool left_out)
{
    if (threadIdx.x > 0 && left_out) {
        wait_to_be_left_out(done);
        return;
    }
    if (threadIdx.x > 0) {
        gshmem_signal_wait_until(done, GSHMEM_CMP_EQ, 1);
        return;
    }
    c->sleeps = -sleeps;
    c->yields = -yields;
    for (int i = 0; i < ATOMICS; i++)
        atomicAdd(&c->sum, 1);
    c->sleeps += sleeps;
    c->yields += yields;
    gshmem_store_release(done, 1);
}

static void run(bool left_out)
{
    struct counted c = {0, 0, 0};
    uint64_t *done = (uint64_t *)gshmem_calloc(1, sizeof *done);

    CHECK(done);
    compute<<<1, THREADS>>>(done, &c, left_out);
    CHECK(cudaDeviceSynchronize() == cudaSuccess);
    CHECK_EQ(c.sum, (unsigned)ATOMICS);
    CHECK_EQ(c.sleeps, 0);
    if (left_out)
        CHECK(c.yields < ATOMICS / BETWEEN_YIELDS / 100);
    CHECK_OK(gshmem_free(done));
}

int main(void)
{
    CHECK_OK(gshmem_init());
    run(false);
    run(true);
    return gshmem_finalize();
}
