/* Puts, gets, atomics and waits of several types and sizes, from the host and by threads, warps and
 * blocks, each to the PE on the right and with its answer checked there. */
#include "check.h"

enum { N = 500, THREADS = 64 };

struct area { /* written by the left neighbour, but for `source` */
    double source[N];
    __half halves[N];
    double put[N], put_nbi[N], put_block[N], put_warp_nbi[N], strided[2 * N], sized[2 * N], mem[N];
    double got[N], got_nbi[N], got_block[N], got_strided[N], got_mem[N];
    __half half_put[N];
    double p, g;
    __nv_bfloat16 bfloat16_p, bfloat16_g;
    uint64_t signal[4];
    double signalled[4 * N];
    int counter, old[8];
    unsigned long long bits;
    float swapped;
    long flags[6];
    size_t found, indices[6], counted;
    int tested;
};

static __host__ __device__ double value_of(int pe, int i)
{
    return pe * 10000.0 + i;
}

/* Those of one thread, by a kernel or the host. */
static __host__ __device__ void by_one(area *a, int right, int with_signal)
{
    nvshmem_double_put(a->put, a->source, N, right);
    nvshmem_double_put_nbi(a->put_nbi, a->source, N, right);
    nvshmem_double_iput(a->strided, a->source, 2, 3, N / 3, right);
    nvshmem_put128(a->sized, a->source, N / 2, right);
    nvshmem_put16(a->sized + N, a->source, N, right);
    nvshmem_putmem(a->mem, a->source, sizeof a->source, right);
    nvshmem_half_put(a->half_put, a->halves, N, right);
    nvshmem_double_p(&a->p, a->source[7], right);
    nvshmem_bfloat16_p(&a->bfloat16_p, __float2bfloat16((float)a->source[1]), right);
    nvshmem_double_get(a->got, a->source, N, right);
    nvshmem_double_get_nbi(a->got_nbi, a->source, N, right);
    nvshmem_iget64(a->got_strided, a->source, 1, 2, N / 2, right);
    nvshmem_getmem(a->got_mem, a->source, sizeof a->source, right);
    a->g = nvshmem_double_g(&a->source[9], right);
    nvshmem_quiet();
    nvshmem_fence();
    nvshmem_double_put_signal(a->signalled, a->source, N, a->signal, 3, NVSHMEM_SIGNAL_SET, right);
    nvshmem_put64_signal(a->signalled + N, a->source, N, a->signal + 1, 4, NVSHMEM_SIGNAL_ADD, right);
    if (with_signal) {
        nvshmem_signal_wait_until(a->signal, NVSHMEM_CMP_EQ, 3);
        nvshmem_uint64_wait_until(a->signal + 1, NVSHMEM_CMP_GE, 4);
    }
}

static __host__ __device__ void atomics(area *a, int right)
{
    a->old[0] = nvshmem_int_atomic_fetch_add(&a->counter, 5, right);
    nvshmem_int_atomic_add(&a->counter, 6, right);
    nvshmem_int_atomic_inc(&a->counter, right);
    a->old[1] = nvshmem_int_atomic_fetch_inc(&a->counter, right);
    a->old[2] = nvshmem_int_atomic_compare_swap(&a->counter, 13, 100, right);
    a->old[3] = nvshmem_int_atomic_compare_swap(&a->counter, 13, 200, right);
    a->old[4] = nvshmem_int_atomic_swap(&a->counter, 50, right);
    a->old[5] = nvshmem_int_atomic_fetch(&a->counter, right);
    nvshmem_ulonglong_atomic_set(&a->bits, 0xff00, right);
    nvshmem_ulonglong_atomic_or(&a->bits, 0xf, right);
    nvshmem_ulonglong_atomic_and(&a->bits, 0xf00f, right);
    nvshmem_ulonglong_atomic_xor(&a->bits, 1, right);
    a->old[6] = (int)nvshmem_ulonglong_atomic_fetch_or(&a->bits, 0x10000, right);
    a->old[7] = (int)nvshmem_float_atomic_swap(&a->swapped, 2.5f, right);
}

