/* Kernels in a header of the user's, for launch.cu. */
#pragma once

__global__ void from_header(int *out)
{
    __shared__ int sum;

    if (threadIdx.x == 0)
        sum = 100;
    __syncthreads();
    atomicAdd(&sum, 1);
    __syncthreads();
    if (threadIdx.x == 0)
        *out = sum;
}
