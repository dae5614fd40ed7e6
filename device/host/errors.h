/* Errors of the runtime API: the one that a thread remembers, and the failure of the device. */
#ifndef GSHMEM_DEVICE_HOST_ERRORS_H
#define GSHMEM_DEVICE_HOST_ERRORS_H

#include "gshmem/host_device/cuda_runtime_api.h"

/* Remembers an error for this thread's cudaGetLastError() and returns it. */
cudaError_t report_error(cudaError_t error);
/* The error of the first kernel that failed, which stays until cudaDeviceReset(), or cudaSuccess.
 */
cudaError_t device_error(void);
void device_failed(cudaError_t error);
/* For cudaDeviceReset(): the device has not failed, and this thread remembers no error. */
void errors_forget(void);

#endif
