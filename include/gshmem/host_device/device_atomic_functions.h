/* What CUDA has here is in <cuda_runtime.h>. */
#ifndef GSHMEM_HOST_DEVICE_DEVICE_ATOMIC_FUNCTIONS_H
#define GSHMEM_HOST_DEVICE_DEVICE_ATOMIC_FUNCTIONS_H
#include "cuda_runtime.h"
#endif
