/* The part of NVIDIA's driver API that GSHMEM calls, in words of its own: types, constants and
 * entry points as the CUDA documentation gives them, so that nothing of CUDA is needed to build
 * this. tests/cuda/header.c holds all of it against cuda.h where that is installed.
 *
 * The driver is opened when it is asked for: a machine without it runs all else. */
#ifndef GSHMEM_CUDA_DRIVER_H
#define GSHMEM_CUDA_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef int cuda_result;
typedef int cuda_gpu; /* by its number among those that CUDA_VISIBLE_DEVICES leaves */
typedef void *cuda_context;
typedef void *cuda_stream;
typedef void *cuda_event;
typedef void *cuda_module;
typedef void *cuda_function;
typedef unsigned long long cuda_address;
typedef unsigned long long cuda_piece; /* physical memory, without an address */

enum {
    CUDA_OK = 0,
    CUDA_INVALID_VALUE = 1,
    CUDA_OUT_OF_MEMORY = 2,
    CUDA_NO_DEVICE = 100,
    CUDA_INVALID_DEVICE = 101,
    CUDA_INVALID_CONTEXT = 201,
    CUDA_NO_BINARY = 209,
    CUDA_PEER_ACCESS_UNSUPPORTED = 217,
    CUDA_NOT_FOUND = 500,
    CUDA_NOT_READY = 600,
    CUDA_ILLEGAL_ADDRESS = 700,
    CUDA_HOST_REGISTERED_BEFORE = 712,
    CUDA_NOT_PERMITTED = 800,
    CUDA_NOT_SUPPORTED = 801,
    CUDA_CAPTURE_UNSUPPORTED = 900,
};

enum cuda_attribute {
    CUDA_ATTRIBUTE_COMPUTE_MODE = 20,
    CUDA_ATTRIBUTE_UNIFIED_ADDRESSING = 41,
    CUDA_ATTRIBUTE_MAJOR = 75,
    CUDA_ATTRIBUTE_MINOR = 76,
    CUDA_ATTRIBUTE_REGISTERED_IN_PLACE =
        91,                   /* GPUs see registered host memory at its own address */
    CUDA_ATTRIBUTE_VMM = 102, /* memory and addresses by themselves: cuMemCreate, cuMemMap, … */
    CUDA_ATTRIBUTE_DESCRIPTORS = 103, /* that memory goes to other processes as descriptors, */
    CUDA_ATTRIBUTE_RDMA_VMM = 110,    /* that NICs reach such memory must be asked for, */
    CUDA_ATTRIBUTE_FLUSHES = 117,     /* who can flush what NICs have written there: a bit each */
    CUDA_ATTRIBUTE_ORDERING = 118,    /* who sees it in its order without that: a CUDA_ORDERED */
    CUDA_ATTRIBUTE_DMA_BUF = 124,     /* or as a dma-buf to other devices, */
    CUDA_ATTRIBUTE_FABRIC = 128,      /* or as handles that an NVLink domain knows */
    CUDA_ATTRIBUTE_MULTICAST = 132,   /* that a switch stores in several at once, and combines */
};

enum {
    CUDA_COMPUTE_MODE_PROHIBITED = 2,
    CUDA_ALLOCATION_PINNED = 1,
    CUDA_LOCATION_GPU = 1,
    CUDA_HANDLE_NONE = 0,
    CUDA_HANDLE_DESCRIPTOR = 1,
    CUDA_HANDLE_FABRIC = 8,
    CUDA_READ_WRITE = 3,
    CUDA_GRANULARITY_MINIMUM = 0,
    CUDA_GRANULARITY_RECOMMENDED = 1,
    CUDA_HOST_PORTABLE = 1,
    CUDA_HOST_DEVICE_MAP = 2,
    CUDA_STREAM_NON_BLOCKING = 1,
    CUDA_EVENT_NO_TIMING = 2,
    CUDA_CAPTURE_RELAXED = 2,
    CUDA_IPC_LAZY_PEER_ACCESS = 1,
    CUDA_POINTER_MEMORY_TYPE = 2,
    CUDA_POINTER_RANGE_START = 11,
    CUDA_POINTER_RANGE_BYTES = 12,
    CUDA_POINTER_MAPPING_BYTES = 18, /* of one cuMemMap */
    CUDA_POINTER_MAPPING_START = 19,
    CUDA_RANGE_DMA_BUF = 1,
    CUDA_FLUSHES_BY_HOST = 1, /* cuFlushGPUDirectRDMAWrites */
    CUDA_FLUSH_OF_CONTEXT = 0,
    CUDA_ORDERED_NEVER = 0,
    CUDA_ORDERED_OWNER = 100, /* the GPU itself */
    CUDA_ORDERED_ALL = 200,   /* and all others of the machine */
    CUDA_MEMORY_HOST = 1,
    CUDA_MEMORY_GPU = 2,
};

struct cuda_location {
    int type;
    int id;
};

