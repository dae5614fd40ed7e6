/* The rest of the runtime API that small programs use: memory, symbols, properties, errors. */
#include "device.h"

#include <math.h>
#include <stdlib.h>

__constant__ float scale[4];
__device__ int counter = 7;
static __device__ double table[10];

__global__ void use_symbols(float *out)
{
    out[threadIdx.x] = scale[threadIdx.x] * 2;
    atomicAdd(&counter, 1);
    table[threadIdx.x] = threadIdx.x * 1.5;
}

static void check_symbols()
{
    float host[4] = {1, 2, 3, 4}, *out = shared_array<float>(4);
    double back[4];
    int count = 0;
    void *address = nullptr;
    size_t size = 0;

    CHECK_CUDA(cudaMemcpyToSymbol(scale, host, sizeof host));
    host[1] = 50;
    CHECK_CUDA(cudaMemcpyToSymbol(scale, &host[1], sizeof(float), sizeof(float)));
    use_symbols<<<1, 4>>>(out);
    CHECK_LAUNCH();
    CHECK(out[0] == 2 && out[1] == 100 && out[2] == 6 && out[3] == 8);
    CHECK_CUDA(cudaMemcpyFromSymbol(&count, counter, sizeof count));
    CHECK_EQ(count, 11);
    CHECK_CUDA(cudaMemcpyFromSymbol(back, table, 2 * sizeof(double), 2 * sizeof(double)));
    CHECK(back[0] == 3.0 && back[1] == 4.5);
    CHECK_CUDA(cudaGetSymbolAddress(&address, counter));
    CHECK_CUDA(cudaMemcpy(&count, address, sizeof count, cudaMemcpyDeviceToHost));
    CHECK_EQ(count, 11);
    CHECK_CUDA(cudaGetSymbolSize(&size, table));
    CHECK_EQ(size, 80);
    CHECK_CUDA(cudaFree(out));
}

__global__ void fill(char *at, size_t pitch, int width, int height)
{
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++)
            at[y * pitch + x] = (char)(10 * y + x);
}

