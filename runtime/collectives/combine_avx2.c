/* The kernels of reductions, for processors with AVX2. Without FMA, which rounds less often and so
 * gives other results. */
#ifdef __x86_64__

#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx2"))), apply_to = function)
#else
#pragma GCC target("avx2")
#endif

#define COMBINE_KERNELS combine_kernels_avx2
#include "runtime/collectives/combine_kernels.h"

#ifdef __clang__
#pragma clang attribute pop
#endif

#endif
