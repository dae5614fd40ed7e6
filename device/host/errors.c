#include "device/host/errors.h"

#include <stdatomic.h>

#include "device/host/calling_thread.h"

/* Of the device, which is one for the process: later calls of all threads fail with it, as on a
 * GPU. */
static atomic_int failure;

cudaError_t report_error(cudaError_t error)
{
    if (error)
        calling_thread.last_error = error;
    return error;
}

cudaError_t device_error(void)
{
    return (cudaError_t)atomic_load_explicit(&failure, memory_order_relaxed);
}

void device_failed(cudaError_t error)
{
    int none = cudaSuccess;

    atomic_compare_exchange_strong(&failure, &none, (int)error);
}

cudaError_t cudaPeekAtLastError(void)
{
    return device_error() ? device_error() : calling_thread.last_error;
}

cudaError_t cudaGetLastError(void)
{
    cudaError_t error = cudaPeekAtLastError();

    calling_thread.last_error = cudaSuccess;
    return error;
}

const char *cudaGetErrorName(cudaError_t error)
{
    switch (error) {
    case cudaSuccess:
        return "cudaSuccess";
#define X(name, value, text)                                                                       \
    case cudaError##name:                                                                          \
        return "cudaError" #name;
        GSHMEM_HOST_ERRORS(X)
#undef X
    }
    return "unrecognized error code";
}

const char *cudaGetErrorString(cudaError_t error)
{
    switch (error) {
    case cudaSuccess:
        return "no error";
#define X(name, value, text)                                                                       \
    case cudaError##name:                                                                          \
        return text;
        GSHMEM_HOST_ERRORS(X)
#undef X
    }
    return "unrecognized error code";
}

void errors_forget(void)
{
    atomic_store(&failure, cudaSuccess);
    calling_thread.last_error = cudaSuccess;
}