static void check_memory()
{
    char *pitched = nullptr, *host = nullptr, packed[12], *device = nullptr;
    size_t pitch = 0, free_bytes = 0, total = 0;
    void *mapped = nullptr;

    CHECK_CUDA(cudaMallocPitch(&pitched, &pitch, 4, 3));
    CHECK(pitch >= 4);
    fill<<<1, 1>>>(pitched, pitch, 4, 3);
    CHECK_CUDA(cudaMemcpy2D(packed, 4, pitched, pitch, 4, 3, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 12; i++)
        CHECK_EQ(packed[i], 10 * (i / 4) + i % 4);
    CHECK_CUDA(cudaMemset2D(pitched, pitch, 9, 2, 2));
    CHECK_CUDA(cudaMemcpy2D(packed, 4, pitched, pitch, 4, 3, cudaMemcpyDeviceToHost));
    CHECK(packed[0] == 9 && packed[1] == 9 && packed[2] == 2 && packed[5] == 9 && packed[8] == 20);
    CHECK_CUDA(cudaFree(pitched));

    CHECK_CUDA(cudaHostAlloc(&host, 1000, cudaHostAllocMapped));
    CHECK_CUDA(cudaHostGetDevicePointer(&mapped, host, 0));
    memset(host, 0, 1000);
    fill<<<1, 1>>>((char *)mapped, 100, 10, 10);
    CHECK_LAUNCH();
    CHECK_EQ(host[909], 99);
    cudaPointerAttributes attributes;
    CHECK_CUDA(cudaPointerGetAttributes(&attributes, host + 5));
    CHECK_EQ(attributes.type, cudaMemoryTypeHost);
    CHECK_CUDA(cudaMalloc(&device, 64));
    CHECK(((size_t)device & 255) == 0);
    CHECK_CUDA(cudaPointerGetAttributes(&attributes, device + 63));
    CHECK_EQ(attributes.type, cudaMemoryTypeDevice);
    CHECK_CUDA(cudaPointerGetAttributes(&attributes, packed));
    CHECK_EQ(attributes.type, cudaMemoryTypeUnregistered);
    CHECK_CUDA(cudaMemset(device, 0x21, 64));
    CHECK_CUDA(cudaMemcpy(packed, device, 12, cudaMemcpyDeviceToHost));
    CHECK_EQ(packed[11], 0x21);
    CHECK_CUDA(cudaFree(device));
    CHECK_CUDA(cudaFreeHost(host));
    CHECK_CUDA(cudaFree(nullptr));
    CHECK_CUDA(cudaMemGetInfo(&free_bytes, &total));
    CHECK(free_bytes > 0 && free_bytes <= total);
    CHECK_CUDA_FAILS(cudaFree(packed), cudaErrorInvalidValue);
    CHECK_CUDA_FAILS(cudaMalloc(&device, (size_t)1 << 62), cudaErrorMemoryAllocation);

    /* Many at once: the book of what was allocated has to grow. */
    static char *many[500];
    for (int i = 0; i < 500; i++)
        CHECK_CUDA(cudaMalloc(&many[i], 16));
    for (int i = 0; i < 500; i++)
        CHECK_CUDA(cudaFree(many[i]));
}

static void check_properties()
{
    cudaDeviceProp p;
    int n = 0, device = -1, value = 0, blocks = 0;

    CHECK_CUDA(cudaGetDeviceCount(&n));
    CHECK(n >= 1);
    CHECK_CUDA(cudaSetDevice(0));
    CHECK_CUDA(cudaGetDevice(&device));
    CHECK_EQ(device, 0);
    CHECK_CUDA_FAILS(cudaSetDevice(n), cudaErrorInvalidDevice);
    CHECK_CUDA_FAILS(cudaSetDevice(-1), cudaErrorInvalidDevice);
    if (const char *wanted = getenv("GSHMEM_HOST_DEVICES"))
        CHECK_EQ(n, atoi(wanted));
    if (const char *wanted = getenv("GSHMEM_TEST_DEVICES")) // by what launchers say
        CHECK_EQ(n, atoi(wanted));
    for (int i = n - 1; i >= 0; i--) {
        CHECK_CUDA(cudaSetDevice(i));
        CHECK_CUDA(cudaGetDevice(&device));
        CHECK_EQ(device, i);
        CHECK_CUDA(cudaDeviceCanAccessPeer(&value, i, 0));
        CHECK_EQ(value, i != 0);
    }
    CHECK_CUDA(cudaGetDeviceProperties(&p, 0));
    CHECK_EQ(p.warpSize, 32);
    CHECK_EQ(p.maxThreadsPerBlock, 1024);
    CHECK(p.multiProcessorCount >= 1 && p.name[0] && p.totalGlobalMem > 0);
    CHECK_CUDA(cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, 0));
    CHECK_EQ(value, p.multiProcessorCount);
    CHECK_CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, fill, 128, 0));
    CHECK(blocks > 0);
    int threads = 0;
    CHECK_CUDA(cudaOccupancyMaxPotentialBlockSize(&blocks, &threads, fill, 0, 0));
    CHECK(blocks > 0 && threads > 0 && threads % 32 == 0);
}

