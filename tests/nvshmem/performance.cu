/* In the pattern of NVSHMEM's performance tests, and of what public applications ask of CUDA: headers by their own
 * paths, modules of the driver's, properties of the device, sizes of launches, ranges for profilers, NVML; then the
 * bandwidth of puts by a block, whose data is checked. */
#include <getopt.h>
#include <unistd.h>

#include "cuda.h"
#include "cuda_runtime.h"
#include "host/nvshmem_api.h"
#include "host/nvshmemx_api.h"
#include "device/nvshmem_coll_defines.cuh"
#include "device/nvshmemx_coll_defines.cuh"
#include "device_host/nvshmem_common.cuh"

/* Headers of a toolkit that is in the include path; it is not mixed with the host device's own. */
#ifdef __has_include
#if __has_include(<cublas_v2.h>)
#include <cublas_v2.h>
#endif
#if __has_include(<curand.h>)
#include <curand.h>
#endif
#if __has_include(<cusparse.h>)
#include <cusparse.h>
#endif
#if __has_include(<nccl.h>)
#include <nccl.h>
#endif
#if __has_include(<cuda_profiler_api.h>)
#include <cuda_profiler_api.h>
#endif
#if __has_include(<cuComplex.h>)
#include <cuComplex.h>
#endif
#endif

#ifndef __NVCC__
#include <nvToolsExt.h>
#include <nvml.h>
#endif

#include "check.h"

enum { BYTES_MOST = 64 << 10, ROUNDS = 5 };

static CUmodule mymodule = NULL;

__global__ void put_rounds(double *data, volatile unsigned *counter, size_t n, int pe, int rounds)
{
    for (int round = 0; round < rounds; round++) {
        nvshmemx_double_put_nbi_block(data + blockIdx.x * n, data + blockIdx.x * n, n, pe);
        __syncthreads();
        if (threadIdx.x == 0) {
            atomicAdd((unsigned *)counter, 1);
            while (*counter < gridDim.x * (round + 1u))
                continue;
        }
        __syncthreads();
    }
    if (threadIdx.x == 0)
        nvshmem_quiet();
}

__global__ void bump(int *target)
{
    atomicAdd(target, 1);
}

/* All blocks wait for all; a kernel that could not hold them all would wait for ever. */
__global__ void meet(unsigned *arrived, unsigned *met)
{
    __syncthreads();
    if (threadIdx.x == 0) {
        atomicAdd(arrived, 1);
        while (*(volatile unsigned *)arrived < gridDim.x)
            continue;
        atomicAdd(met, blockDim.x);
    }
    __syncthreads();
}

/* 100,000 threads at once, on one PE, where the machine has memory for them. A launch that is larger than any machine is
 * refused. */
static void launch_many()
{
    unsigned *counts = NULL, host[2];
    void *arguments[2];

    CHECK_CUDA(cudaMalloc(&counts, sizeof host));
    CHECK_CUDA(cudaMemset(counts, 0, sizeof host));
    unsigned *met = counts + 1;
    arguments[0] = &counts;
    arguments[1] = &met;
    CHECK(nvshmemx_collective_launch((const void *)meet, dim3(1 << 20), dim3(1024), arguments, 0, 0) != 0);
    (void)cudaGetLastError();
#ifdef GSHMEM_HOST_DEVICE
    const int block = 128, grid = (100000 + block - 1) / block;
    if ((double)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE) > 8e9) {
        CHECK_EQ(nvshmemx_collective_launch((const void *)meet, dim3(grid), dim3(block), arguments, 0, 0), 0);
        CHECK_CUDA(cudaDeviceSynchronize());
        CHECK_CUDA(cudaMemcpy(host, counts, sizeof host, cudaMemcpyDefault));
        CHECK_EQ(host[0], grid);
        CHECK_EQ(host[1], grid * block);
    }
#endif
    bump<<<2, 32>>>((int *)counts); /* there is room for others afterwards */
    CHECK_CUDA(cudaDeviceSynchronize());
    CHECK_CUDA(cudaFree(counts));
}

/* The module that a build for GPUs loads from a file beside the program. Without such a build the program says so and
 * launches its kernels by their addresses. */
static void load_module(const char *path)
{
    CUfunction function = NULL;
    const char *text = NULL;
    CUresult result = cuModuleLoad(&mymodule, path);

    CHECK(result != CUDA_SUCCESS && !mymodule);
    CHECK_EQ(cuGetErrorString(result, &text), CUDA_SUCCESS);
    CHECK(text);
    CHECK(cuModuleGetFunction(&function, mymodule, "put_rounds") != CUDA_SUCCESS);
}

