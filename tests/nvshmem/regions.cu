/* Regions: what calls of the host and of blocks return, which of them run, and that operations within them, of all kinds,
 * arrive: after a quiet, and without one after the stop. */
#include "check.h"

enum { N = 200, BLOCKS = 3, THREADS = 64, UNKNOWN = 2 };

struct area {
    int source[N], put[N], got[N], stopped[N];
    int by_block[BLOCKS][N], block_got[BLOCKS][N];
    uint64_t sum, flag;
    int wrong;
};

static __host__ __device__ int value_of(int pe, int i)
{
    return pe * 1000 + i;
}

static void runs(uint32_t hints, int expected)
{
    int active = -1;

    CHECK_EQ(nvshmemx_region_is_active(hints, &active), NVSHMEMX_SUCCESS);
    CHECK_EQ(active, expected);
}

static void test_refusals(void)
{
    nvshmemx_region_attrs_t attrs = NVSHMEMX_REGION_ATTRS_INITIALIZER;
    nvshmemx_region_handle_t region = 0, second = 0;
    int active;

    CHECK_EQ(nvshmemx_region_stop(1), NVSHMEMX_ERROR_INVALID_VALUE);
    CHECK_EQ(nvshmemx_region_start(NULL, &attrs), NVSHMEMX_ERROR_INVALID_VALUE);
    attrs.hints = UNKNOWN;
    CHECK_EQ(nvshmemx_region_start(&region, &attrs), NVSHMEMX_ERROR_INVALID_VALUE);
    CHECK_EQ(nvshmemx_region_is_active(UNKNOWN, &active), NVSHMEMX_ERROR_INVALID_VALUE);
    CHECK_EQ(nvshmemx_region_is_active(NVSHMEMX_REGION_HINT_NONE, NULL), NVSHMEMX_ERROR_INVALID_VALUE);
    runs(NVSHMEMX_REGION_HINT_NONE, 0);
    CHECK_EQ(nvshmemx_region_start(&region, NULL), NVSHMEMX_SUCCESS);
    runs(NVSHMEMX_REGION_HINT_NONE, 1);
    runs(NVSHMEMX_REGION_HINT_BATCH_RMA, 0);
    CHECK_EQ(nvshmemx_region_start(&second, NULL), NVSHMEMX_ERROR_INVALID_VALUE);
    CHECK_EQ(nvshmemx_region_stop(region + 1), NVSHMEMX_ERROR_INVALID_VALUE);
    runs(NVSHMEMX_REGION_HINT_NONE, 1);
    CHECK_EQ(nvshmemx_region_stop(region), NVSHMEMX_SUCCESS);
    CHECK_EQ(nvshmemx_region_stop(region), NVSHMEMX_ERROR_INVALID_VALUE);
    runs(NVSHMEMX_REGION_HINT_NONE, 0);
}

static void test_host(area *a, int left, int right)
{
    nvshmemx_region_attrs_t attrs = NVSHMEMX_REGION_ATTRS_INITIALIZER;
    nvshmemx_region_handle_t region = 0;

    attrs.hints = NVSHMEMX_REGION_HINT_BATCH_RMA;
    CHECK_EQ(nvshmemx_region_start(&region, &attrs), NVSHMEMX_SUCCESS);
    runs(NVSHMEMX_REGION_HINT_BATCH_RMA, 1);
    for (int i = 0; i < N; i++)
        nvshmem_int_put_nbi(&a->put[i], &a->source[i], 1, right);
    nvshmem_fence();
    nvshmem_int_get_nbi(a->got, a->source, N, right);
    CHECK_EQ(nvshmem_int_g(&a->source[3], right), value_of(right, 3)); /* which waits */
    for (int i = 0; i < N; i++)
        nvshmem_uint64_atomic_add(&a->sum, 1, right);
    nvshmem_quiet();
    CHECK_EQ(a->got[N - 1], value_of(right, N - 1));
    CHECK_EQ(nvshmemx_region_stop(region), NVSHMEMX_SUCCESS);
    nvshmem_barrier_all();
    for (int i = 0; i < N; i++)
        CHECK_EQ(a->put[i], value_of(left, i));
    CHECK_EQ(a->sum, N);
    nvshmem_barrier_all();

    /* The stop sends them: a target that waits sees them although this PE waits for nothing. */
    CHECK_EQ(nvshmemx_region_start(&region, &attrs), NVSHMEMX_SUCCESS);
    nvshmem_int_put_nbi(a->stopped, a->source, N / 2, right);
    nvshmem_putmem_signal_nbi(a->stopped + N / 2, a->source + N / 2, sizeof a->source / 2, &a->flag, 1,
                              NVSHMEM_SIGNAL_SET, right);
    CHECK_EQ(nvshmemx_region_stop(region), NVSHMEMX_SUCCESS);
    nvshmem_signal_wait_until(&a->flag, NVSHMEM_CMP_EQ, 1);
    CHECK_EQ(a->stopped[N - 1], value_of(left, N - 1));
    nvshmem_barrier_all();
}

__device__ void expect(area *a, int got, int expected, int where)
{
    if (got != expected)
        atomicCAS(&a->wrong, 0, where);
}