static __host__ __device__ void waits(area *a, int right)
{
    int status[6] = {0, 1, 0, 0, 0, 0};
    long values[6] = {2, 2, 2, 2, 9, 9};

    nvshmemx_signal_op(a->signal + 3, 12, NVSHMEM_SIGNAL_SET, right);
    for (int i = 0; i < 4; i++)
        nvshmem_long_p(&a->flags[i], 2, right);
    nvshmem_long_wait_until_all(a->flags, 4, status, NVSHMEM_CMP_EQ, 2);
    nvshmem_long_wait_until_all_vector(a->flags, 4, status, NVSHMEM_CMP_GE, values);
    a->found = nvshmem_long_wait_until_any(a->flags, 6, status, NVSHMEM_CMP_NE, 0);
    a->counted = nvshmem_long_wait_until_some(a->flags, 6, a->indices, status, NVSHMEM_CMP_GT, 1);
    a->tested = nvshmem_long_test(a->flags + 5, NVSHMEM_CMP_EQ, 0);
    a->tested += 2 * nvshmem_long_test_all(a->flags, 6, status, NVSHMEM_CMP_EQ, 2);
    a->tested += 4 * (nvshmem_long_test_any(a->flags, 6, NULL, NVSHMEM_CMP_EQ, 77) == SIZE_MAX);
    a->tested += 8 * (int)nvshmem_long_test_some_vector(a->flags, 6, a->indices, status,
                                                        NVSHMEM_CMP_EQ, values);
    nvshmem_signal_wait_until(a->signal + 3, NVSHMEM_CMP_EQ, 12);
}

__global__ void one_thread(area *a, int right)
{
    by_one(a, right, 1);
    a->bfloat16_g = nvshmem_bfloat16_g(&a->bfloat16_g, nvshmem_my_pe());
    atomics(a, right);
    waits(a, right);
}

__global__ void together(area *a, int right)
{
    nvshmemx_double_put_block(a->put_block, a->source, N, right);
    nvshmemx_double_get_block(a->got_block, a->source, N, right);
    if (threadIdx.x < 32) {
        nvshmemx_putmem_nbi_warp(a->put_warp_nbi, a->source, sizeof a->source, right);
        nvshmemx_put64_signal_nbi_warp(a->signalled + 2 * N, a->source, N, a->signal + 2, 1,
                                       NVSHMEM_SIGNAL_ADD, right);
    }
    __syncthreads();
    nvshmemx_putmem_signal_block(a->signalled + 3 * N, a->source, sizeof a->source, a->signal + 2, 1,
                                 NVSHMEM_SIGNAL_ADD, right);
    if (threadIdx.x == 0) {
        nvshmem_signal_wait_until(a->signal + 2, NVSHMEM_CMP_EQ, 2);
        nvshmem_quiet();
    }
}

/* PE `mine` has all from `left`, and has read from `right`. */
static void check(const area *a, int left, int right, int kernels)
{
    for (int i = 0; i < N; i++) {
        const double l = value_of(left, i), r = value_of(right, i);
        CHECK(a->put[i] == l && a->put_nbi[i] == l && a->mem[i] == l && a->sized[i] == l);
        CHECK(a->strided[2 * (i / 3)] == value_of(left, i / 3 * 3) || i / 3 >= N / 3);
        CHECK(a->strided[2 * i + 1] == 0);
        CHECK(__half2float(a->half_put[i]) == (float)(left + i % 64));
        CHECK(a->got[i] == r && a->got_nbi[i] == r && a->got_mem[i] == r);
        CHECK(a->got_strided[i] == (i < N / 2 ? value_of(right, 2 * i) : 0));
        CHECK(a->signalled[i] == l && a->signalled[N + i] == l);
        if (kernels)
            CHECK(a->put_block[i] == l && a->got_block[i] == r && a->put_warp_nbi[i] == l &&
                  a->signalled[2 * N + i] == l && a->signalled[3 * N + i] == l);
    }
    for (int i = 0; i < N / 4; i++)
        CHECK(a->sized[N + i] == value_of(left, i));
    CHECK(a->sized[N + N / 4] == 0);
    CHECK(a->p == value_of(left, 7) && a->g == value_of(right, 9));
    CHECK(__bfloat162float(a->bfloat16_p) ==
          __bfloat162float(__float2bfloat16((float)value_of(left, 1))));

    const int old[8] = {0, 12, 13, 100, 100, 50, 0xf00e, 0};
    for (int i = 0; i < 8; i++)
        CHECK_EQ(a->old[i], old[i]);
    CHECK_EQ(a->counter, 50);
    CHECK_EQ(a->bits, 0x1f00e);
    CHECK(a->swapped == 2.5f);
    CHECK(a->found == 0 || a->found == 2 || a->found == 3);
    CHECK_EQ(a->counted, 3);
    CHECK_EQ(a->indices[0] + 10 * a->indices[1] + 100 * a->indices[2], 320);
    CHECK_EQ(a->tested, 1 + 4 + 8 * 3);
}

