/* How do I run a program written for NVSHMEM? As it is: gshmemcc nvshmem-ring.cu. Each PE's kernel
 * writes its number to the next PE; a barrier on the stream comes after it, and before the copy. */
#include <nvshmem.h>
#include <nvshmemx.h>
#include <stdio.h>

__global__ void shift(int *received)
{
    int mype = nvshmem_my_pe(), npes = nvshmem_n_pes();

    nvshmem_int_p(received, mype, (mype + 1) % npes);
}

int main(void)
{
    cudaStream_t stream;
    int from = -1;

    nvshmem_init();
    int mype = nvshmem_my_pe(), npes = nvshmem_n_pes();
    cudaStreamCreate(&stream);
    int *received = (int *)nvshmem_malloc(sizeof(int));

    shift<<<1, 1, 0, stream>>>(received);
    nvshmemx_barrier_all_on_stream(stream);
    cudaMemcpyAsync(&from, received, sizeof(int), cudaMemcpyDeviceToHost, stream);
    cudaStreamSynchronize(stream);

    int failed = from != (mype + npes - 1) % npes;
    if (mype == 0 || failed)
        printf("nvshmem-ring: PE %d of %d heard from PE %d: %s\n", mype, npes, from,
               failed ? "wrong" : "right");
    cudaStreamDestroy(stream);
    nvshmem_free(received);
    nvshmem_finalize();
    return failed;
}
