/* What CUDA has here is in <cuda_runtime.h>. */
#ifndef GSHMEM_HOST_DEVICE_DEVICE_LAUNCH_PARAMETERS_H
#define GSHMEM_HOST_DEVICE_DEVICE_LAUNCH_PARAMETERS_H
#include "cuda_runtime.h"
#endif
