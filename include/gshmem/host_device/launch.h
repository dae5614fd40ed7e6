/* What the translator's output calls: launches, and shared memory by its declaration. */
#ifndef GSHMEM_HOST_DEVICE_LAUNCH_H
#define GSHMEM_HOST_DEVICE_LAUNCH_H

#include "execution.h"

namespace gshmem_host
{

inline void configure(dim3 grid, dim3 block, size_t shared = 0, cudaStream_t stream = nullptr)
{
    gshmem_host_configure(grid, block, shared, stream);
}

template <size_t... I> struct indices {
};
template <size_t N, size_t... I> struct count_to : count_to<N - 1, N - 1, I...> {
};
template <size_t... I> struct count_to<0, I...> {
    typedef indices<I...> type;
};

template <class T> struct plain {
    typedef T type;
};
template <class T> struct plain<T &> {
    typedef T type;
};

/* Hidden: otherwise libraries with kernels of the same name would share the objects of the
 * first. */
#define GSHMEM_HOST_HIDDEN __attribute__((visibility("hidden")))
template <class Signature, Signature *function> struct GSHMEM_HOST_HIDDEN kernel;

/* There is one of these for each __global__ function, and for each instance of a __global__
 * template. A call of the function launches the kernel; the kernel's body is a lambda that has
 * captured the arguments. */
template <class... Parameter, void (*function)(Parameter...)>
struct GSHMEM_HOST_HIDDEN kernel<void(Parameter...), function> {
    template <size_t... I> static void call(void **arguments, indices<I...>)
    {
        (void)arguments;
        function(*static_cast<typename plain<Parameter>::type *>(arguments[I])...);
    }
    static void unpack(void **arguments)
    {
        call(arguments, typename count_to<sizeof...(Parameter)>::type());
    }

    /* Each CUDA thread has its own copy of the parameters. */
    template <class Body> static void run(void *closure)
    {
        Body body(*static_cast<const Body *>(closure));
        body();
    }
    template <class Body> static void release(void *closure)
    {
        delete static_cast<Body *>(closure);
    }
    template <class Body> static void launch(const char *name, const Body &body)
    {
        registered.record.name = name;
        gshmem_host_launch(&registered.record, new Body(body), run<Body>, release<Body>);
    }

    struct registration {
        gshmem_host_kernel record;

        registration() : record{reinterpret_cast<const void *>(function), "", unpack, 0, nullptr}
        {
            gshmem_host_register(&record);
        }
        ~registration()
        {
            gshmem_host_unregister(&record);
        }
    };
    static registration registered;
};

template <class... Parameter, void (*function)(Parameter...)>
typename kernel<void(Parameter...), function>::registration
    kernel<void(Parameter...), function>::registered;

/* Declaration is a struct that contains the declaration after __shared__. */
template <class Declaration> struct GSHMEM_HOST_HIDDEN shared_number {
    static const unsigned value;
};
template <class Declaration>
const unsigned shared_number<Declaration>::value = gshmem_host_shared_number();

template <class Declaration> inline Declaration &shared()
{
    return *static_cast<Declaration *>(gshmem_host_shared(
        shared_number<Declaration>::value, sizeof(Declaration), alignof(Declaration)));
}

#undef GSHMEM_HOST_HIDDEN

} /* namespace gshmem_host */

/* CUDA's overloads that take a kernel by its type. */
template <class... P>
inline cudaError_t cudaLaunchKernel(void (*function)(P...), dim3 grid, dim3 block, void **arguments,
                                    size_t shared = 0, cudaStream_t stream = nullptr)
{
    return ::cudaLaunchKernel(reinterpret_cast<const void *>(function), grid, block, arguments,
                              shared, stream);
}

template <class... P>
inline cudaError_t cudaLaunchCooperativeKernel(void (*function)(P...), dim3 grid, dim3 block,
                                               void **arguments, size_t shared = 0,
                                               cudaStream_t stream = nullptr)
{
    return ::cudaLaunchCooperativeKernel(reinterpret_cast<const void *>(function), grid, block,
                                         arguments, shared, stream);
}

template <class... P, class... A>
inline cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t *config, void (*function)(P...),
                                      A &&...arguments)
{
    return [=](P... parameters) {
        void *pointers[] = {(void *)&parameters..., nullptr};

        return cudaLaunchKernelExC(config, reinterpret_cast<const void *>(function), pointers);
    }(static_cast<A &&>(arguments)...);
}

template <class... P>
inline cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attributes, void (*function)(P...))
{
    return ::cudaFuncGetAttributes(attributes, reinterpret_cast<const void *>(function));
}

template <class... P>
inline cudaError_t cudaFuncSetAttribute(void (*function)(P...), cudaFuncAttribute attribute,
                                        int value)
{
    return ::cudaFuncSetAttribute(reinterpret_cast<const void *>(function), attribute, value);
}

