/* Function objects of libcu++: the C++ library's own, and maximum and minimum. */
#ifndef GSHMEM_HOST_DEVICE_LIBCU_FUNCTIONAL_H
#define GSHMEM_HOST_DEVICE_LIBCU_FUNCTIONAL_H

#include <functional>
#include <type_traits>

#include "gshmem_names_begin.h"

namespace cuda
{
namespace std
{

using ::std::bit_and;
using ::std::bit_or;
using ::std::bit_xor;
using ::std::divides;
using ::std::equal_to;
using ::std::greater;
using ::std::greater_equal;
using ::std::less;
using ::std::less_equal;
using ::std::logical_and;
using ::std::logical_or;
using ::std::minus;
using ::std::modulus;
using ::std::multiplies;
using ::std::negate;
using ::std::not_equal_to;
using ::std::plus;

} /* namespace std */

#define GSHMEM_HOST_CHOOSES(name, result)                                                          \
    template <class T = void> struct name {                                                        \
        T operator()(const T &x, const T &y) const                                                 \
        {                                                                                          \
            return result;                                                                         \
        }                                                                                          \
    };                                                                                             \
    template <> struct name<void> {                                                                \
        template <class X, class Y>                                                                \
        typename ::std::common_type<X, Y>::type operator()(const X &x, const Y &y) const           \
        {                                                                                          \
            return result;                                                                         \
        }                                                                                          \
    };
GSHMEM_HOST_CHOOSES(maximum, x < y ? y : x)
GSHMEM_HOST_CHOOSES(minimum, y < x ? y : x)
#undef GSHMEM_HOST_CHOOSES

} /* namespace cuda */

#include "gshmem_names_end.h"

#endif
