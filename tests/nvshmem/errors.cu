/* What becomes of mistakes in calls that return nothing: the error policy has them. Each case returns
 * if the policy does.
 *
 *     errors CASE */
#include "check.h"

__global__ void in_kernel(int *at, int pe, int what)
{
    if (what == 0)
        nvshmem_int_p(at, 1, pe);
    else if (what == 1)
        nvshmemx_int_put_block(at, at + 1, 1, pe);
    else if (what == 2)
        nvshmem_int_wait_until(at, 99, 1);
    else
        nvshmem_int_g(at, pe);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    int mine = 0;

    nvshmem_init();
    int *at = (int *)nvshmem_calloc(2, sizeof(int));
    CHECK(at);
    if (nvshmem_my_pe() != 0) {
        nvshmem_barrier_all();
        nvshmem_finalize();
        return 0;
    }
    void (*volatile p)(int *, int, int) = nvshmem_int_p; /* not inlined */
    if (strcmp(what, "host_object") == 0)
        p(at + 2, 1, 1); /* GSHMEM_CHECK=memory refuses it */
    else if (strcmp(what, "host_p") == 0)
        nvshmem_int_p(at, 1, 77);
    else if (strcmp(what, "host_put") == 0)
        nvshmem_int_put(&mine + 1, at, 1, 1);
    else if (strcmp(what, "host_wait") == 0)
        nvshmem_int_wait_until(at, 99, 1);
    else if (strcmp(what, "kernel_p") == 0)
        in_kernel<<<1, 1>>>(at, 77, 0);
    else if (strcmp(what, "kernel_many") == 0)
        in_kernel<<<100, 10>>>(at, 77, 0);
    else if (strcmp(what, "kernel_put") == 0)
        in_kernel<<<1, 64>>>(at, 77, 1);
    else if (strcmp(what, "kernel_wait") == 0)
        in_kernel<<<1, 1>>>(at, 0, 2);
    else if (strcmp(what, "kernel_g") == 0)
        in_kernel<<<1, 1>>>(at, 77, 3);
    else if (strcmp(what, "stream_put") == 0)
        nvshmemx_int_put_on_stream(at, at + 1, 1, 77, 0);
    else if (strcmp(what, "stream_wait") == 0)
        nvshmemx_int_wait_until_on_stream(at, 99, 1, 0);
    else if (strcmp(what, "stream_none") == 0)
        nvshmemx_quiet_on_stream((cudaStream_t)0x1234);
    else if (strcmp(what, "cumodule") == 0)
        CHECK_EQ(nvshmemx_cumodule_init((CUmodule)&mine), NVSHMEMX_ERROR_INVALID_VALUE);
    else if (strcmp(what, "exit") == 0)
        nvshmem_global_exit(3);
    (void)cudaGetLastError(); /* of a stream that is none */
    CHECK_CUDA(cudaDeviceSynchronize());
    nvshmem_barrier_all();
    nvshmem_finalize();
    return 0;
}
