/* For tests in CUDA source: checks of what the runtime answers, and arrays that both sides see. */
#ifndef GSHMEM_TESTS_DEVICE_H
#define GSHMEM_TESTS_DEVICE_H

#include <cuda_runtime.h>

#include "check.h"

#define CHECK_CUDA(call)                                                                           \
    do {                                                                                           \
        cudaError_t check_error = (call);                                                          \
        if (check_error != cudaSuccess)                                                            \
            CHECK_FAIL("%s: %s", #call, cudaGetErrorString(check_error));                          \
    } while (0)

#define CHECK_CUDA_FAILS(call, error)                                                              \
    do {                                                                                           \
        cudaError_t check_error = (call);                                                          \
        if (check_error != (error))                                                                \
            CHECK_FAIL("%s: %s, expected %s", #call, cudaGetErrorName(check_error),                \
                       cudaGetErrorName(error));                                                   \
        (void)cudaGetLastError();                                                                  \
    } while (0)

/* Whatever was launched went well. */
#define CHECK_LAUNCH()                                                                             \
    do {                                                                                           \
        CHECK_CUDA(cudaGetLastError());                                                            \
        CHECK_CUDA(cudaDeviceSynchronize());                                                       \
    } while (0)

/* count zeroed elements that kernels and the host can use. */
template <class T> static T *shared_array(size_t count)
{
    T *array = nullptr;

    CHECK_CUDA(cudaMallocManaged(&array, count * sizeof(T)));
    memset((void *)array, 0, count * sizeof(T));
    return array;
}

#endif
