__global__ void store_three(int *to)
{
    *to = 3;
}

int three()
{
    int *on_device, value = 0;

    cudaMalloc(&on_device, sizeof *on_device);
    store_three<<<1, 1>>>(on_device);
    cudaMemcpy(&value, on_device, sizeof value, cudaMemcpyDeviceToHost);
    cudaFree(on_device);
    return value;
}
