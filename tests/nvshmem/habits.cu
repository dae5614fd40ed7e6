/* What public applications and NVSHMEM's examples do, each in the pattern of those that did not compile once: conversions
 * that round one way, maxima by CUDA's names, launches whose size the runtime chooses, properties of CUDA 12 and of 13,
 * ranges for profilers by NVTX 3's path, launches by the driver's API, and errors printed.
 *
 *     habits [print] */
#include <cuda.h>
#include <nvtx3/nvToolsExt.h>

#include "check.h"

enum { BINS = 64, EACH = 1000 };

/* ---- A histogram of all PEs: values to bins by rounding down, and the least and largest of all ---- */

struct histogram {
    unsigned long long bin[BINS];
    long long least, largest;
    unsigned long long most; /* in one bin */
};

__host__ __device__ static int value_of(int pe, int i)
{
    return (pe * 7919 + i * 104729) % 2000003 - 1000001;
}

/* 2^24 and more are no floats of their own: rounding down and to the nearest differ. */
template <int SCALE> __global__ void count(histogram *h, int pe, int owner)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i >= EACH)
        return;
    const int value = value_of(pe, i) * SCALE;
    const float lower = __int2float_rd(value), upper = __int2float_ru(value);
    if (!((double)lower <= value && (double)upper >= value))
        __trap();
    const int bin = __float2int_rd(lower / (SCALE * 40000.0f)) & (BINS - 1);
    nvshmem_ulonglong_atomic_inc(&h->bin[bin], owner);
}

__global__ void find_extremes(histogram *h, int pe)
{
    long long least = LLONG_MAX, largest = LLONG_MIN;
    unsigned long long most = 0;

    for (int i = 0; i < EACH; i++) {
        least = llmin(least, (long long)value_of(pe, i) * 3000000000LL);
        largest = llmax(largest, (long long)value_of(pe, i) * 3000000000LL);
    }
    for (int i = 0; i < BINS; i++)
        most = ullmax(most, nvshmem_ulonglong_g(&h->bin[i], 0));
    h->least = least;
    h->largest = largest;
    h->most = most;
    nvshmem_longlong_min_reduce(NVSHMEM_TEAM_WORLD, &h->least, &h->least, 1);
    nvshmem_longlong_max_reduce(NVSHMEM_TEAM_WORLD, &h->largest, &h->largest, 1);
}

static void check_histogram(int me, int n)
{
    histogram *h = (histogram *)nvshmem_calloc(1, sizeof *h), got;
    int blocks = 0, threads = 0, owner = 0;
    unsigned long long sum = 0, most = 0;
    long long least = LLONG_MAX, largest = LLONG_MIN;
    void *arguments[] = {&h, &me, &owner}, *both[] = {&h, &me};

    CHECK(h);
    CHECK_CUDA(cudaOccupancyMaxPotentialBlockSize(&blocks, &threads, (void *)count<16>, 0, 0));
    CHECK(blocks > 0 && threads > 0);
    CHECK_CUDA(cudaLaunchKernel((void *)count<16>, dim3((EACH + threads - 1) / threads), dim3(threads), arguments, 0, 0));
    CHECK_LAUNCH();
    nvshmem_barrier_all();
    CHECK_EQ(nvshmemx_collective_launch((const void *)find_extremes, dim3(1), dim3(1), both, 0, 0), 0);
    CHECK_LAUNCH();
    CHECK_CUDA(cudaMemcpy(&got, h, sizeof got, cudaMemcpyDefault));
    for (int pe = 0; pe < n; pe++) {
        for (int i = 0; i < EACH; i++) {
            const long long value = value_of(pe, i) * 3000000000LL;
            least = value < least ? value : least;
            largest = value > largest ? value : largest;
        }
    }
    CHECK_EQ(got.least, least);
    CHECK_EQ(got.largest, largest);
    for (int i = 0; me == 0 && i < BINS; i++) {
        sum += got.bin[i];
        most = got.bin[i] > most ? got.bin[i] : most;
    }
    if (me == 0) {
        CHECK_EQ(sum, (unsigned long long)n * EACH);
        CHECK_EQ(got.most, most);
    }
    nvshmem_barrier_all();
    nvshmem_free(h);
}

/* ---- The device ---- */

