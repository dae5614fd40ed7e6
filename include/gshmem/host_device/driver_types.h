/* What CUDA has here is in <cuda_runtime.h>. */
#ifndef GSHMEM_HOST_DEVICE_DRIVER_TYPES_H
#define GSHMEM_HOST_DEVICE_DRIVER_TYPES_H
#include "cuda_runtime.h"
#endif
