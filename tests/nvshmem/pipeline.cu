/* Chunks travel from PE to PE: each block hands its chunks on as soon as the signal says that they
 * have come, and adds one to what it hands on. */
#include "check.h"

enum { BLOCKS = 4, CHUNKS = 5, CHUNK = 1000, THREADS = 64 };

__global__ void hand_on(float *data, float *next, uint64_t *arrived)
{
    int mype = nvshmem_my_pe(), npes = nvshmem_n_pes();

    for (int chunk = 0; chunk < CHUNKS; chunk++) {
        size_t at = (size_t)(blockIdx.x * CHUNKS + chunk) * CHUNK;

        if (mype > 0) {
            if (threadIdx.x == 0)
                nvshmem_signal_wait_until(arrived + blockIdx.x, NVSHMEM_CMP_GE, chunk + 1);
            __syncthreads();
        }
        for (int i = threadIdx.x; i < CHUNK; i += blockDim.x)
            next[at + i] = data[at + i] + 1;
        if (mype < npes - 1)
            nvshmemx_float_put_signal_nbi_block(data + at, next + at, CHUNK, arrived + blockIdx.x,
                                                1, NVSHMEM_SIGNAL_ADD, mype + 1);
    }
    nvshmem_quiet();
}

__global__ void count_blocks(unsigned *blocks)
{
    if (blockIdx.x == 0 && threadIdx.x == 0)
        *blocks = gridDim.x;
}

int main(void)
{
    enum { N = BLOCKS * CHUNKS * CHUNK };

    nvshmem_init();
    CHECK_CUDA(cudaSetDevice(nvshmem_team_my_pe(NVSHMEMX_TEAM_NODE)));
    int mype = nvshmem_my_pe();
    float *data = (float *)nvshmem_malloc(N * sizeof(float));
    float *next = (float *)nvshmem_malloc(N * sizeof(float));
    uint64_t *arrived = (uint64_t *)nvshmem_calloc(BLOCKS, sizeof(uint64_t));
    float *host = (float *)malloc(N * sizeof(float));
    CHECK(data && next && arrived && host);

    for (int i = 0; i < N; i++)
        host[i] = mype == 0 ? (float)i : -1.0f;
    CHECK_CUDA(cudaMemcpy(data, host, N * sizeof(float), cudaMemcpyHostToDevice));
    nvshmem_barrier_all();

    void *args[] = {&data, &next, &arrived};
    int most = 0;
    CHECK_EQ(nvshmemx_collective_launch_query_gridsize((const void *)hand_on, THREADS, args, 0, &most),
             0);
    CHECK(most >= BLOCKS);
    CHECK_EQ(nvshmemx_collective_launch((const void *)hand_on, BLOCKS, THREADS, args, 0, 0), 0);
    CHECK_CUDA(cudaMemcpy(host, next, N * sizeof(float), cudaMemcpyDeviceToHost));
    for (int i = 0; i < N; i++)
        CHECK_EQ(host[i], i + mype + 1);

    /* More blocks than can run at once are refused, and not started. */
    CHECK(nvshmemx_collective_launch((const void *)hand_on, dim3(1 << 20), 1024, args, 0, 0) != 0);
    CHECK(nvshmemx_collective_launch((const void *)hand_on, dim3(1 << 20, 60000, 1000), 1024, args, 0,
                                     0) != 0);

    /* A grid of no blocks is as many as can. */
    unsigned *blocks = (unsigned *)nvshmem_malloc(sizeof *blocks), counted = 0;
    void *count_args[] = {&blocks};
    CHECK_EQ(nvshmemx_collective_launch_query_gridsize((const void *)count_blocks, THREADS, count_args, 0,
                                                       &most),
             0);
    CHECK_EQ(nvshmemx_collective_launch((const void *)count_blocks, dim3(0, 0, 0), THREADS, count_args, 0,
                                        0),
             0);
    CHECK_CUDA(cudaMemcpy(&counted, blocks, sizeof counted, cudaMemcpyDeviceToHost));
    CHECK_EQ(counted, most);
    nvshmem_free(blocks);

    free(host);
    nvshmem_free(arrived);
    nvshmem_free(next);
    nvshmem_free(data);
    nvshmem_finalize();
    return 0;
}