struct cuda_allocation {
    int type;
    int handle_types;
    struct cuda_location location;
    void *for_windows;
    struct {
        unsigned char compression;
        unsigned char gpu_direct_rdma;
        unsigned short usage;
        unsigned char reserved[4];
    } flags;
};

struct cuda_multicast {
    unsigned gpus;
    size_t bytes;
    unsigned long long handle_types;
    unsigned long long flags;
};

struct cuda_access {
    struct cuda_location location;
    int flags;
};

struct cuda_uuid {
    unsigned char bytes[16];
};

struct cuda_handle { /* of the fabric, or CUDA IPC's */
    unsigned char bytes[64];
};

/*  X(name here, the driver's symbol, arguments) */
#define CUDA_DRIVER(X)                                                                             \
    X(init, cuInit, (unsigned flags))                                                              \
    X(version, cuDriverGetVersion, (int *version))                                                 \
    X(error_name, cuGetErrorName, (cuda_result result, const char **name))                         \
    X(error_text, cuGetErrorString, (cuda_result result, const char **text))                       \
    X(gpu_count, cuDeviceGetCount, (int *count))                                                   \
    X(gpu_get, cuDeviceGet, (cuda_gpu *gpu, int ordinal))                                          \
    X(gpu_name, cuDeviceGetName, (char *name, int size, cuda_gpu gpu))                             \
    X(gpu_uuid, cuDeviceGetUuid_v2, (struct cuda_uuid *uuid, cuda_gpu gpu))                        \
    X(gpu_pci, cuDeviceGetPCIBusId, (char *address, int size, cuda_gpu gpu))                       \
    X(gpu_attribute, cuDeviceGetAttribute, (int *value, enum cuda_attribute which, cuda_gpu gpu))  \
    X(gpu_memory, cuDeviceTotalMem_v2, (size_t *bytes, cuda_gpu gpu))                              \
    X(gpu_can_access, cuDeviceCanAccessPeer, (int *can, cuda_gpu gpu, cuda_gpu peer))              \
    X(primary_retain, cuDevicePrimaryCtxRetain, (cuda_context *context, cuda_gpu gpu))             \
    X(primary_release, cuDevicePrimaryCtxRelease_v2, (cuda_gpu gpu))                               \
    X(context_current, cuCtxGetCurrent, (cuda_context *context))                                   \
    X(context_set, cuCtxSetCurrent, (cuda_context context))                                        \
    X(context_push, cuCtxPushCurrent_v2, (cuda_context context))                                   \
    X(context_pop, cuCtxPopCurrent_v2, (cuda_context *context))                                    \
    X(context_gpu, cuCtxGetDevice, (cuda_gpu *gpu))                                                \
    X(granularity, cuMemGetAllocationGranularity,                                                  \
      (size_t *bytes, const struct cuda_allocation *what, int option))                             \
    X(reserve, cuMemAddressReserve,                                                                \
      (cuda_address *at, size_t bytes, size_t alignment, cuda_address hint,                        \
       unsigned long long flags))                                                                  \
    X(unreserve, cuMemAddressFree, (cuda_address at, size_t bytes))                                \
    X(create, cuMemCreate,                                                                         \
      (cuda_piece *piece, size_t bytes, const struct cuda_allocation *what,                        \
       unsigned long long flags))                                                                  \
    X(release, cuMemRelease, (cuda_piece piece))                                                   \
    X(map, cuMemMap,                                                                               \
      (cuda_address at, size_t bytes, size_t offset, cuda_piece piece, unsigned long long flags))  \
    X(unmap, cuMemUnmap, (cuda_address at, size_t bytes))                                          \
    X(set_access, cuMemSetAccess,                                                                  \
      (cuda_address at, size_t bytes, const struct cuda_access *access, size_t n))                 \
    X(retain, cuMemRetainAllocationHandle, (cuda_piece *piece, void *at))                          \
    X(piece_properties, cuMemGetAllocationPropertiesFromHandle,                                    \
      (struct cuda_allocation *what, cuda_piece piece))                                            \
    X(export_piece, cuMemExportToShareableHandle,                                                  \
      (void *handle, cuda_piece piece, int type, unsigned long long flags))                        \
    X(import_piece, cuMemImportFromShareableHandle, (cuda_piece *piece, void *handle, int type))   \
    X(allocate, cuMemAlloc_v2, (cuda_address *at, size_t bytes))                                   \
    X(free, cuMemFree_v2, (cuda_address at))                                                       \
    X(ipc_get, cuIpcGetMemHandle, (struct cuda_handle *handle, cuda_address at))                   \
    X(ipc_open, cuIpcOpenMemHandle_v2,                                                             \
      (cuda_address *at, struct cuda_handle handle, unsigned flags))                               \
    X(ipc_close, cuIpcCloseMemHandle, (cuda_address at))                                           \
    X(host_allocate, cuMemHostAlloc, (void **at, size_t bytes, unsigned flags))                    \
    X(host_free, cuMemFreeHost, (void *at))                                                        \
    X(copy_async, cuMemcpyAsync,                                                                   \
      (cuda_address to, cuda_address from, size_t bytes, cuda_stream stream))                      \
    X(fill_async, cuMemsetD8Async,                                                                 \
      (cuda_address at, unsigned char byte, size_t bytes, cuda_stream stream))                     \
    X(pointer_attribute, cuPointerGetAttribute, (void *value, int which, cuda_address at))         \
    X(host_register, cuMemHostRegister_v2, (void *at, size_t bytes, unsigned flags))               \
    X(host_unregister, cuMemHostUnregister, (void *at))                                            \
    X(stream_create, cuStreamCreate, (cuda_stream *stream, unsigned flags))                        \
    X(stream_destroy, cuStreamDestroy_v2, (cuda_stream stream))                                    \
    X(stream_wait, cuStreamSynchronize, (cuda_stream stream))                                      \
    X(stream_wait_event, cuStreamWaitEvent,                                                        \
      (cuda_stream stream, cuda_event event, unsigned flags))                                      \
    X(stream_is_capturing, cuStreamIsCapturing, (cuda_stream stream, int *status))                 \
    X(capture_mode, cuThreadExchangeStreamCaptureMode, (int *mode))                                \
    X(context_wait, cuCtxSynchronize, (void))                                                      \
    X(event_create, cuEventCreate, (cuda_event *event, unsigned flags))                            \
    X(event_destroy, cuEventDestroy_v2, (cuda_event event))                                        \
    X(event_record, cuEventRecord, (cuda_event event, cuda_stream stream))                         \
    X(event_query, cuEventQuery, (cuda_event event))                                               \
    X(event_wait, cuEventSynchronize, (cuda_event event))                                          \
    X(module_load, cuModuleLoadData, (cuda_module *module, const void *image))                     \
    X(module_unload, cuModuleUnload, (cuda_module module))                                         \
    X(module_function, cuModuleGetFunction,                                                        \
      (cuda_function *function, cuda_module module, const char *name))                             \
    X(module_global, cuModuleGetGlobal_v2,                                                         \
      (cuda_address *at, size_t *bytes, cuda_module module, const char *name))                     \
    X(launch, cuLaunchKernel,                                                                      \
      (cuda_function function, unsigned grid_x, unsigned grid_y, unsigned grid_z,                  \
       unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared, cuda_stream stream,  \
       void **arguments, void **extra))

