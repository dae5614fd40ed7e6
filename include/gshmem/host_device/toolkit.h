/* Keeps the headers of a CUDA toolkit apart from these, where both are in the include path, as with
 * /usr/local/include: headers of its libraries, such as <cublas_v2.h>, include the toolkit's own
 * <cuda_runtime_api.h> from beside them. The names by which those headers know that they were read
 * are defined here, so that they add nothing to what is declared already. */
#ifndef GSHMEM_HOST_DEVICE_TOOLKIT_H
#define GSHMEM_HOST_DEVICE_TOOLKIT_H

#if defined(__VECTOR_TYPES_H__) || defined(__DRIVER_TYPES_H__) || defined(__cuda_cuda_h__)
#error "a CUDA toolkit's headers came before <cuda_runtime.h> of the host device: include it first"
#endif

#define __BUILTIN_TYPES_H__
#define __CHANNEL_DESCRIPTOR_H__
#define __COMMON_FUNCTIONS_H__
#define __CUDA_DEVICE_RUNTIME_API_H__
#define __CUDA_RUNTIME_API_H__
#define __CUDA_RUNTIME_H__
#define __DEVICE_ATOMIC_FUNCTIONS_H__
#define __DEVICE_FUNCTIONS_H__
#define __DEVICE_LAUNCH_PARAMETERS_H__
#define __DEVICE_TYPES_H__
#define __DRIVER_FUNCTIONS_H__
#define __DRIVER_TYPES_H__
#define __HOST_CONFIG_H__
#define __HOST_DEFINES_H__
#define __MATH_FUNCTIONS_H__
#define __SURFACE_TYPES_H__
#define __TEXTURE_TYPES_H__
#define __VECTOR_FUNCTIONS_H__
#define __VECTOR_TYPES_H__
#define __cuda_cuda_h__

/* What those headers would define for others. */
#define CUDAAPI
#define CUDARTAPI
#define CUDA_CB
#define CUDART_CB
#define CUDARTAPI_CDECL

/* Before a function of a library of the toolkit's: a call of it compiles, with a line that says why
 * it will not be linked. */
#ifdef __has_attribute
#if __has_attribute(warning)
#define GSHMEM_HOST_NOT_LINKED(library)                                                            \
    __attribute__((warning("the host device has no " library                                       \
                           ": this call compiles, and does not link")))
#endif
#endif
#ifndef GSHMEM_HOST_NOT_LINKED
#define GSHMEM_HOST_NOT_LINKED(library)
#endif

#endif
