/* NVSHMEM's tensors: an address with a shape and strides, in elements, of up to two dimensions.
 * Sizes and strides are numbers, or ConstInt where the compiler knows them. */
#ifndef NVSHMEM_DEVICE_TENSOR_H
#define NVSHMEM_DEVICE_TENSOR_H

#include "nvshmem/base.h"

#if defined(GSHMEM_CUDA) && __cplusplus >= 201703L

#if defined(__has_include) && __has_include(<cuda/std/tuple>)
#include <cuda/std/tuple>
#include <cuda/std/type_traits>
#else
/* NVIDIA's headers are not there: the standard ones have the same names on the host device. */
#include <tuple>
#include <type_traits>
namespace cuda
{
namespace std
{
using ::std::enable_if;
using ::std::get;
using ::std::integral_constant;
using ::std::is_same;
using ::std::make_tuple;
using ::std::tuple;
using ::std::tuple_size;
} // namespace std
} // namespace cuda
#endif

/* A number that is known when the program is compiled. */
template <int v> struct ConstInt : cuda::std::integral_constant<int, v> {
    __host__ __device__ constexpr operator int() const
    {
        return v;
    }
};

namespace nvshmemx
{

template <class... Sizes> using shape = cuda::std::tuple<Sizes...>;
template <class... Steps> using stride = cuda::std::tuple<Steps...>;

template <class... Sizes>
__host__ __device__ constexpr shape<Sizes...> make_shape(const Sizes &...sizes)
{
    return {sizes...};
}

template <class... Steps>
__host__ __device__ constexpr stride<Steps...> make_stride(const Steps &...steps)
{
    return {steps...};
}

template <class Shape, class Stride> struct Layout {
    Shape _shape;
    Stride _stride;

    __host__ __device__ constexpr Layout(const Shape &shape = {}, const Stride &stride = {})
        : _shape(shape), _stride(stride)
    {
    }
    __host__ __device__ constexpr Shape shape() const
    {
        return _shape;
    }
    __host__ __device__ constexpr Stride stride() const
    {
        return _stride;
    }
};

template <class Shape, class Stride>
__host__ __device__ constexpr Layout<Shape, Stride> make_layout(const Shape &shape,
                                                                const Stride &stride)
{
    return Layout<Shape, Stride>(shape, stride);
}

template <class T, class L> struct Tensor {
    using value_type = T;
    using layout_type = L;
    T *_data;
    const L _layout;

    __host__ __device__ constexpr Tensor(T *data, L layout) : _data(data), _layout(layout)
    {
    }
    __host__ __device__ constexpr Tensor(L layout) : _data(nullptr), _layout(layout)
    {
    }
    __host__ __device__ constexpr T *data() const
    {
        return _data;
    }
    __host__ __device__ constexpr L layout() const
    {
        return _layout;
    }
    __host__ __device__ constexpr auto shape() const
    {
        return _layout.shape();
    }
    __host__ __device__ constexpr auto stride() const
    {
        return _layout.stride();
    }
};

typedef enum {
    NVLS_ONE_SHOT_PUSH_NBI,
    NVLS_ONE_SHOT_PULL_NBI,
    NVLS_TWO_SHOT_PUSH_NBI,
    NVLS_TWO_SHOT_PULL_NBI
} tile_coll_algo_t;

typedef enum {
    PEER_PUSH_NBI = 0,
    PEER_PULL_NBI = 0,
    REMOTE_PUSH_NBI = 1,
    REMOTE_PULL_NBI = 1
} tile_algo_t;

} // namespace nvshmemx

#endif
#endif
