/* Attributes of launches: which are honoured, which are advice, and which are refused. */
#ifndef GSHMEM_DEVICE_HOST_CALLS_ATTRIBUTES_H
#define GSHMEM_DEVICE_HOST_CALLS_ATTRIBUTES_H

#include <stdbool.h>

#include "gshmem/host_device/cuda_runtime_api.h"

/* Sets *cooperative if the attributes ask for it. An error was logged. */
cudaError_t launch_attributes(const cudaLaunchAttribute *attribute, unsigned n, bool *cooperative);

#endif
