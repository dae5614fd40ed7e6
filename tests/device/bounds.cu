/* For AddressSanitizer. With an argument, one access out of bounds that it has to find. */
#include "device.h"

__global__ void use(int *out, int n, int beyond_global, int beyond_shared, int beyond_local)
{
    __shared__ int parts[64];
    extern __shared__ int dynamic[];
    int local[4] = {1, 2, 3, 4};
    int i = (int)threadIdx.x;
    volatile int *mine = local;

    parts[i + beyond_shared] = i;
    dynamic[i] = i;
    __syncthreads();
    if (i < n)
        out[i + beyond_global] = parts[63 - i] + mine[i % 4 + beyond_local] + dynamic[63 - i];
}

int main(int argc, char **argv)
{
    const char *which = argc > 1 ? argv[1] : "";
    int *out = nullptr;

    CHECK_CUDA(cudaMalloc(&out, 50 * sizeof(int)));
    for (int round = 0; round < 20; round++)
        use<<<8, 64, 64 * sizeof(int)>>>(out, 50, strcmp(which, "global") ? 0 : 1,
                                         strcmp(which, "shared") ? 0 : 1,
                                         strcmp(which, "local") ? 0 : 1);
    CHECK_LAUNCH();
    int last = 0;
    CHECK_CUDA(cudaMemcpy(&last, out + 49, sizeof last, cudaMemcpyDeviceToHost));
    CHECK_EQ(last, 14 + 2 + 14);
    if (strcmp(which, "freed") == 0) {
        int *again = out;
        CHECK_CUDA(cudaFree(out));
        use<<<1, 64, 64 * sizeof(int)>>>(again, 50, 0, 0, 0);
        CHECK_LAUNCH();
        return 0;
    }
    CHECK_CUDA(cudaFree(out));
    return 0;
}
