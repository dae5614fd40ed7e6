/* Every way of writing a launch: templates, overloads, macros, pointers, members, namespaces. */
#include "device.h"

#include "launch_kernels.h"

__global__ void plain(int *out, int value)
{
    out[blockIdx.x * blockDim.x + threadIdx.x] = value + (int)threadIdx.x;
}

template <class T, int N> __global__ void __launch_bounds__(256) explicit_template(T *out)
{
    out[threadIdx.x] = (T)(N * 10 + sizeof(T));
}

template <typename T> __global__ void deduced(T *out, T value)
{
    out[threadIdx.x] = value;
}

/* One argument given, one deduced, one with a default. */
template <int N, typename T, class Unused = void> __global__ void partly(T *out)
{
    out[threadIdx.x] = (T)(N + (int)sizeof(T));
}

template <class... More> __global__ void pack(int *out, More... more)
{
    int all[] = {(int)more...};

    *out = 0;
    for (int value : all)
        *out += value;
}

__global__ void overloaded(int *out, int)
{
    *out = 1;
}

__global__ void overloaded(int *out, float)
{
    *out = 2;
}

template <class T> __global__ void specialised(int *out)
{
    *out = 3;
}

template <> __global__ void specialised<double>(int *out)
{
    *out = 4;
}

__global__ void defaults(int *out, const int *none = nullptr, int more = 40)
{
    *out = none ? -1 : more + 2;
}

__global__ void changes_parameter(int *out, int n)
{
    n += (int)threadIdx.x; /* a thread's own */
    __syncthreads();
    out[threadIdx.x] = n;
}

extern "C" __global__ void c_linkage(int *out)
{
    *out = 5;
}

__global__ void declared_first(int *out);

namespace one
{
namespace two
{
static __global__ void inner(int *out)
{
    *out = 6;
}
} /* namespace two */
} /* namespace one */

template <class T> struct holder {
    static void run(int *out, cudaStream_t stream)
    {
        deduced<T><<<dim3(1), 1, 0, stream>>>((T *)out, T(7));
    }
};

struct pair {
    int a, b;
};

template <class Function> __global__ void apply(int *out, int n, Function function)
{
    int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);

    if (i < n)
        out[i] = function(i);
}

struct add_three {
    __device__ int operator()(int i) const
    {
        return i + 3;
    }
};

__global__ void takes_struct(int *out, pair p, const float4 *vectors)
{
    *out = p.a * 100 + p.b + (vectors ? (int)vectors->w : 0);
}

__global__ void no_parameters()
{
}

#define LAUNCH(kernel, grid, block, ...)                                                           \
    do {                                                                                           \
        kernel<<<(grid), (block)>>>(__VA_ARGS__);                                                  \
        CHECK_LAUNCH();                                                                            \
    } while (0)

__global__ void declared_first(int *out)
{
    *out = 8;
}

static void check_all(const int *out, int n, int expected)
{
    for (int i = 0; i < n; i++)
        CHECK_EQ(out[i], expected);
}

static void templates(int *out)
{
    explicit_template<int, 3><<<1, 32>>>(out);
    CHECK_LAUNCH();
    check_all(out, 32, 34);
    explicit_template<long long, 3> <<<1, 2>>> ((long long *)out);
    CHECK_LAUNCH();
    CHECK_EQ(((long long *)out)[1], 38);
    deduced<<<1, 4>>>(out, 11);
    CHECK_LAUNCH();
    check_all(out, 4, 11);
    partly<5><<<1, 4>>>(out);
    CHECK_LAUNCH();
    check_all(out, 4, 9);
    pack<<<1, 1>>>(out, 1, 2.0f, 3LL);
    CHECK_LAUNCH();
    CHECK_EQ(*out, 6);
    specialised<int><<<1, 1>>>(out);
    CHECK_LAUNCH();
    CHECK_EQ(*out, 3);
    specialised<double><<<1, 1>>>(out);
    CHECK_LAUNCH();
    CHECK_EQ(*out, 4);
    holder<float>::run(out, 0);
    CHECK_LAUNCH();
    CHECK_EQ((int)*(float *)out, 7);
    apply<<<2, 8>>>(out, 12, add_three());
    CHECK_LAUNCH();
    CHECK_EQ(out[11], 14);
    CHECK_EQ(out[12] == 15, 0);
}

static void forms(int *out)
{
    LAUNCH(plain, 2, 3, out, 20);
    CHECK_EQ(out[5], 22);
    LAUNCH((explicit_template<int, 4>), dim3(1, 1), dim3(8, 1, 1), out);
    check_all(out, 8, 44);
    overloaded<<<1, 1>>>(out, 1);
    CHECK_LAUNCH();
    CHECK_EQ(*out, 1);
    overloaded<<<1, 1>>>(out, 1.0f);
    CHECK_LAUNCH();
    CHECK_EQ(*out, 2);
    defaults<<<1, 1>>>(out);
    CHECK_LAUNCH();
    CHECK_EQ(*out, 42);
    defaults<<<1, 1>>>(out, NULL, 1);
    CHECK_LAUNCH();
    CHECK_EQ(*out, 3);
    changes_parameter<<<1, 40>>>(out, 1);
    CHECK_LAUNCH();
    for (int i = 0; i < 40; i++)
        CHECK_EQ(out[i], 1 + i);
    c_linkage<<<1, 1>>>(out);
    CHECK_LAUNCH();
    CHECK_EQ(*out, 5);
    one::two::inner<<<1, 1>>>(out);
    CHECK_LAUNCH();
    CHECK_EQ(*out, 6);
    ::declared_first<<<1, 1>>>(out);
    CHECK_LAUNCH();
    CHECK_EQ(*out, 8);
    takes_struct<<<1, 1>>>(out, {3, 4}, nullptr);
    CHECK_LAUNCH();
    CHECK_EQ(*out, 304);
    from_header<<<1, 77>>>(out);
    CHECK_LAUNCH();
    CHECK_EQ(*out, 177);
    no_parameters<<<3, 5>>>();
    CHECK_LAUNCH();
    /* Where a statement is not a block. */
    if (*out == 177)
        defaults<<<1, 1>>>(out);
    else
        plain<<<1, 1>>>(out, 0);
    CHECK_LAUNCH();
    CHECK_EQ(*out, 42);
    for (int i = 0; i < 3; i++)
        plain<<<
            1,
            1
        >>>(out, i);
    CHECK_LAUNCH();
    CHECK_EQ(*out, 2);
}