template <class... P>
inline cudaError_t cudaFuncSetCacheConfig(void (*function)(P...), cudaFuncCache config)
{
    return ::cudaFuncSetCacheConfig(reinterpret_cast<const void *>(function), config);
}

template <class... P>
inline cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks,
                                                                 void (*function)(P...),
                                                                 int threads, size_t shared)
{
    return ::cudaOccupancyMaxActiveBlocksPerMultiprocessor(
        blocks, reinterpret_cast<const void *>(function), threads, shared);
}

/* Blocks of 256 threads, or of `limit` if that is less; as many blocks as run at once. */
inline cudaError_t cudaOccupancyMaxPotentialBlockSize(int *blocks, int *threads,
                                                      const void *function, size_t shared = 0,
                                                      int limit = 0)
{
    int size = limit > 0 && limit < 256 ? limit : 256, each = 0, processors = 0;
    cudaError_t error =
        cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, function, size, shared);

    if (!error)
        error = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0);
    if (!error) {
        *blocks = each * processors;
        *threads = size;
    }
    return error;
}

template <class... P>
inline cudaError_t cudaOccupancyMaxPotentialBlockSize(int *blocks, int *threads,
                                                      void (*function)(P...), size_t shared = 0,
                                                      int limit = 0)
{
    return cudaOccupancyMaxPotentialBlockSize(blocks, threads,
                                              reinterpret_cast<const void *>(function), shared,
                                              limit);
}

/* Typed allocation; access to __device__ variables, which are ordinary variables here. */
template <class T> inline cudaError_t cudaMalloc(T **pointer, size_t bytes)
{
    return ::cudaMalloc(reinterpret_cast<void **>(pointer), bytes);
}

template <class T>
inline cudaError_t cudaMallocPitch(T **pointer, size_t *pitch, size_t width, size_t height)
{
    return ::cudaMallocPitch(reinterpret_cast<void **>(pointer), pitch, width, height);
}

template <class T>
inline cudaError_t cudaMallocAsync(T **pointer, size_t bytes, cudaStream_t stream)
{
    return ::cudaMallocAsync(reinterpret_cast<void **>(pointer), bytes, stream);
}

template <class T>
inline cudaError_t cudaMallocManaged(T **pointer, size_t bytes,
                                     unsigned flags = cudaMemAttachGlobal)
{
    return ::cudaMallocManaged(reinterpret_cast<void **>(pointer), bytes, flags);
}

template <class T> inline cudaError_t cudaMallocHost(T **pointer, size_t bytes)
{
    return ::cudaMallocHost(reinterpret_cast<void **>(pointer), bytes);
}

template <class T> inline cudaError_t cudaHostAlloc(T **pointer, size_t bytes, unsigned flags)
{
    return ::cudaHostAlloc(reinterpret_cast<void **>(pointer), bytes, flags);
}

template <class T>
inline cudaError_t cudaHostGetDevicePointer(T **device, void *host, unsigned flags)
{
    return ::cudaHostGetDevicePointer(reinterpret_cast<void **>(device), host, flags);
}

template <class T>
inline cudaError_t cudaMemcpyToSymbol(T &symbol, const void *from, size_t bytes, size_t offset = 0,
                                      cudaMemcpyKind kind = cudaMemcpyHostToDevice)
{
    return ::cudaMemcpy((char *)&symbol + offset, from, bytes, kind);
}

template <class T>
inline cudaError_t cudaMemcpyToSymbolAsync(T &symbol, const void *from, size_t bytes, size_t offset,
                                           cudaMemcpyKind kind, cudaStream_t stream = nullptr)
{
    return ::cudaMemcpyAsync((char *)&symbol + offset, from, bytes, kind, stream);
}

template <class T>
inline cudaError_t cudaMemcpyFromSymbol(void *to, const T &symbol, size_t bytes, size_t offset = 0,
                                        cudaMemcpyKind kind = cudaMemcpyDeviceToHost)
{
    return ::cudaMemcpy(to, (const char *)&symbol + offset, bytes, kind);
}

template <class T>
inline cudaError_t cudaMemcpyFromSymbolAsync(void *to, const T &symbol, size_t bytes, size_t offset,
                                             cudaMemcpyKind kind, cudaStream_t stream = nullptr)
{
    return ::cudaMemcpyAsync(to, (const char *)&symbol + offset, bytes, kind, stream);
}

template <class T> inline cudaError_t cudaGetSymbolAddress(void **pointer, const T &symbol)
{
    *pointer = (void *)&symbol;
    return cudaSuccess;
}

template <class T> inline cudaError_t cudaGetSymbolSize(size_t *bytes, const T &)
{
    *bytes = sizeof(T);
    return cudaSuccess;
}

#endif
