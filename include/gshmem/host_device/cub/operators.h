/* CUB's own function objects, of the versions before 3. */
#ifndef GSHMEM_HOST_DEVICE_CUB_OPERATORS_H
#define GSHMEM_HOST_DEVICE_CUB_OPERATORS_H

#include "../libcu/functional.h"

#include "gshmem_names_begin.h"

namespace cub
{

typedef ::std::plus<> Sum;
typedef ::std::minus<> Difference;
typedef ::std::divides<> Division;
typedef ::std::equal_to<> Equality;
typedef ::std::not_equal_to<> Inequality;
typedef ::cuda::maximum<> Max;
typedef ::cuda::minimum<> Min;

} /* namespace cub */

#include "gshmem_names_end.h"

#endif