static void ask_device()
{
    cudaDeviceProp prop;
    char name[256], bus[32];
    size_t total = 0;
    CUdevice device = -1;
    CUcontext context = NULL;
    int number = -1;

    CHECK_CUDA(cudaGetDevice(&number));
    CHECK_CUDA(cudaGetDeviceProperties(&prop, number));
    CHECK(prop.regsPerMultiprocessor > 0 && prop.maxThreadsPerMultiProcessor > 0);
    CHECK_EQ(cuCtxGetDevice(&device), CUDA_SUCCESS);
    CHECK_EQ(cuDeviceTotalMem(&total, device), CUDA_SUCCESS);
    CHECK_EQ(total, prop.totalGlobalMem);
    CHECK_EQ(cuDeviceGetName(name, sizeof name, device), CUDA_SUCCESS);
    CHECK_STR(name, prop.name);
    CHECK_EQ(cuDevicePrimaryCtxRetain(&context, device), CUDA_SUCCESS);
    CHECK_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
    CHECK_EQ(cuDevicePrimaryCtxRelease(device), CUDA_SUCCESS);
    CHECK_CUDA(cudaDeviceGetPCIBusId(bus, sizeof bus, number));
    CHECK_CUDA(cudaDeviceGetByPCIBusId(&number, bus));
    CHECK_EQ(number, device);
}

#ifndef __NVCC__
/* Or too late. */
static void ask_nvml_too_soon()
{
    const nvmlDevice_t device = (nvmlDevice_t)(uintptr_t)1; /* a program may have kept one */
    char name[NVML_DEVICE_NAME_BUFFER_SIZE];
    nvmlEnableState_t state;
    nvmlDevice_t found;
    unsigned n;

    CHECK_EQ(nvmlDeviceGetCount(&n), NVML_ERROR_UNINITIALIZED);
    CHECK_EQ(nvmlDeviceGetHandleByIndex(0, &found), NVML_ERROR_UNINITIALIZED);
    CHECK_EQ(nvmlDeviceGetHandleByPciBusId("0000:00:01.0", &found), NVML_ERROR_UNINITIALIZED);
    CHECK_EQ(nvmlDeviceGetName(device, name, sizeof name), NVML_ERROR_UNINITIALIZED);
    CHECK_EQ(nvmlDeviceGetNvLinkState(device, 0, &state), NVML_ERROR_UNINITIALIZED);
    CHECK_EQ(nvmlSystemGetDriverVersion(name, sizeof name), NVML_ERROR_UNINITIALIZED);
    CHECK_EQ(nvmlShutdown(), NVML_ERROR_UNINITIALIZED);
}

static void ask_nvml()
{
    char name[NVML_DEVICE_NAME_BUFFER_SIZE];
    nvmlDevice_t device, again;
    nvmlMemory_t memory;
    nvmlPciInfo_t pci;
    unsigned n = 0, index = 9;
    nvmlEnableState_t state;

    ask_nvml_too_soon();
    CHECK_EQ(nvmlInit(), NVML_SUCCESS);
    CHECK_EQ(nvmlInit(), NVML_SUCCESS); /* they are counted */
    CHECK_EQ(nvmlShutdown(), NVML_SUCCESS);
    CHECK_EQ(nvmlDeviceGetCount(&n), NVML_SUCCESS);
    CHECK(n > 0);
    CHECK_EQ(nvmlDeviceGetHandleByIndex(n, &device), NVML_ERROR_INVALID_ARGUMENT);
    CHECK_EQ(nvmlDeviceGetHandleByIndex(n - 1, &device), NVML_SUCCESS);
    CHECK_EQ(nvmlDeviceGetIndex(device, &index), NVML_SUCCESS);
    CHECK_EQ(index, n - 1);
    CHECK_EQ(nvmlDeviceGetName(device, name, sizeof name), NVML_SUCCESS);
    CHECK_HAS(name, "GSHMEM host device");
    CHECK_EQ(nvmlDeviceGetName(device, name, 3), NVML_ERROR_INSUFFICIENT_SIZE);
    CHECK_EQ(nvmlDeviceGetMemoryInfo(device, &memory), NVML_SUCCESS);
    CHECK(memory.total > 0 && memory.free + memory.used == memory.total);
    CHECK_EQ(nvmlDeviceGetPciInfo(device, &pci), NVML_SUCCESS);
    CHECK_EQ(nvmlDeviceGetHandleByPciBusId(pci.busId, &again), NVML_SUCCESS);
    CHECK(again == device);
    CHECK_EQ(nvmlDeviceGetHandleByPciBusId("0000:00:01.0", &again), NVML_ERROR_NOT_FOUND);
    CHECK_EQ(nvmlDeviceGetNvLinkState(device, 0, &state), NVML_ERROR_NOT_SUPPORTED);
    CHECK(nvmlErrorString(NVML_ERROR_NOT_SUPPORTED));
    CHECK_EQ(nvmlShutdown(), NVML_SUCCESS);
    ask_nvml_too_soon();
}
#endif

