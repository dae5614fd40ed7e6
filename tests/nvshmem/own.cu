/* Operations of a PE on itself in memory of its own that is not symmetric, as programs of NVIDIA's make them
 * with what cudaMalloc gave them: by the host, on streams and in kernels. */
#include "check.h"

enum { N = 300, BIG = 100000 };

struct words {
    int value, old, counter, pair[2], got[2];
    long total;
    uint64_t signal;
};

__global__ void by_kernel(int *to, int *from, words *w, int mype)
{
    nvshmemx_int_put_block(to, from, N, mype);
    nvshmemx_int_get_block(to + N, from, N, mype);
    if (threadIdx.x)
        return;
    nvshmem_int_p(&w->value, 7, mype);
    w->old = nvshmem_int_g(&w->value, mype);
    w->counter = nvshmem_int_atomic_fetch_add(&w->value, 3, mype);
    nvshmem_long_atomic_add(&w->total, 40, mype);
    nvshmem_long_atomic_inc(&w->total, mype);
    nvshmem_int_put_signal(w->pair, from, 2, &w->signal, 1, NVSHMEM_SIGNAL_SET, mype);
    nvshmemx_signal_op(&w->signal, 4, NVSHMEM_SIGNAL_ADD, mype);
    nvshmem_int_iget(w->got, from, 1, 5, 2, mype);
    nvshmem_quiet();
}

/* The same by the CPU, which sees such memory on the host device. */
static void by_host(int *to, int *from, words *w, int mype)
{
    nvshmem_int_put(to, from, N, mype);
    nvshmem_int_get_nbi(to + N, from, N, mype);
    nvshmem_int_p(&w->value, 7, mype);
    w->old = nvshmem_int_g(&w->value, mype);
    w->counter = nvshmem_int_atomic_fetch_add(&w->value, 3, mype);
    nvshmem_long_atomic_add(&w->total, 40, mype);
    nvshmem_long_atomic_inc(&w->total, mype);
    nvshmem_int_put_signal(w->pair, from, 2, &w->signal, 1, NVSHMEM_SIGNAL_SET, mype);
    nvshmemx_signal_op(&w->signal, 4, NVSHMEM_SIGNAL_ADD, mype);
    nvshmem_int_iget(w->got, from, 1, 5, 2, mype);
    nvshmem_quiet();
}

static void check(const int *to, const words *w)
{
    for (int i = 0; i < 2 * N; i++)
        CHECK_EQ(to[i], 1000 + i % N);
    CHECK_EQ(w->old, 7);
    CHECK_EQ(w->counter, 7);
    CHECK_EQ(w->value, 10);
    CHECK_EQ(w->total, 41);
    CHECK_EQ(w->signal, 5);
    CHECK_EQ(w->pair[1], 1001);
    CHECK_EQ(w->got[0], 1000);
    CHECK_EQ(w->got[1], 1005);
}

int main()
{
    int *to, *from, *big;
    words *w;

    nvshmem_init();
    const int mype = nvshmem_my_pe();
    CHECK_CUDA(cudaMallocManaged(&to, 2 * N * sizeof *to));
    CHECK_CUDA(cudaMallocManaged(&from, N * sizeof *from));
    CHECK_CUDA(cudaMallocManaged(&w, sizeof *w));
    CHECK_CUDA(cudaMalloc(&big, 2 * BIG * sizeof *big));
    for (int i = 0; i < N; i++)
        from[i] = 1000 + i;

    memset(to, 0, 2 * N * sizeof *to);
    memset(w, 0, sizeof *w);
    by_kernel<<<1, 64>>>(to, from, w, mype);
    CHECK_LAUNCH();
    check(to, w);
#ifdef GSHMEM_HOST_DEVICE /* managed memory is neither the GPU's nor the CPU's for host calls */
    memset(to, 0, 2 * N * sizeof *to);
    memset(w, 0, sizeof *w);
    by_host(to, from, w, mype);
    check(to, w);
#else
    (void)by_host;
#endif

    /* A copy in the order of a stream, between what kernels alone see. */
    CHECK_CUDA(cudaMemset(big, 1, BIG * sizeof *big));
    nvshmemx_int_put_on_stream(big + BIG, big, BIG, mype, 0);
    CHECK_CUDA(cudaStreamSynchronize(0));
    int last = 0;
    CHECK_CUDA(cudaMemcpy(&last, big + 2 * BIG - 1, sizeof last, cudaMemcpyDeviceToHost));
    CHECK_EQ(last, 0x01010101);

    /* Symmetric memory is the device's, as what cudaMalloc gives. */
    cudaPointerAttributes attributes;
    int *symmetric = (int *)nvshmem_malloc(sizeof *symmetric);
    CHECK_CUDA(cudaPointerGetAttributes(&attributes, symmetric));
    CHECK_EQ(attributes.type, cudaMemoryTypeDevice);

    /* What these headers bring along. */
    static_assert(INT_MAX > 0 && EINVAL > 0, "limits.h and errno.h");
    cooperative_groups::thread_block *group = NULL;
    assert(!group);
    nvshmem_finalize();
    return 0;
}
