/* An iteration that is captured once and launched again and again: a kernel that puts to the next
 * PE, a barrier, a reduction and a put, all on one stream. */
#include <nvshmem.h>
#include <nvshmemx.h>
#include <stdio.h>

enum { ITERATIONS = 20 };

__global__ void shift(long *to, long *round)
{
    int mype = nvshmem_my_pe(), npes = nvshmem_n_pes();

    nvshmem_long_p(to, mype + ++*round * npes, (mype + 1) % npes);
}

__global__ void note(const long *from_left, const long *sum, long *seen, const long *round)
{
    seen[2 * (*round - 1)] = *from_left;
    seen[2 * (*round - 1) + 1] = *sum;
}

int main(void)
{
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    long seen[2 * ITERATIONS], at_right[2 * ITERATIONS];
    int wrong = 0;

    nvshmem_init();
    int mype = nvshmem_my_pe(), npes = nvshmem_n_pes();
    int left = (mype + npes - 1) % npes, right = (mype + 1) % npes;
    long *symmetric = (long *)nvshmem_calloc(3 + 4 * ITERATIONS, sizeof(long));
    long *from_left = symmetric, *sum = symmetric + 1, *round = symmetric + 2;
    long *mine = symmetric + 3, *theirs = mine + 2 * ITERATIONS;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);

    cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
    shift<<<1, 1, 0, stream>>>(from_left, round);
    nvshmemx_barrier_all_on_stream(stream);
    nvshmemx_long_sum_reduce_on_stream(NVSHMEM_TEAM_WORLD, sum, from_left, 1, stream);
    note<<<1, 1, 0, stream>>>(from_left, sum, mine, round);
    nvshmemx_putmem_on_stream(theirs, mine, sizeof seen, right, stream);
    nvshmemx_barrier_all_on_stream(stream);
    cudaStreamEndCapture(stream, &graph);
    cudaGraphInstantiate(&exec, graph, 0);

    for (int i = 0; i < ITERATIONS; i++)
        cudaGraphLaunch(exec, stream);
    cudaMemcpyAsync(seen, mine, sizeof seen, cudaMemcpyDeviceToHost, stream);
    cudaMemcpyAsync(at_right, theirs, sizeof seen, cudaMemcpyDeviceToHost, stream);
    cudaError_t error = cudaStreamSynchronize(stream);
    for (long i = 0; i < ITERATIONS; i++) {
        long all = npes * (npes - 1) / 2 + npes * (i + 1) * npes;
        wrong += seen[2 * i] != left + (i + 1) * npes || seen[2 * i + 1] != all;
        wrong += at_right[2 * i + 1] != all;
    }
    printf("%d: %d wrong of %d launches, %s\n", mype, wrong, ITERATIONS, cudaGetErrorString(error));

    cudaGraphExecDestroy(exec);
    cudaGraphDestroy(graph);
    cudaStreamDestroy(stream);
    nvshmem_free(symmetric);
    nvshmem_finalize();
    return wrong != 0 || error != cudaSuccess;
}