static void measure(int me, int n)
{
    int blocks = 0, threads = 0;
    unsigned *counter = NULL;
    double *data = (double *)nvshmem_malloc(BYTES_MOST), *host = NULL;
    const int each = 64, grid = 4;
    const size_t doubles = BYTES_MOST / sizeof(double);
    cudaStream_t stream;

    CHECK(data);
    CHECK_CUDA(cudaOccupancyMaxPotentialBlockSize(&blocks, &threads, (void *)put_rounds, 0, 0));
    CHECK(blocks >= 1 && threads >= each);
    CHECK_CUDA(cudaOccupancyMaxPotentialBlockSize(&blocks, &threads, put_rounds, 0, 128));
    CHECK_EQ(threads, 128);
    CHECK_CUDA(cudaMalloc(&counter, sizeof *counter));
    CHECK_CUDA(cudaMemset(counter, 0, sizeof *counter));
    CHECK_CUDA(cudaMallocHost(&host, BYTES_MOST));
    for (size_t i = 0; i < doubles; i++)
        host[i] = me == 0 ? (double)i : -1;
    CHECK_CUDA(cudaMemcpy(data, host, BYTES_MOST, cudaMemcpyHostToDevice));
    CHECK_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    nvshmem_barrier_all();
    for (size_t bytes = 64; me == 0 && bytes <= BYTES_MOST; bytes *= 8) {
        size_t length = bytes / sizeof(double) / grid;
        int pe = (me + 1) % n, rounds = ROUNDS;
        void *arguments[] = {&data, &counter, &length, &pe, &rounds};
        CHECK_CUDA(cudaMemset(counter, 0, sizeof *counter));
        CHECK_CUDA(cudaLaunchCooperativeKernel((void *)put_rounds, dim3(grid), dim3(each), arguments, 0, stream));
        CHECK_CUDA(cudaStreamSynchronize(stream));
    }
    nvshmem_barrier_all();
    CHECK_CUDA(cudaMemcpy(host, data, BYTES_MOST, cudaMemcpyDeviceToHost));
    const size_t moved = 32768 / sizeof(double);
    for (size_t i = 0; i < moved; i++) {
        if (host[i] != (double)i)
            CHECK_FAIL("double %zu is %g", i, host[i]);
    }
    CHECK_CUDA(cudaStreamDestroy(stream));
    CHECK_CUDA(cudaFreeHost(host));
    CHECK_CUDA(cudaFree(counter));
    nvshmem_free(data);
}

int main(int argc, char **argv)
{
    (void)argc;
    nvshmem_init();
    load_module("/nowhere/performance.cubin");
    ask_device();
#ifndef __NVCC__
    nvtxRangePushA("all");
    ask_nvml();
    nvtxRangePop();
#endif
    measure(nvshmem_my_pe(), nvshmem_n_pes());
    if (!argv[0])
        NVSHMEMI_ERROR_PRINT("no name, %d arguments\n", argc);
    int *target = (int *)nvshmem_calloc(1, sizeof(int)), one = 0;
    void *arguments[] = {&target};
    CHECK_EQ(nvshmemx_collective_launch((const void *)bump, dim3(2), dim3(32), arguments, 0, 0), 0);
    CHECK_CUDA(cudaDeviceSynchronize());
    CHECK_CUDA(cudaMemcpy(&one, target, sizeof one, cudaMemcpyDefault));
    CHECK_EQ(one, 64);
    if (nvshmem_my_pe() == 0)
        launch_many();
    nvshmem_barrier_all();
    nvshmem_free(target);
    nvshmem_finalize();
    return 0;
}