/* What drivers since 11.4 have brought, or not all have: without it a call answers
 * CUDA_NOT_SUPPORTED. */
#define CUDA_DRIVER_NEWER(X)                                                                       \
    X(export_range, cuMemGetHandleForAddressRange,                                                 \
      (void *handle, cuda_address at, size_t bytes, int type, unsigned long long flags))           \
    X(flush, cuFlushGPUDirectRDMAWrites, (int of, int to))                                         \
    X(library_global, cuLibraryGetGlobal,                                                          \
      (cuda_address * at, size_t * bytes, void *library, const char *name))                        \
    X(multicast_granularity, cuMulticastGetGranularity,                                            \
      (size_t * bytes, const struct cuda_multicast *what, int option))                             \
    X(multicast_create, cuMulticastCreate,                                                         \
      (cuda_piece * object, const struct cuda_multicast *what))                                    \
    X(multicast_add, cuMulticastAddDevice, (cuda_piece object, cuda_gpu gpu))                      \
    X(multicast_bind, cuMulticastBindAddr,                                                         \
      (cuda_piece object, size_t offset, cuda_address at, size_t bytes, unsigned long long flags)) \
    X(multicast_unbind, cuMulticastUnbind,                                                         \
      (cuda_piece object, cuda_gpu gpu, size_t offset, size_t bytes))

struct cuda_driver {
    void *library;
#define X(name, symbol, arguments) cuda_result(*name) arguments;
    CUDA_DRIVER(X)
    CUDA_DRIVER_NEWER(X)
#undef X
};

enum { CUDA_VERSION_LEAST = 11040 }; /* 11.4: the first whose entry points are all of these */

/* Opens the driver and starts it. False: it cannot be used, and why. */
bool cuda_driver_open(struct cuda_driver *d, char *why, size_t why_size);
void cuda_driver_close(struct cuda_driver *d);

/* What an older driver has not, whose entry points begin so. */
struct cuda_newer {
    const char *entries;
    int version;      /* the driver's that brought it */
    const char *then; /* what it is without */
};
enum cuda_newer_name {
    CUDA_NEWER_FLUSH,
    CUDA_NEWER_EXPORT,
    CUDA_NEWER_LIBRARY,
    CUDA_NEWER_MULTICAST,
    CUDA_NEWER_NAMES
};
extern const struct cuda_newer cuda_newer[CUDA_NEWER_NAMES];
bool cuda_driver_has(const struct cuda_driver *d, enum cuda_newer_name what);

/* "out of memory (CUDA_ERROR_OUT_OF_MEMORY, 2)". */
struct cuda_text {
    char text[160];
};
struct cuda_text cuda_error(const struct cuda_driver *d, cuda_result result);

#endif
