/* The record of one OS thread: what its CUDA calls leave for its later ones. Fibers of kernels have
 * none of their own; most of the API is not for them. */
#ifndef GSHMEM_DEVICE_HOST_CALLING_THREAD_H
#define GSHMEM_DEVICE_HOST_CALLING_THREAD_H

#include <stdbool.h>
#include <stddef.h>

#include "gshmem/host_device/cuda_runtime_api.h"

enum { NESTED_LAUNCHES_MAX = 4 };

/* <<<grid, block, shared, stream>>> of a launch whose arguments are still being computed. */
struct configuration {
    dim3 grid, block;
    size_t shared;
    cudaStream_t stream;
    bool cooperative;
    cudaError_t error; /* of the launch it was for */
};

struct calling_thread {
    cudaError_t last_error;
    int device;                 /* chosen by cudaSetDevice */
    struct CUstream_st *stream; /* its cudaStreamPerThread; NULL: not used so far */
    bool in_host_function;      /* a helper, which runs functions of cudaLaunchHostFunc */
    struct configuration launch[NESTED_LAUNCHES_MAX];
    unsigned launches;
};

/* Stays thread-local: a CUDA call has no argument that the record could hang from. */
extern __thread struct calling_thread calling_thread __attribute__((tls_model("initial-exec")));

#endif