static void pointers(int *out)
{
    void (*kernel)(int *, int) = plain;
    kernel<<<1, 2>>>(out, 30);
    CHECK_LAUNCH();
    CHECK_EQ(out[1], 31);

    int value = 50;
    void *arguments[] = {&out, &value};
    CHECK_CUDA(cudaLaunchKernel((const void *)plain, dim3(1), dim3(4), arguments, 0, 0));
    value = 0; /* was copied */
    CHECK_LAUNCH();
    CHECK_EQ(out[3], 53);

    const void *instance = (const void *)explicit_template<int, 9>;
    CHECK_CUDA(cudaLaunchKernel(instance, dim3(1), dim3(4), arguments, 0, 0));
    CHECK_LAUNCH();
    CHECK_EQ(out[3], 94);
    CHECK_CUDA(cudaLaunchCooperativeKernel((void *)plain, dim3(2), dim3(4), arguments, 0, 0));
    CHECK_LAUNCH();
    CHECK_EQ(out[7], 3);

    cudaLaunchAttribute cooperative = {};
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(1);
    config.blockDim = dim3(4);
    config.attrs = &cooperative;
    CHECK_CUDA(cudaLaunchKernelEx(&config, plain, out, (short)60));
    CHECK_LAUNCH();
    CHECK_EQ(out[3], 63);
    config.numAttrs = 1;
    cooperative.id = cudaLaunchAttributeCooperative;
    cooperative.val.cooperative = 1;
    CHECK_CUDA(cudaLaunchKernelEx(&config, explicit_template<int, 9>, out));
    CHECK_LAUNCH();
    CHECK_EQ(out[3], 94);
    config.gridDim = dim3(1 << 20);
    CHECK_CUDA_FAILS(cudaLaunchKernelEx(&config, plain, out, 0), cudaErrorCooperativeLaunchTooLarge);
    config.gridDim = dim3(2);
    cooperative.id = cudaLaunchAttributeClusterDimension;
    cooperative.val.clusterDim = {2, 1, 1};
    CHECK_CUDA_FAILS(cudaLaunchKernelEx(&config, plain, out, 0), cudaErrorNotSupported);

    config.gridDim = dim3(1);
    for (int id = 0; id < 18; id++) { /* what is advice, and what is refused */
        const bool refused = id == 7 || id == 12 || id == 13 || id > 14;

        cooperative = {};
        cooperative.id = (cudaLaunchAttributeID)id;
        if (id == 4 || id == 11)
            cooperative.val.clusterDim = {1, 1, 1};
        out[3] = 0;
        if (refused) {
            CHECK_CUDA_FAILS(cudaLaunchKernelEx(&config, plain, out, (short)id),
                             cudaErrorNotSupported);
        } else {
            CHECK_CUDA(cudaLaunchKernelEx(&config, plain, out, (short)id));
            CHECK_LAUNCH();
        }
        CHECK_EQ(out[3], refused ? 0 : id + 3);
    }

    cudaFuncAttributes attributes;
    CHECK_CUDA(cudaFuncGetAttributes(&attributes, (const void *)plain));
    CHECK(attributes.maxThreadsPerBlock >= 256);
    CHECK_CUDA_FAILS(cudaFuncGetAttributes(&attributes, (const void *)&value),
                     cudaErrorInvalidDeviceFunction);
}

__global__ void indices(uint3 *threads, uint3 *blocks)
{
    unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    unsigned i = block * blockDim.x * blockDim.y * blockDim.z + thread;

    threads[i] = threadIdx;
    blocks[i] = blockIdx;
}

static void shapes()
{
    dim3 grid(3, 4, 5), block(2, 7, 3);
    size_t count = 60 * 42, i = 0;
    uint3 *threads = shared_array<uint3>(count), *blocks = shared_array<uint3>(count);

    indices<<<grid, block>>>(threads, blocks);
    CHECK_LAUNCH();
    for (unsigned bz = 0; bz < grid.z; bz++)
        for (unsigned by = 0; by < grid.y; by++)
            for (unsigned bx = 0; bx < grid.x; bx++)
                for (unsigned z = 0; z < block.z; z++)
                    for (unsigned y = 0; y < block.y; y++)
                        for (unsigned x = 0; x < block.x; x++, i++) {
                            CHECK(threads[i].x == x && threads[i].y == y && threads[i].z == z);
                            CHECK(blocks[i].x == bx && blocks[i].y == by && blocks[i].z == bz);
                        }
    CHECK_CUDA(cudaFree(threads));
    CHECK_CUDA(cudaFree(blocks));
}

/* More blocks than can be there at once. */
static void waves()
{
    int *out = shared_array<int>(1);

    apply<<<20000, 64>>>(out, 1, add_three());
    CHECK_LAUNCH();
    CHECK_EQ(*out, 3);
    CHECK_CUDA(cudaFree(out));
}

int main()
{
    int *out = shared_array<int>(1024);

    templates(out);
    forms(out);
    pointers(out);
    CHECK_CUDA(cudaFree(out));
    shapes();
    waves();
    return 0;
}
