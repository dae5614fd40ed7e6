/* The first program of most introductions: each PE writes its number to the next one. */
#include <nvshmem.h>
#include <nvshmemx.h>
#include <stdio.h>

__global__ void simple_shift(int *destination)
{
    int mype = nvshmem_my_pe();
    int npes = nvshmem_n_pes();

    nvshmem_int_p(destination, mype, (mype + 1) % npes);
}

int main(void)
{
    cudaStream_t stream;
    int received = -1;

    nvshmem_init();
    int mype = nvshmem_my_pe(), npes = nvshmem_n_pes();
    int mype_node = nvshmem_team_my_pe(NVSHMEMX_TEAM_NODE), devices = 0;
    cudaGetDeviceCount(&devices);
    cudaSetDevice(mype_node % devices);
    cudaStreamCreate(&stream);
    int *destination = (int *)nvshmem_malloc(sizeof(int));

    simple_shift<<<1, 1, 0, stream>>>(destination);
    nvshmemx_barrier_all_on_stream(stream);
    cudaMemcpyAsync(&received, destination, sizeof(int), cudaMemcpyDeviceToHost, stream);
    cudaStreamSynchronize(stream);
    printf("%d: received message %d\n", mype, received);

    nvshmem_free(destination);
    cudaStreamDestroy(stream);
    nvshmem_finalize();
    return received != (mype + npes - 1) % npes;
}
