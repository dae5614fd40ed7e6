/* The GPU that a PE takes, and what users are told of it. */
#ifndef GSHMEM_CUDA_GPU_H
#define GSHMEM_CUDA_GPU_H

#include "device/cuda/context.h"

/* Chooses this PE's GPU among *gpus; false: `why` says why there is none to take. */
bool cuda_find_gpu_for(const struct cuda_driver *d, const struct device_config *config, int *gpus,
                       cuda_gpu *gpu, char *why, size_t why_size);
/* The GPU with that uuid among those that this process sees, or -1. */
cuda_gpu cuda_find_gpu(const struct cuda *c, const unsigned char uuid[16]);

/* The lines of gshmem-info about the GPU. */
void cuda_report(const struct device_config *config, struct device_report *r);

#endif