__device__ void expect_runs(area *a, uint32_t hints, int expected, int where)
{
    int active = -1;

    expect(a, nvshmemx_region_is_active(hints, &active), NVSHMEMX_SUCCESS, where);
    expect(a, active, expected, where);
}

__global__ void refused(area *a)
{
    nvshmemx_region_attrs_t attrs = NVSHMEMX_REGION_ATTRS_INITIALIZER;
    nvshmemx_region_handle_t region = 0, second = 0;
    int active;

    expect_runs(a, NVSHMEMX_REGION_HINT_NONE, 0, 1);
    expect(a, nvshmemx_region_stop_block(7), NVSHMEMX_ERROR_INVALID_VALUE, 2);
    expect(a, nvshmemx_region_start_block(NULL, NULL), NVSHMEMX_ERROR_INVALID_VALUE, 3);
    attrs.hints = UNKNOWN;
    expect(a, nvshmemx_region_start_block(&region, &attrs), NVSHMEMX_ERROR_INVALID_VALUE, 4);
    expect(a, nvshmemx_region_is_active(UNKNOWN, &active), NVSHMEMX_ERROR_INVALID_VALUE, 5);
    expect(a, nvshmemx_region_is_active(NVSHMEMX_REGION_HINT_NONE, NULL), NVSHMEMX_ERROR_INVALID_VALUE, 6);
    expect(a, nvshmemx_region_start_block(&region, NULL), NVSHMEMX_SUCCESS, 7);
    expect_runs(a, NVSHMEMX_REGION_HINT_NONE, 1, 8);
    expect_runs(a, NVSHMEMX_REGION_HINT_BATCH_RMA, 0, 9);
    expect(a, nvshmemx_region_start_block(&second, NULL), NVSHMEMX_ERROR_INVALID_VALUE, 10);
    expect(a, nvshmemx_region_stop_block(region + 1), NVSHMEMX_ERROR_INVALID_VALUE, 11);
    expect(a, nvshmemx_region_stop_block(region), NVSHMEMX_SUCCESS, 12);
    expect(a, nvshmemx_region_stop_block(region), NVSHMEMX_ERROR_INVALID_VALUE, 13);
    expect_runs(a, NVSHMEMX_REGION_HINT_NONE, 0, 14);
}

__global__ void by_blocks(area *a, int right)
{
    nvshmemx_region_attrs_t attrs = NVSHMEMX_REGION_ATTRS_INITIALIZER;
    nvshmemx_region_handle_t region = 0;
    const int block = (int)blockIdx.x;

    attrs.hints = NVSHMEMX_REGION_HINT_BATCH_RMA;
    expect(a, nvshmemx_region_start_block(&region, &attrs), NVSHMEMX_SUCCESS, 20);
    expect_runs(a, NVSHMEMX_REGION_HINT_BATCH_RMA, 1, 21);
    for (int i = (int)threadIdx.x; i < N; i += (int)blockDim.x)
        nvshmem_int_put_nbi(&a->by_block[block][i], &a->source[i], 1, right);
    nvshmemx_int_get_nbi_block(a->block_got[block], a->source, N, right);
    expect(a, nvshmem_int_g(&a->source[5], right), value_of(right, 5), 22);
    nvshmem_quiet();
    __syncthreads();
    expect(a, a->block_got[block][N - 1], value_of(right, N - 1), 23);
    expect(a, nvshmemx_region_stop_block(region), NVSHMEMX_SUCCESS, 24);
    expect_runs(a, NVSHMEMX_REGION_HINT_NONE, 0, 25);
    nvshmem_quiet();
}

int main(void)
{
    nvshmem_init();
    const int n = nvshmem_n_pes(), me = nvshmem_my_pe(), left = (me + n - 1) % n, right = (me + 1) % n;
    area *a = (area *)nvshmem_calloc(1, sizeof *a);

    CHECK(a);
    for (int i = 0; i < N; i++)
        a->source[i] = value_of(me, i);
    nvshmem_barrier_all();
    test_refusals();
    test_host(a, left, right);
    refused<<<2, THREADS>>>(a);
    CHECK_CUDA(cudaDeviceSynchronize());
    CHECK_EQ(a->wrong, 0);
    for (int round = 0; round < 2; round++) {
        by_blocks<<<BLOCKS, THREADS>>>(a, right);
        CHECK_CUDA(cudaDeviceSynchronize());
        CHECK_EQ(a->wrong, 0);
    }
    nvshmem_barrier_all();
    for (int i = 0; i < BLOCKS * N; i++)
        CHECK_EQ(a->by_block[i / N][i % N], value_of(left, i % N));
    nvshmem_barrier_all();

    nvshmemx_region_handle_t region = 0; /* one that finalize ends */
    CHECK_EQ(nvshmemx_region_start(&region, NULL), NVSHMEMX_SUCCESS);
    nvshmem_free(a);
    nvshmem_finalize();
    nvshmem_init();
    runs(NVSHMEMX_REGION_HINT_NONE, 0);
    CHECK_EQ(nvshmemx_region_stop(region), NVSHMEMX_ERROR_INVALID_VALUE);
    nvshmem_finalize();
    return 0;
}
