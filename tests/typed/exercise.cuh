/* What the generated tests of typed functions in kernels share: exercise.h's frame, with one
 * block of each PE in place of the PE. A failed check is counted and the kernel goes on: no
 * thread may be missing from what the others wait for. */
#ifndef GSHMEM_TESTS_EXERCISE_CUH
#define GSHMEM_TESTS_EXERCISE_CUH

#include <float.h>
#include <limits.h>
#include <stdint.h>

#include <cuda_runtime.h>
#undef __forceinline__ /* thousands of calls: what they share is compiled once */
#define __forceinline__ inline

#include "gshmem.h"
#include "check.h"
#include "../device/device.h"

enum { AREA_BYTES = 128 * 1024, SIGNALS = 64 };

/* Of kernels. */
static __device__ int me, n_pes;
static __device__ gshmem_ctx_t ctx;
static __device__ uint64_t *sig;     /* [SIGNALS], symmetric */
static __device__ uint64_t *arrived; /* symmetric: how many have come to meetings */
static __device__ uint64_t meetings;
static __device__ unsigned *failed;

/* One round: what this PE does to PE `to`, PE `from` does to it. */
static __device__ void exercise(void *area, int to, int from);

__extension__ typedef unsigned __int128 uint128;

/* Says so of the first few. */
#define FAIL(...)                                                                                  \
    do {                                                                                           \
        if (atomicAdd(failed, 1) < 20) {                                                      \
            printf("%s:%d: PE %d, thread %d: ", __FILE__, __LINE__, me, (int)threadIdx.x);         \
            printf(__VA_ARGS__);                                                                   \
            printf("\n");                                                                          \
        }                                                                                          \
    } while (0)

#undef CHECK
#undef CHECK_EQ
#undef CHECK_OK
#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition))                                                                          \
            FAIL("not true: %s", #condition);                                                      \
    } while (0)
#define CHECK_EQ(got, expected)                                                                    \
    do {                                                                                           \
        long long check_got = (long long)(got), check_expected = (long long)(expected);            \
        if (check_got != check_expected)                                                           \
            FAIL("%s is %lld, expected %lld", #got, check_got, check_expected);                    \
    } while (0)
#define CHECK_OK(call)                                                                             \
    do {                                                                                           \
        gshmem_status_t check_status = (call);                                                     \
        if (check_status)                                                                          \
            FAIL("%s: status %d", #call, (int)check_status);                                       \
    } while (0)
#define EXPECT(what, index, got, expected)                                                         \
    do {                                                                                           \
        if (!((got) == (expected)))                                                                \
            FAIL("%s: element %d is %.17g, expected %.17g", what, (int)(index), (double)(got),     \
                 (double)(expected));                                                              \
    } while (0)

/* All threads' operations are complete, and all PEs have come. It uses signals alone. */
static __device__ __noinline__ void sync_all(void)
{
    __syncthreads();
    if (threadIdx.x == 0) {
        CHECK_OK(gshmem_quiet());
        CHECK_OK(gshmem_ctx_quiet(ctx));
        meetings++;
        for (int pe = 0; pe < n_pes; pe++)
            CHECK_OK(gshmem_signal_add(arrived, 1, pe));
        gshmem_signal_wait_until(arrived, GSHMEM_CMP_GE, meetings * (uint64_t)n_pes);
    }
    __syncthreads();
}

static __global__ void exercise_begin(int my_pe, int pes, gshmem_ctx_t my_ctx, uint64_t *signals,
                                      uint64_t *meeting, unsigned *failures)
{
    me = my_pe;
    n_pes = pes;
    ctx = my_ctx;
    sig = signals;
    arrived = meeting;
    failed = failures;
}

static __global__ void exercise_kernel(void *area, int to, int from)
{
    exercise(area, to, from);
}

/* By a block of so many threads; returns what main does. */
static int exercise_run(int threads)
{
    gshmem_ctx_t own;

    if (gshmem_init() || gshmem_ctx_create(0, &own))
        return 1;
    int pe = gshmem_my_pe(), pes = gshmem_n_pes(), next = (pe + 1) % pes;
    int before = (pe + pes - 1) % pes;
    uint64_t *signals = (uint64_t *)gshmem_calloc(SIGNALS + 1, sizeof *signals);
    void *heap_area = gshmem_malloc(AREA_BYTES);
    unsigned *failures = shared_array<unsigned>(1);
    if (!signals || !heap_area)
        return 1;

    exercise_begin<<<1, 1>>>(pe, pes, own, signals, signals + SIGNALS, failures);
    exercise_kernel<<<1, threads>>>(heap_area, next, before);
    exercise_kernel<<<1, threads>>>(heap_area, pe, pe);
#ifdef GSHMEM_HOST_DEVICE /* elsewhere a program's data is not symmetric */
    static char data_area[AREA_BYTES] __attribute__((aligned(64)));
    exercise_kernel<<<1, threads>>>(data_area, next, before);
#endif
    CHECK_LAUNCH();

    int result = *failures != 0;
    CHECK_CUDA(cudaFree(failures));
    gshmem_ctx_destroy(own);
    gshmem_free(heap_area);
    gshmem_free(signals);
    gshmem_finalize();
    return result;
}

#endif
