/* Two fences of one channel that overlap, and in between a put in another channel, of which the second fence's thread
 * knows: what that thread sends behind its fence comes behind that put.
 *
 *  - A fences in channel 0, and stops between reading the tickets and taking a position.
 *  - C puts in channel 1, behind so many other puts that it is long on its way.
 *  - B, which has heard of C's put, fences in channel 0, too, and stops there while A goes on; then B signals.
 *
 * The host device stops them, at the fence of memory that stands there. */
#ifndef __NVCC__
#include <cuda_runtime.h>

static __device__ void stop_here();
#define __threadfence_system() stop_here()
#include <gshmem.h>
#undef __threadfence_system
#endif

#include "kernel.h"

enum { A = 0, B = 4, C = 1, BLOCKS = 5 }; /* of 4 channels A and B have one in common */
enum { ROUNDS = 20, BACKLOG = 300 };
#define BEFORE (256u << 10) /* bytes */
#define DATA   (UINT64_C(8) << 20)

struct objects {
    char *before, *data; /* symmetric */
    uint64_t *flag;      /* symmetric */
    char *source;        /* as much as `data` */
    volatile int *step;
};

static __device__ void await(volatile int *step, int least)
{
    while (*step < least)
        __nanosleep(100);
}

#ifndef __NVCC__
static volatile int *step_here;
static bool stops[BLOCKS]; /* at its next fence */

static __device__ void stop_here()
{
    __sync_synchronize();
    if (!gshmem_host_in_kernel() || !stops[blockIdx.x])
        return;
    stops[blockIdx.x] = false;
    *step_here = blockIdx.x == A ? 2 : 4;
    await(step_here, blockIdx.x == A ? 4 : 5);
}
#endif

__global__ void overlap(struct objects o, int round, struct found *found)
{
    if (blockIdx.x == C) {
        for (int i = 0; i < BACKLOG; i++)
            EXPECT(found, gshmem_putmem_nbi(o.before, o.source, BEFORE, 1), GSHMEM_OK);
        *o.step = 1;
        await(o.step, 2);
        EXPECT(found, gshmem_putmem_nbi(o.data, o.source, DATA, 1), GSHMEM_OK);
        *o.step = 3;
    } else if (blockIdx.x == A) {
        await(o.step, 1);
        EXPECT(found, gshmem_fence(), GSHMEM_OK);
        *o.step = 5;
    } else if (blockIdx.x == B) {
        await(o.step, 3);
        EXPECT(found, gshmem_fence(), GSHMEM_OK);
        EXPECT(found, gshmem_signal_set(o.flag, (uint64_t)round, 1), GSHMEM_OK);
    }
}

static void play(const struct objects *o, int round, struct found *found)
{
    memset(o->source, round, DATA);
    *o->step = 0;
#ifndef __NVCC__
    stops[A] = stops[B] = true;
#endif
    overlap<<<BLOCKS, 1>>>(*o, round, found);
    CHECK_FOUND(found);
    CHECK_OK(gshmem_quiet());
}

int main()
{
    setenv("GSHMEM_CHANNELS", "4", 1);
    CHECK_OK(gshmem_init());
    struct found *found = shared_array<struct found>(1);
    struct objects o = {symmetric_array<char>(BEFORE), symmetric_array<char>(DATA), symmetric_array<uint64_t>(1),
                        shared_array<char>(DATA), shared_array<int>(1)};

#ifndef __NVCC__
    step_here = o.step;
#endif
    for (int round = 1; round <= ROUNDS; round++) {
        CHECK_OK(gshmem_barrier_all());
        if (gshmem_my_pe() == 0)
            play(&o, round, found);
        if (gshmem_my_pe() == 1) {
            CHECK_EQ(gshmem_signal_wait_until(o.flag, GSHMEM_CMP_EQ, (uint64_t)round), (uint64_t)round);
            CHECK_EQ(((volatile char *)o.data)[DATA - 1], round);
        }
    }
    CHECK_OK(gshmem_barrier_all());
    CHECK_OK(gshmem_free(o.before));
    CHECK_OK(gshmem_free(o.data));
    CHECK_OK(gshmem_free(o.flag));
    CHECK_OK(gshmem_finalize());
    return 0;
}
