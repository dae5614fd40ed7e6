/* Atomics on half, float and double: by all PEs at once on one, by kernels and by the host; old and new
 * values; neighbours keep theirs. */
#include "check.h"

enum { BLOCKS = 4, THREADS = 8, EACH = 3 };

struct numbers {
    __half half[5]; /* the one in the middle, and the one before the last, of two words */
    float real[3];
    double large[3];
};

static __host__ __device__ int add_all(numbers *a, int pe)
{
    int wrong = 0;

    for (int i = 0; i < EACH; i++) {
        nvshmemx_half_atomic_add(&a->half[2], __float2half_rn(1), pe);
        wrong += __half2float(nvshmemx_half_atomic_fetch_add(&a->half[3], __float2half_rn(2), pe)) < 0;
        nvshmemx_float_atomic_add(&a->real[1], 0.5f, pe);
        wrong += nvshmemx_float_atomic_fetch_add(&a->real[1], 0.25f, pe) < 0;
        nvshmemx_double_atomic_add(&a->large[1], 0.5, pe);
        wrong += nvshmemx_double_atomic_fetch_add(&a->large[1], 0.25, pe) < 0;
    }
    return wrong;
}

__global__ void add_by_kernel(numbers *a, int pe, int *wrong)
{
    const int mine = add_all(a, pe);

    if (mine)
        atomicAdd(wrong, mine);
}

/* One after the other, on an object that nobody else uses. */
static __host__ __device__ int one_by_one(__half *at, int pe)
{
    int wrong = 0;

    nvshmem_half_atomic_set(at, __float2half_rn(1.5f), pe);
    nvshmem_quiet();
    wrong += __half2float(nvshmem_half_atomic_fetch(at, pe)) != 1.5f;
    wrong += __half2float(nvshmem_half_atomic_swap(at, __float2half_rn(-0.25f), pe)) != 1.5f;
    wrong += __half2float(nvshmemx_half_atomic_fetch_add(at, __float2half_rn(2048), pe)) != -0.25f;
    nvshmemx_half_atomic_add(at, __float2half_rn(0.5f), pe); /* which is lost in rounding */
    nvshmem_quiet();
    wrong += __half2float(nvshmem_half_atomic_fetch(at, pe)) != 2048;
    nvshmemx_half_atomic_add(at, __float2half_rn(60000), pe);
    nvshmemx_half_atomic_add(at, __float2half_rn(60000), pe);
    nvshmem_quiet();
    wrong += !(__half2float(nvshmem_half_atomic_fetch(at, pe)) > 65504);
    return wrong;
}

__global__ void one_by_kernel(__half *at, int pe, int *wrong)
{
    *wrong += one_by_one(at, pe);
}

int main(void)
{
    nvshmem_init();
    const int n = nvshmem_n_pes(), me = nvshmem_my_pe(), right = (me + 1) % n;
    numbers *a = (numbers *)nvshmem_malloc(sizeof *a);
    __half *alone = (__half *)nvshmem_calloc(4, sizeof *alone);
    int *wrong;

    CHECK_CUDA(cudaMallocManaged(&wrong, sizeof *wrong));
    *wrong = 0;
    for (int i = 0; i < 5; i++)
        a->half[i] = __float2half_rn(i == 2 || i == 3 ? 0 : 100 + i);
    for (int i = 0; i < 3; i++)
        a->real[i] = a->large[i] = i == 1 ? 0 : 100 + i;
    nvshmem_barrier_all();
    add_by_kernel<<<BLOCKS, THREADS>>>(a, 0, wrong);
    *wrong += add_all(a, 0);
    CHECK_CUDA(cudaDeviceSynchronize());
    CHECK_EQ(*wrong, 0);
    nvshmem_barrier_all();
    if (me == 0) {
        const int calls = n * EACH * (BLOCKS * THREADS + 1);
        CHECK_EQ(__half2float(a->half[2]), calls);
        CHECK_EQ(__half2float(a->half[3]), 2 * calls);
        CHECK(a->real[1] == 0.75f * (float)calls);
        CHECK(a->large[1] == 0.75 * calls);
    }
    for (int i = 0; i < 5; i++)
        CHECK(i == 2 || i == 3 || __half2float(a->half[i]) == (float)(100 + i));
    CHECK(a->real[0] == 100 && a->real[2] == 102 && a->large[0] == 100 && a->large[2] == 102);

    one_by_kernel<<<1, 1>>>(alone + 1, right, wrong);
    CHECK_CUDA(cudaDeviceSynchronize());
    CHECK_EQ(*wrong, 0);
    CHECK_EQ(one_by_one(alone + 2, right), 0);
    nvshmem_barrier_all();
    CHECK(__half2float(alone[0]) == 0 && __half2float(alone[3]) == 0);
    CHECK(__half2float(alone[1]) > 65504 && __half2float(alone[2]) > 65504);
    CHECK_CUDA(cudaFree(wrong));
    nvshmem_free(alone);
    nvshmem_free(a);
    nvshmem_finalize();
    return 0;
}
