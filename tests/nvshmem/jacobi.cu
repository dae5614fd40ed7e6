/* Jacobi's iteration over rows, with halos that are put with a signal by the kernel that computes
 * them: no barrier, no host in between. Compared to the same on one processor. */
#include "check.h"

enum { NX = 66, NY = 48, STEPS = 20, THREADS = 64 };

/* Rows 0 and rows + 1 are the neighbours'. Block 0 sends upwards, the last one downwards. */
__global__ void jacobi(float *a, float *b, int rows, int step, uint64_t *signals)
{
    int mype = nvshmem_my_pe(), npes = nvshmem_n_pes();
    int up = mype - 1, down = mype + 1;

    if (threadIdx.x == 0 && blockIdx.x == 0 && up >= 0)
        nvshmem_signal_wait_until(signals + 0, NVSHMEM_CMP_GE, step);
    if (threadIdx.x == 0 && blockIdx.x == gridDim.x - 1 && down < npes)
        nvshmem_signal_wait_until(signals + 1, NVSHMEM_CMP_GE, step);
    __syncthreads();

    for (int row = 1 + blockIdx.x; row <= rows; row += gridDim.x)
        for (int x = 1 + threadIdx.x; x < NX - 1; x += blockDim.x)
            b[row * NX + x] = 0.25f * (a[row * NX + x - 1] + a[row * NX + x + 1] +
                                       a[(row - 1) * NX + x] + a[(row + 1) * NX + x]);
    __syncthreads();

    if (blockIdx.x == 0 && up >= 0)
        nvshmemx_float_put_signal_nbi_block(b + (NY / npes + 1) * NX, b + NX, NX, signals + 1, step + 1,
                                            NVSHMEM_SIGNAL_SET, up);
    if (blockIdx.x == gridDim.x - 1 && down < npes)
        nvshmemx_float_put_signal_nbi_block(b, b + rows * NX, NX, signals + 0, step + 1,
                                            NVSHMEM_SIGNAL_SET, down);
    nvshmem_quiet();
}

static float first(int y, int x)
{
    return y < 0 || y >= NY || x == 0 || x == NX - 1 ? (float)((x + 2 * y) % 7) : 0;
}

/* The whole field, NY rows between two more. */
static void on_one_processor(float *a, float *b)
{
    for (int y = -1; y <= NY; y++)
        for (int x = 0; x < NX; x++)
            a[(y + 1) * NX + x] = b[(y + 1) * NX + x] = first(y, x);
    for (int step = 0; step < STEPS; step++) {
        for (int y = 1; y <= NY; y++)
            for (int x = 1; x < NX - 1; x++)
                b[y * NX + x] = 0.25f * (a[y * NX + x - 1] + a[y * NX + x + 1] +
                                         a[(y - 1) * NX + x] + a[(y + 1) * NX + x]);
        float *swap = a;
        a = b;
        b = swap;
    }
}

int main(void)
{
    static float whole[2][(NY + 2) * NX], mine[(NY + 2) * NX];
    cudaStream_t stream;

    nvshmem_init();
    int mype = nvshmem_my_pe(), npes = nvshmem_n_pes(), rows = NY / npes;
    CHECK_EQ(NY % npes, 0);
    CHECK_CUDA(cudaStreamCreate(&stream));
    float *a = (float *)nvshmem_malloc((rows + 2) * NX * sizeof(float));
    float *b = (float *)nvshmem_malloc((rows + 2) * NX * sizeof(float));
    uint64_t *signals = (uint64_t *)nvshmem_calloc(2, sizeof(uint64_t));
    CHECK(a && b && signals);

    for (int y = 0; y < rows + 2; y++)
        for (int x = 0; x < NX; x++)
            mine[y * NX + x] = first(mype * rows + y - 1, x);
    CHECK_CUDA(cudaMemcpyAsync(a, mine, (rows + 2) * NX * sizeof(float), cudaMemcpyDefault, stream));
    CHECK_CUDA(cudaMemcpyAsync(b, mine, (rows + 2) * NX * sizeof(float), cudaMemcpyDefault, stream));
    nvshmemx_barrier_all_on_stream(stream);

    for (int step = 0; step < STEPS; step++) {
        float *from = step % 2 ? b : a, *to = step % 2 ? a : b;
        void *args[] = {&from, &to, &rows, &step, &signals};
        CHECK_EQ(nvshmemx_collective_launch((const void *)jacobi, 2, THREADS, args, 0, stream), 0);
    }
    nvshmemx_barrier_all_on_stream(stream);
    CHECK_CUDA(cudaMemcpyAsync(mine, STEPS % 2 ? b : a, (rows + 2) * NX * sizeof(float),
                               cudaMemcpyDefault, stream));
    CHECK_CUDA(cudaStreamSynchronize(stream));

    on_one_processor(whole[0], whole[1]);
    for (int y = 1; y <= rows; y++)
        for (int x = 0; x < NX; x++)
            CHECK(mine[y * NX + x] == whole[STEPS % 2][(mype * rows + y) * NX + x]);
    nvshmem_free(signals);
    nvshmem_free(b);
    nvshmem_free(a);
    CHECK_CUDA(cudaStreamDestroy(stream));
    nvshmem_finalize();
    return 0;
}
