/* Where what NICs write to a GPU has to be flushed (GSHMEM_CUDA_FLUSH=on) all that waits in a kernel asks the proxy for
 * that when it has seen what it waits for, and not before; and nothing asks where it need not be.
 *
 *     flush on|off */
#include <string.h>

#include "kernel.h"

/* Commands that have been written so far, by the one block. */
__device__ uint64_t written(void)
{
    return gshmem_device_load(gshmem_device_here.ctx.channel[0].ring.ticket);
}

#define ASKS(times, call)                                                                          \
    do {                                                                                           \
        const uint64_t before = written();                                                         \
        EXPECT(found, call, 1);                                                                    \
        EXPECT(found, written() - before, on ? (times) : 0);                                       \
    } while (0)

/* All of the variables are 1, and the last is 0. */
__global__ void wait(uint64_t *v, int on, struct found *found)
{
    const uint64_t values[] = {1, 1, 1};
    size_t indices[4];

    ASKS(1, gshmem_uint64_wait_until(v, GSHMEM_CMP_EQ, 1) == GSHMEM_OK);
    ASKS(1, gshmem_signal_wait_until(v, GSHMEM_CMP_GE, 1));
    ASKS(1, gshmem_uint64_wait_until_all(v, 3, NULL, GSHMEM_CMP_EQ, 1) == GSHMEM_OK);
    ASKS(1, gshmem_uint64_wait_until_all_vector(v, 3, NULL, GSHMEM_CMP_EQ, values) == GSHMEM_OK);
    ASKS(1, gshmem_uint64_wait_until_any(v, 4, NULL, GSHMEM_CMP_EQ, 1) < 3);
    ASKS(1, gshmem_uint64_wait_until_some(v, 4, indices, NULL, GSHMEM_CMP_EQ, 1) == 3);
    ASKS(1, gshmem_uint64_test(v, GSHMEM_CMP_EQ, 1));
    ASKS(1, gshmem_uint64_test_all(v, 3, NULL, GSHMEM_CMP_EQ, 1));
    ASKS(1, gshmem_uint64_test_any(v, 4, NULL, GSHMEM_CMP_EQ, 0) == 3);
    ASKS(1, gshmem_uint64_test_some(v, 4, indices, NULL, GSHMEM_CMP_EQ, 1) == 3);
    ASKS(1, gshmem_signal_fetch(v));
    ASKS(0, !gshmem_uint64_test(v, GSHMEM_CMP_EQ, 2));
    ASKS(0, !gshmem_uint64_test_all(v, 4, NULL, GSHMEM_CMP_EQ, 1));
    ASKS(0, gshmem_uint64_test_any(v, 4, NULL, GSHMEM_CMP_EQ, 2) == SIZE_MAX);
    ASKS(0, !gshmem_uint64_test_some(v, 4, indices, NULL, GSHMEM_CMP_EQ, 2));
    ASKS(0, gshmem_fence() == GSHMEM_OK);
}

/* All threads have met others when one has asked. */
__global__ void meet(int on, struct found *found)
{
    const uint64_t before = written();

    __syncthreads();
    EXPECT(found, gshmem_barrier_all_block(), GSHMEM_OK);
    EXPECT(found, written() - before, on);
}

int main(int argc, char **argv)
{
    CHECK_EQ(argc, 2);
    const int on = strcmp(argv[1], "on") == 0;

    CHECK_OK(gshmem_init());
    struct found *found = shared_array<struct found>(1);
    uint64_t *v = symmetric_array<uint64_t>(4);
    const uint64_t values[] = {1, 1, 1, 0};

    copy_in(v, values, 4);
    CHECK_OK(gshmem_barrier_all());
    wait<<<1, 1>>>(v, on, found);
    CHECK_FOUND(found);
    meet<<<1, 32>>>(on && gshmem_n_pes() > 1, found);
    CHECK_FOUND(found);
    CHECK_OK(gshmem_finalize());
    return 0;
}