static void check_errors()
{
    CHECK_STR(cudaGetErrorName(cudaSuccess), "cudaSuccess");
    CHECK_STR(cudaGetErrorName(cudaErrorInvalidConfiguration), "cudaErrorInvalidConfiguration");
    CHECK_STR(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory");
    fill<<<1, 2000>>>(nullptr, 0, 0, 0);
    CHECK_EQ(cudaPeekAtLastError(), cudaErrorInvalidConfiguration);
    CHECK_EQ(cudaGetLastError(), cudaErrorInvalidConfiguration);
    CHECK_CUDA(cudaGetLastError());
    fill<<<0, 1>>>(nullptr, 0, 0, 0);
    CHECK_EQ(cudaGetLastError(), cudaErrorInvalidConfiguration);
    fill<<<dim3(1, 70000), 1>>>(nullptr, 0, 0, 0);
    CHECK_EQ(cudaGetLastError(), cudaErrorInvalidConfiguration);
    CHECK_CUDA(cudaDeviceSynchronize());

    int zero = 0;
    void *none = nullptr;
    void *arguments[] = {&none, &none, &zero, &zero};
    CHECK_CUDA_FAILS(
        cudaLaunchCooperativeKernel((const void *)fill, dim3(1 << 20), dim3(1024), arguments, 0, 0),
        cudaErrorCooperativeLaunchTooLarge);
}

/* Bits and numbers, against what the host computes by other means. */
__global__ void numbers(unsigned *u, long long *l, float *f)
{
    unsigned x = 0x00f01234u;

    u[0] = (unsigned)__popc(x);
    u[1] = (unsigned)__clz((int)x);
    u[2] = (unsigned)__ffs((int)x);
    u[3] = __brev(x);
    u[4] = __byte_perm(0x33221100, 0x77665544, 0x7140);
    u[5] = __umulhi(0xffffffffu, 0x10u);
    u[6] = __funnelshift_l(0x80000001u, 0x1u, 4);
    u[7] = __funnelshift_r(0x10u, 0x3u, 4);
    u[8] = (unsigned)__clz(0);
    u[9] = (unsigned)__ffs(0);
    u[10] = (unsigned)__float_as_int(1.0f);
    u[11] = (unsigned)min(3, 5) + max(7u, 2u);
    l[0] = __popcll(0xff00ff0000000001ULL);
    l[1] = __clzll(1);
    l[2] = __ffsll(1LL << 40);
    l[3] = (long long)__brevll(1);
    l[4] = (long long)__umul64hi(1ULL << 63, 6);
    l[5] = __mul64hi(-1, 5);
    f[0] = rsqrtf(4.0f);
    f[1] = __int_as_float(0x40000000);
    f[2] = fmaf(2.0f, 3.0f, 4.0f);
    f[3] = __fdividef(9.0f, 3.0f);
    f[4] = fmaxf(1.0f, 2.0f) + min(5.0f, 4.0f);
    f[5] = __saturatef(1.5f) + __saturatef(-1.0f);
    f[6] = sqrtf(2.0f) * __expf(0.0f);
    f[7] = (float)__float2int_rn(2.5f) + (float)__float2int_ru(2.1f);
    f[8] = norm3df(1.0f, 2.0f, 2.0f) + rhypotf(3.0f, 4.0f);
    f[9] = (float)__float2uint_rd(7.9f) + (float)__double2ll_ru(-2.5) + (float)__double2int_rn(3.5);
    f[10] = __int2float_rn(-3) + (float)(__uint2double_rn(4000000000u) - 4e9);
}

static void check_numbers()
{
    unsigned *u = shared_array<unsigned>(12);
    long long *l = shared_array<long long>(6);
    float *f = shared_array<float>(11);
    static const unsigned eu[] = {9,    8,          3,  0x2c480f00, 0x77114400, 15,
                                  0x18, 0x30000001, 32, 0,          0x3f800000, 10};
    static const long long el[] = {17, 63, 41, (long long)(1ULL << 63), 3, -1};
    static const float ef[] = {0.5f,        2.0f, 10.0f, 3.0f, 6.0f, 1.0f,
                               1.41421356f, 5.0f, 3.2f,  9.0f, -3.0f};

    numbers<<<1, 1>>>(u, l, f);
    CHECK_LAUNCH();
    for (int i = 0; i < 12; i++)
        CHECK_EQ(u[i], eu[i]);
    for (int i = 0; i < 6; i++)
        CHECK_EQ(l[i], el[i]);
    for (int i = 0; i < 11; i++)
        CHECK(fabsf(f[i] - ef[i]) < 1e-5f);
    CHECK_CUDA(cudaFree(u));
    CHECK_CUDA(cudaFree(l));
    CHECK_CUDA(cudaFree(f));
}

int main()
{
    check_symbols();
    check_memory();
    check_properties();
    check_errors();
    check_numbers();
    return 0;
}
