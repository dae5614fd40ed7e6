/* How do I use NCCL and GSHMEM in one program? On the same stream and the same symmetric memory: a
 * kernel puts its PE's values to the next PE, the stream waits for all PEs, and NCCL adds up what has
 * come. NCCL starts by an id that GSHMEM brings to all. Each PE needs a GPU of its own for NCCL. */
#include <gshmem.h>
#include <nccl.h>
#include <stdio.h>

enum { VALUES = 1 << 16, THREADS = 256 };

__global__ void hand_on(float *received, float *mine)
{
    int me = gshmem_my_pe(), n = gshmem_n_pes();

    for (int i = threadIdx.x; i < VALUES; i += THREADS)
        mine[i] = (float)(me + i % 100);
    gshmem_float_put_block(received, mine, VALUES, (me + 1) % n);
}

static bool failed(ncclResult_t result)
{
    if (result != ncclSuccess)
        fprintf(stderr, "nccl: %s\n", ncclGetErrorString(result));
    return result != ncclSuccess;
}

int main()
{
    static ncclUniqueId id; /* of the program: symmetric too */
    static float sum[VALUES];
    ncclComm_t comm;
    cudaStream_t stream;
    int wrong = 0;

    if (gshmem_init())
        return 1;
    int me = gshmem_my_pe(), n = gshmem_n_pes();
    if (me == 0 && failed(ncclGetUniqueId(&id)))
        return 1;
    if (gshmem_broadcastmem(GSHMEM_TEAM_WORLD, &id, &id, sizeof id, 0) ||
        failed(ncclCommInitRank(&comm, n, id, me)) || cudaStreamCreate(&stream))
        return 1;
    float *mine = (float *)gshmem_malloc(VALUES * sizeof *mine);
    float *received = (float *)gshmem_malloc(VALUES * sizeof *received);
    if (!mine || !received)
        return 1;

    hand_on<<<1, THREADS, 0, stream>>>(received, mine);
    gshmem_raise(gshmem_barrier_all_on_stream(stream));
    if (failed(ncclAllReduce(received, mine, VALUES, ncclFloat, ncclSum, comm, stream)) ||
        cudaMemcpyAsync(sum, mine, sizeof sum, cudaMemcpyDefault, stream) ||
        cudaStreamSynchronize(stream))
        return 1;
    for (int i = 0; i < VALUES; i++)
        wrong += sum[i] != (float)(n * (n - 1) / 2 + n * (i % 100));
    if (me == 0)
        printf("nccl: %d PEs handed on %d values each, and NCCL added them up: %s\n", n, VALUES,
               wrong ? "wrong" : "right");
    gshmem_raise(gshmem_barrier_all_on_stream(stream));
    cudaStreamSynchronize(stream);
    ncclCommDestroy(comm);
    cudaStreamDestroy(stream);
    gshmem_raise(gshmem_free(received));
    gshmem_raise(gshmem_free(mine));
    return gshmem_finalize() || wrong;
}