static void check_device()
{
    cudaDeviceProp p;

    CHECK_CUDA(cudaGetDeviceProperties(&p, 0));
    printf("%s: %d processors, %zu MiB, compute capability %d.%d, PCI %04x:%02x:%02x\n", p.name, p.multiProcessorCount,
           p.totalGlobalMem >> 20, p.major, p.minor, p.pciDomainID, p.pciBusID, p.pciDeviceID);
    CHECK(p.maxGridSize[0] > 65535 && p.maxThreadsDim[0] == 1024 && p.regsPerBlock > 0);
    CHECK(p.sharedMemPerBlock >= 48 << 10 && p.sharedMemPerBlockOptin >= p.sharedMemPerBlock);
    CHECK(p.reservedSharedMemPerBlock < p.sharedMemPerMultiprocessor);
    CHECK(p.clusterLaunch == 0 || p.major >= 9);
    CHECK(p.memoryPoolsSupported == 0 || p.memoryPoolsSupported == 1);
    CHECK(p.ipcEventSupported >= 0 && p.hostNumaId >= -1 && p.deviceNumaId >= -1);
    CHECK(p.accessPolicyMaxWindowSize >= 0 && p.persistingL2CacheMaxSize >= 0 && p.uuid.bytes[0] == p.uuid.bytes[0]);
#if !defined(__NVCC__) || CUDART_VERSION < 13000 /* which 13 has no more */
    CHECK(p.clockRate > 0 && p.memoryClockRate >= 0 && p.computeMode == 0);
    CHECK(p.deviceOverlap >= 0 && p.kernelExecTimeoutEnabled >= 0 && p.singleToDoublePrecisionPerfRatio >= 0);
    CHECK(p.cooperativeMultiDeviceLaunch >= 0);
#endif
}

/* ---- Ranges ---- */

static void annotate()
{
    nvtxEventAttributes_t event;

    memset(&event, 0, sizeof event);
    event.version = NVTX_VERSION;
    event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    event.colorType = NVTX_COLOR_ARGB;
    event.color = 0xff00ff00;
    event.messageType = NVTX_MESSAGE_TYPE_ASCII;
    event.message.ascii = "a step";
    (void)nvtxRangePushEx(&event);
    (void)nvtxRangePush("a part of it");
    nvtxMark("here");
    (void)nvtxRangePop();
    (void)nvtxRangePop();
    const nvtxRangeId_t range = nvtxRangeStart("over threads");
    nvtxRangeEnd(range);
    nvtxDomainHandle_t domain = nvtxDomainCreate("habits");
    (void)nvtxDomainRangePushEx(domain, &event);
    (void)nvtxDomainRangePop(domain);
    nvtxDomainDestroy(domain);
}

/* ---- The driver's modules, as NVSHMEM's performance tests take their kernels from a file of GPU code ---- */

static void from_module(int me, int n)
{
#ifdef GSHMEM_HOST_DEVICE
    static const char gpu_code[] = "\177ELF is what a cubin begins with, and no kernel of it runs on CPUs";
    CUmodule module = NULL;
    CUfunction function = NULL;
    void *arguments[] = {&me, &n};
    const char *text = NULL;

    CUresult result = cuModuleLoadData(&module, gpu_code);
    CHECK(result != CUDA_SUCCESS && !module);
    CHECK_EQ(cuGetErrorName(result, &text), CUDA_SUCCESS);
    CHECK(text && strncmp(text, "CUDA_ERROR_", 11) == 0);
    CHECK(cuModuleGetFunction(&function, module, "count") != CUDA_SUCCESS && !function);
    CHECK(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, arguments, NULL) != CUDA_SUCCESS);
    CHECK(cuLaunchCooperativeKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, arguments) != CUDA_SUCCESS);
    CHECK(cuModuleUnload(module) != CUDA_SUCCESS);
    (void)cudaGetLastError();
#else
    (void)me, (void)n;
#endif
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "print") == 0) {
        NVSHMEMI_ERROR_PRINT("%d of %d are lost \n", 3, 7);
        if (argc > 2)
            NVSHMEMI_ERROR_PRINT("no arguments \n");
        return 0;
    }
    nvshmem_init();
    const int me = nvshmem_my_pe(), n = nvshmem_n_pes();
    check_histogram(me, n);
    check_device();
    annotate();
    from_module(me, n);
    nvshmem_finalize();
    return 0;
}