static void prepare(area *a, int mype)
{
    static area clean;

    for (int i = 0; i < N; i++) {
        clean.source[i] = value_of(mype, i);
        clean.halves[i] = __float2half((float)(mype + i % 64));
    }
    CHECK_CUDA(cudaMemcpy((void *)a, (const void *)&clean, sizeof clean, cudaMemcpyDefault));
    nvshmem_barrier_all();
}

int main(void)
{
    static area result;
    char name[NVSHMEM_MAX_NAME_LEN];
    int major = 0, minor = 0, patch = -1, level = -1;

    CHECK_EQ(nvshmemx_init_status(), NVSHMEM_STATUS_NOT_INITIALIZED);
    CHECK_EQ(nvshmem_init_thread(NVSHMEM_THREAD_MULTIPLE, &level), 0);
    CHECK_EQ(level, NVSHMEM_THREAD_MULTIPLE);
    nvshmem_query_thread(&level);
    CHECK_EQ(level, NVSHMEM_THREAD_MULTIPLE);
    CHECK_EQ(nvshmemx_init_status(), NVSHMEM_STATUS_IS_INITIALIZED);
    nvshmem_info_get_name(name);
    CHECK_HAS(name, "GSHMEM");
    nvshmem_info_get_version(&major, &minor);
    CHECK_EQ(major * 100 + minor, NVSHMEM_MAJOR_VERSION * 100 + NVSHMEM_MINOR_VERSION);
    nvshmemx_vendor_get_version_info(&major, &minor, &patch);
    CHECK_EQ(major, NVSHMEM_VENDOR_MAJOR_VERSION);

    const int mype = nvshmem_my_pe(), npes = nvshmem_n_pes();
    const int right = (mype + 1) % npes, left = (mype + npes - 1) % npes;
    area *a = (area *)nvshmem_align(4096, sizeof *a);
    CHECK(a && (uintptr_t)a % 4096 == 0);
    CHECK(nvshmem_ptr(a, mype) == a);
    CHECK(nvshmem_ptr(&major, mype) == NULL && nvshmemx_mc_ptr(NVSHMEM_TEAM_WORLD, a) == NULL);
    CHECK_EQ(nvshmemx_buffer_register(&result, sizeof result), 0);

    prepare(a, mype);
    one_thread<<<1, 1>>>(a, right);
    CHECK_LAUNCH();
    together<<<1, THREADS>>>(a, right);
    CHECK_LAUNCH();
    nvshmem_barrier_all();
    CHECK_CUDA(cudaMemcpy((void *)&result, a, sizeof result, cudaMemcpyDefault));
    check(&result, left, right, 1);
    nvshmem_barrier_all();

    prepare(a, mype);
    by_one(a, right, 1);
    atomics(a, right);
    waits(a, right);
    nvshmem_barrier_all();
    CHECK_CUDA(cudaMemcpy((void *)&result, a, sizeof result, cudaMemcpyDefault));
    check(&result, left, right, 0);

    CHECK_EQ(nvshmemx_buffer_unregister(&result), 0);
    nvshmemx_buffer_unregister_all();
    nvshmem_free(a);
    nvshmem_finalize();
    CHECK_EQ(nvshmemx_init_status(), NVSHMEM_STATUS_NOT_INITIALIZED);
    return 0;
}
