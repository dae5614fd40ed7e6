/* <cuda_runtime.h> for programs built for the host device: CUDA's language and runtime API, with
 * kernels that run on the threads of the CPU. Included before any .cu source by gshmemcc. */
#ifndef GSHMEM_HOST_DEVICE_CUDA_RUNTIME_H
#define GSHMEM_HOST_DEVICE_CUDA_RUNTIME_H

#include "gshmem_names_begin.h"

#include "cuda_runtime_api.h"

#ifdef __cplusplus

/* nvcc includes these headers by itself, and programs rely on that. If an assertion fails in a
 * kernel, the launch ends. */
#ifdef __CUDACC__
#define __assert_fail gshmem_host_assert_fail
#endif
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <functional>
#include <new>
#include <utility>

/* Says that these are GSHMEM's headers, and that the code is compiled for the host device. */
#define GSHMEM_HOST_DEVICE 1

#define __host__
#define __device__
#define __constant__
#define __managed__
#define __grid_constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __builtin_align__(bytes) __attribute__((aligned(bytes)))
#ifndef __CUDACC__
/* In sources that are not translated: they can declare kernels, but not define or launch them. */
#define __global__
#endif

#include "execution.h"
#include "device_functions.h"
#include "device_atomics.h"
#include "device_math.h"
#include "launch.h"

#endif

#include "gshmem_names_end.h"
#endif
