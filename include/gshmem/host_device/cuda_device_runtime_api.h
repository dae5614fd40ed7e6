/* What CUDA has here is in <cuda_runtime.h>. */
#ifndef GSHMEM_HOST_DEVICE_CUDA_DEVICE_RUNTIME_API_H
#define GSHMEM_HOST_DEVICE_CUDA_DEVICE_RUNTIME_API_H
#include "cuda_runtime.h"
#endif
