#include <cstdio>
#include <nvshmem.h>
#include <nvshmemx.h>

__global__ void send(int *dest)
{
    nvshmem_int_p(dest, nvshmem_my_pe(), (nvshmem_my_pe() + 1) % nvshmem_n_pes());
}

int three();

int main()
{
    int got = -1;

    nvshmem_init();
    int *dest = (int *)nvshmem_malloc(sizeof *dest);
    send<<<1, 1>>>(dest);
    cudaDeviceSynchronize();
    nvshmem_barrier_all();
    cudaMemcpy(&got, dest, sizeof got, cudaMemcpyDeviceToHost);
    printf("PE %d got %d and %d\n", nvshmem_my_pe(), got, three());
    nvshmem_free(dest);
    nvshmem_finalize();
}
