/* The part of the CUDA runtime that small programs use, for programs built for the host device.
 *
 * Names, values and meanings are CUDA's. Memory of the device and of the host is the same here. The
 * work of one stream runs in order, and concurrently with other streams and the host. The default
 * stream and the streams that were made without cudaStreamNonBlocking wait for each other, as in
 * CUDA. Copies of pageable memory and fills are often done when the call returns, as CUDA
 * allows. */
#ifndef GSHMEM_HOST_DEVICE_CUDA_RUNTIME_API_H
#define GSHMEM_HOST_DEVICE_CUDA_RUNTIME_API_H

#include "gshmem_names_begin.h"

#include <limits.h> /* as CUDA's driver_types.h does */
#include <stddef.h>

#include "vector_types.h"

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

#define CUDART_VERSION 12000
#define CUDART_CB

/*        name after cudaError, value, what it means */
#define GSHMEM_HOST_ERRORS(X)                                                                      \
    X(InvalidValue, 1, "invalid argument")                                                         \
    X(MemoryAllocation, 2, "out of memory")                                                        \
    X(InitializationError, 3, "initialization error")                                              \
    X(InvalidConfiguration, 9, "invalid configuration argument")                                   \
    X(InvalidPitchValue, 12, "invalid pitch argument")                                             \
    X(InvalidSymbol, 13, "invalid device symbol")                                                  \
    X(InvalidMemcpyDirection, 21, "invalid copy direction for memcpy")                             \
    X(InsufficientDriver, 35, "CUDA driver version is insufficient for CUDA runtime version")      \
    X(MissingConfiguration, 52, "__global__ function call is not configured")                      \
    X(InvalidDeviceFunction, 98, "invalid device function")                                        \
    X(NoDevice, 100, "no CUDA-capable device is detected")                                         \
    X(InvalidDevice, 101, "invalid device ordinal")                                                \
    X(InvalidResourceHandle, 400, "invalid resource handle")                                       \
    X(IllegalState, 401, "the operation cannot be performed in the present state")                 \
    X(NotReady, 600, "device not ready")                                                           \
    X(IllegalAddress, 700, "an illegal memory access was encountered")                             \
    X(LaunchTimeout, 702, "the launch timed out and was terminated")                               \
    X(PeerAccessAlreadyEnabled, 704, "peer access is already enabled")                             \
    X(PeerAccessNotEnabled, 705, "peer access has not been enabled")                               \
    X(HostMemoryAlreadyRegistered, 712,                                                            \
      "part or all of the requested memory range is already mapped")                               \
    X(HostMemoryNotRegistered, 713, "pointer does not correspond to a registered memory region")   \
    X(Assert, 710, "device-side assert triggered")                                                 \
    X(LaunchFailure, 719, "unspecified launch failure")                                            \
    X(CooperativeLaunchTooLarge, 720, "too many blocks in cooperative launch")                     \
    X(NotPermitted, 800, "operation not permitted")                                                \
    X(NotSupported, 801, "operation not supported")                                                \
    X(StreamCaptureUnsupported, 900, "operation not permitted when stream is capturing")           \
    X(StreamCaptureInvalidated, 901, "operation failed due to a previous error during capture")    \
    X(StreamCaptureMerge, 902, "operation would result in a merge of separate capture sequences")  \
    X(StreamCaptureUnmatched, 903, "capture was not ended in the same stream as it began")         \
    X(StreamCaptureUnjoined, 904, "capturing stream has unjoined work")                            \
    X(StreamCaptureIsolation, 905, "dependency created on uncaptured work in another stream")      \
    X(StreamCaptureImplicit, 906, "operation would make the legacy stream depend on a capture")    \
    X(CapturedEvent, 907, "operation not permitted on an event last recorded in a capture")        \
    X(Unknown, 999, "unknown error")

typedef enum cudaError {
    cudaSuccess = 0,
#define GSHMEM_HOST_ERROR(name, value, text) cudaError##name = value,
    GSHMEM_HOST_ERRORS(GSHMEM_HOST_ERROR)
#undef GSHMEM_HOST_ERROR
} cudaError_t;

const char *cudaGetErrorName(cudaError_t error);
const char *cudaGetErrorString(cudaError_t error);
/* The last failure of this thread. Get also clears it, unless a kernel has failed: that failure
 * stays. */
cudaError_t cudaGetLastError(void);
cudaError_t cudaPeekAtLastError(void);

/* --- Device: there is one, the CPU --- */

enum cudaDeviceAttr {
    cudaDevAttrMaxThreadsPerBlock = 1,
    cudaDevAttrMaxBlockDimX = 2,
    cudaDevAttrMaxBlockDimY = 3,
    cudaDevAttrMaxBlockDimZ = 4,
    cudaDevAttrMaxGridDimX = 5,
    cudaDevAttrMaxGridDimY = 6,
    cudaDevAttrMaxGridDimZ = 7,
    cudaDevAttrMaxSharedMemoryPerBlock = 8,
    cudaDevAttrWarpSize = 10,
    cudaDevAttrClockRate = 13,
    cudaDevAttrMultiProcessorCount = 16,
    cudaDevAttrIntegrated = 18,
    cudaDevAttrCanMapHostMemory = 19,
    cudaDevAttrConcurrentKernels = 31,
    cudaDevAttrMaxThreadsPerMultiProcessor = 39,
    cudaDevAttrUnifiedAddressing = 41,
    cudaDevAttrComputeCapabilityMajor = 75,
    cudaDevAttrComputeCapabilityMinor = 76,
    cudaDevAttrManagedMemory = 83,
    cudaDevAttrPageableMemoryAccess = 88,
    cudaDevAttrConcurrentManagedAccess = 89,
    cudaDevAttrCooperativeLaunch = 95,
    cudaDevAttrMaxSharedMemoryPerBlockOptin = 97,
    cudaDevAttrMaxBlocksPerMultiprocessor = 106
};

typedef struct CUuuid_st {
    char bytes[16];
} cudaUUID_t;

struct cudaDeviceProp {
    char name[256];
    size_t totalGlobalMem;
    size_t sharedMemPerBlock;
    size_t sharedMemPerBlockOptin;
    size_t sharedMemPerMultiprocessor;
    size_t totalConstMem;
    int regsPerBlock;
    int warpSize;
    int maxThreadsPerBlock;
    int maxThreadsDim[3];
    int maxGridSize[3];
    int clockRate; /* kHz, of clock64() */
    int memoryClockRate;
    int memoryBusWidth;
    int l2CacheSize;
    int major, minor;
    int multiProcessorCount;
    int maxThreadsPerMultiProcessor;
    int maxBlocksPerMultiProcessor;
    int integrated;
    int canMapHostMemory;
    int concurrentKernels;
    int asyncEngineCount;
    int unifiedAddressing;
    int managedMemory;
    int concurrentManagedAccess;
    int pageableMemoryAccess;
    int cooperativeLaunch;
    int pciDomainID, pciBusID, pciDeviceID;
    /* What else programs of CUDA 12 and 13 read; 0 where the host device has nothing of the kind */
    cudaUUID_t uuid;
    char luid[8];
    unsigned luidDeviceNodeMask;
    size_t memPitch, textureAlignment, texturePitchAlignment, surfaceAlignment;
    int deviceOverlap, kernelExecTimeoutEnabled, computeMode, ECCEnabled, tccDriver;
    int persistingL2CacheMaxSize, accessPolicyMaxWindowSize;
    int streamPrioritiesSupported, globalL1CacheSupported, localL1CacheSupported;
    int regsPerMultiprocessor;
    int isMultiGpuBoard, multiGpuBoardGroupID, cooperativeMultiDeviceLaunch;
    int hostNativeAtomicSupported, singleToDoublePrecisionPerfRatio, computePreemptionSupported;
    int canUseHostPointerForRegisteredMem, pageableMemoryAccessUsesHostPageTables;
    int directManagedMemAccessFromHost;
    size_t reservedSharedMemPerBlock;
    int hostRegisterSupported, hostRegisterReadOnlySupported, sparseCudaArraySupported;
    int timelineSemaphoreInteropSupported, memoryPoolsSupported, deferredMappingCudaArraySupported;
    unsigned memoryPoolSupportedHandleTypes, gpuDirectRDMAFlushWritesOptions;
    int gpuDirectRDMASupported, gpuDirectRDMAWritesOrdering, ipcEventSupported, clusterLaunch;
    int unifiedFunctionPointers, mpsEnabled, hostNumaMultinodeIpcSupported;
    int deviceNumaConfig, deviceNumaId, hostNumaId;
    unsigned gpuPciDeviceID, gpuPciSubsystemID;
    int maxTexture1D, maxTexture1DMipmap, maxTexture1DLinear, maxTexture1DLayered[2];
    int maxTexture2D[2], maxTexture2DMipmap[2], maxTexture2DLinear[3], maxTexture2DGather[2];
    int maxTexture2DLayered[3], maxTexture3D[3], maxTexture3DAlt[3];
    int maxTextureCubemap, maxTextureCubemapLayered[2];
    int maxSurface1D, maxSurface1DLayered[2], maxSurface2D[2], maxSurface2DLayered[3];
    int maxSurface3D[3], maxSurfaceCubemap, maxSurfaceCubemapLayered[2];
};
typedef struct cudaDeviceProp cudaDeviceProp;

cudaError_t cudaGetDeviceCount(int *count);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDevice(int *device);
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device);
cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device);
/* "ffff:00:03.0" for device 3: no device of the machine has that domain. */
cudaError_t cudaDeviceGetPCIBusId(char *text, int bytes, int device);
cudaError_t cudaDeviceGetByPCIBusId(int *device, const char *text);
cudaError_t cudaDeviceSynchronize(void);
/* Waits for all work and forgets that a kernel failed. */
cudaError_t cudaDeviceReset(void);
cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer);
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags);
cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest);
cudaError_t cudaDriverGetVersion(int *version);
cudaError_t cudaRuntimeGetVersion(int *version);
cudaError_t cudaMemGetInfo(size_t *free, size_t *total);

#define cudaDeviceScheduleAuto  0x00
#define cudaDeviceScheduleSpin  0x01
#define cudaDeviceScheduleYield 0x02
#define cudaDeviceMapHost       0x08
cudaError_t cudaSetDeviceFlags(unsigned flags);

/* --- Memory --- */

enum cudaMemcpyKind {
    cudaMemcpyHostToHost = 0,
    cudaMemcpyHostToDevice = 1,
    cudaMemcpyDeviceToHost = 2,
    cudaMemcpyDeviceToDevice = 3,
    cudaMemcpyDefault = 4
};

enum cudaMemoryType {
    cudaMemoryTypeUnregistered = 0,
    cudaMemoryTypeHost = 1,
    cudaMemoryTypeDevice = 2,
    cudaMemoryTypeManaged = 3
};

struct cudaPointerAttributes {
    enum cudaMemoryType type;
    int device;
    void *devicePointer;
    void *hostPointer;
};

#define cudaHostAllocDefault       0x00
#define cudaHostAllocPortable      0x01
#define cudaHostAllocMapped        0x02
#define cudaHostAllocWriteCombined 0x04
#define cudaHostRegisterDefault    0x00
#define cudaHostRegisterPortable   0x01
#define cudaHostRegisterMapped     0x02
#define cudaMemAttachGlobal        0x01

cudaError_t cudaMalloc(void **pointer, size_t bytes);
cudaError_t cudaMallocPitch(void **pointer, size_t *pitch, size_t width, size_t height);
cudaError_t cudaFree(void *pointer);
cudaError_t cudaMallocAsync(void **pointer, size_t bytes, cudaStream_t stream);
cudaError_t cudaFreeAsync(void *pointer, cudaStream_t stream);
cudaError_t cudaMallocHost(void **pointer, size_t bytes);
cudaError_t cudaHostAlloc(void **pointer, size_t bytes, unsigned flags);
cudaError_t cudaFreeHost(void *pointer);
cudaError_t cudaHostRegister(void *pointer, size_t bytes, unsigned flags);
cudaError_t cudaHostUnregister(void *pointer);
cudaError_t cudaHostGetDevicePointer(void **device, void *host, unsigned flags);
#ifdef __cplusplus
cudaError_t cudaMallocManaged(void **pointer, size_t bytes, unsigned flags = cudaMemAttachGlobal);
#else
cudaError_t cudaMallocManaged(void **pointer, size_t bytes, unsigned flags);
#endif
cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *pointer);

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind);
cudaError_t cudaMemcpyPeer(void *to, int to_device, const void *from, int from_device,
                           size_t bytes);
cudaError_t cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                         size_t width, size_t height, enum cudaMemcpyKind kind);
cudaError_t cudaMemset(void *to, int value, size_t bytes);
cudaError_t cudaMemset2D(void *to, size_t pitch, int value, size_t width, size_t height);
#ifdef __cplusplus
#define GSHMEM_HOST_STREAM_0 = 0
#else
#define GSHMEM_HOST_STREAM_0
#endif
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream GSHMEM_HOST_STREAM_0);
cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device,
                                size_t bytes, cudaStream_t stream GSHMEM_HOST_STREAM_0);
cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                              size_t width, size_t height, enum cudaMemcpyKind kind,
                              cudaStream_t stream GSHMEM_HOST_STREAM_0);
cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes,
                            cudaStream_t stream GSHMEM_HOST_STREAM_0);

/* --- Streams and events --- */

typedef struct CUevent_st *cudaEvent_t;
typedef void (*cudaHostFn_t)(void *argument);
typedef void (*cudaStreamCallback_t)(cudaStream_t stream, cudaError_t status, void *argument);

#define cudaStreamLegacy       ((cudaStream_t)1)
#define cudaStreamPerThread    ((cudaStream_t)2)
#define cudaStreamDefault      0x00
#define cudaStreamNonBlocking  0x01
#define cudaEventDefault       0x00
#define cudaEventBlockingSync  0x01
#define cudaEventDisableTiming 0x02
#define cudaEventInterprocess  0x04
#define cudaEventRecordDefault 0x00
#define cudaEventWaitDefault   0x00

cudaError_t cudaStreamCreate(cudaStream_t *stream);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags);
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamQuery(cudaStream_t stream);
#ifdef __cplusplus
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags = 0);
#else
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags);
#endif
cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback,
                                  void *argument, unsigned flags);
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *argument);

cudaError_t cudaEventCreate(cudaEvent_t *event);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream GSHMEM_HOST_STREAM_0);
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start, cudaEvent_t end);

/* --- Graphs: captured from streams, not put together by hand --- */

enum cudaStreamCaptureMode {
    cudaStreamCaptureModeGlobal = 0,
    cudaStreamCaptureModeThreadLocal = 1,
    cudaStreamCaptureModeRelaxed = 2
};

enum cudaStreamCaptureStatus {
    cudaStreamCaptureStatusNone = 0,
    cudaStreamCaptureStatusActive = 1,
    cudaStreamCaptureStatusInvalidated = 2
};

typedef struct CUgraph_st *cudaGraph_t;
typedef struct CUgraphExec_st *cudaGraphExec_t;
typedef struct CUgraphNode_st *cudaGraphNode_t;

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph);
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *status);
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *exec, cudaGraph_t graph,
                                          unsigned long long flags);
cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream);
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);

/* --- Launches by pointer --- */

struct cudaFuncAttributes {
    size_t sharedSizeBytes; /* known only once a block has run: 0 */
    size_t constSizeBytes;
    size_t localSizeBytes;
    int maxThreadsPerBlock;
    int numRegs;
    int ptxVersion;
    int binaryVersion;
    int maxDynamicSharedSizeBytes;
};

enum cudaFuncAttribute {
    cudaFuncAttributeMaxDynamicSharedMemorySize = 8,
    cudaFuncAttributePreferredSharedMemoryCarveout = 9
};

enum cudaFuncCache {
    cudaFuncCachePreferNone = 0,
    cudaFuncCachePreferShared = 1,
    cudaFuncCachePreferL1 = 2,
    cudaFuncCachePreferEqual = 3
};

/* The cooperative attribute is honoured. Clusters of more than one block are refused, and so are
 * attributes with events, those of nodes that kernels update, and unknown ones. The rest is advice:
 * access policy, synchronization policy, scheduling of clusters, programmatic stream serialization,
 * priority, memory domains, carveout. */
typedef enum cudaLaunchAttributeID {
    cudaLaunchAttributeIgnore = 0,
    cudaLaunchAttributeAccessPolicyWindow = 1,
    cudaLaunchAttributeCooperative = 2,
    cudaLaunchAttributeSynchronizationPolicy = 3,
    cudaLaunchAttributeClusterDimension = 4,
    cudaLaunchAttributeClusterSchedulingPolicyPreference = 5,
    cudaLaunchAttributeProgrammaticStreamSerialization = 6,
    cudaLaunchAttributeProgrammaticEvent = 7,
    cudaLaunchAttributePriority = 8,
    cudaLaunchAttributeMemSyncDomainMap = 9,
    cudaLaunchAttributeMemSyncDomain = 10,
    cudaLaunchAttributePreferredClusterDimension = 11,
    cudaLaunchAttributeLaunchCompletionEvent = 12,
    cudaLaunchAttributeDeviceUpdatableKernelNode = 13,
    cudaLaunchAttributePreferredSharedMemoryCarveout = 14
} cudaLaunchAttributeID;

typedef union cudaLaunchAttributeValue {
    char pad[64];
    int cooperative;
    struct {
        unsigned x, y, z;
    } clusterDim;
    int programmaticStreamSerializationAllowed;
    int priority;
    unsigned sharedMemCarveout;
} cudaLaunchAttributeValue;

typedef struct cudaLaunchAttribute_st {
    cudaLaunchAttributeID id;
    cudaLaunchAttributeValue val;
} cudaLaunchAttribute;

typedef struct cudaLaunchConfig_st {
    dim3 gridDim, blockDim;
    size_t dynamicSmemBytes;
    cudaStream_t stream;
    cudaLaunchAttribute *attrs;
    unsigned numAttrs;
} cudaLaunchConfig_t;

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *function,
                                void **arguments);
cudaError_t cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **arguments,
                             size_t shared, cudaStream_t stream);
cudaError_t cudaLaunchCooperativeKernel(const void *function, dim3 grid, dim3 block,
                                        void **arguments, size_t shared, cudaStream_t stream);
cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, const void *function);
cudaError_t cudaFuncSetAttribute(const void *function, enum cudaFuncAttribute attribute, int value);
cudaError_t cudaFuncSetCacheConfig(const void *function, enum cudaFuncCache config);
/* How many blocks a cooperative launch may have at most: more than run at once in other launches,
 * as far as memory has room for their stacks. */
cudaError_t gshmem_host_cooperative_blocks(int *blocks, const void *function, int threads);
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *function,
                                                          int threads, size_t shared);

#undef GSHMEM_HOST_STREAM_0

/* For libgshmem: like cudaLaunchHostFunc. When function will not be called any more,
 * release(argument) is called: after the call, or, if the call was captured, with the end of its
 * graph. */
cudaError_t gshmem_host_call(cudaStream_t stream, cudaHostFn_t function, void *argument,
                             void (*release)(void *argument));
/* Whether such calls are running or still to come, on streams or in graphs that were launched. */
int gshmem_host_calls_under_way(void);
/* The same of kernels. */
int gshmem_host_kernels_under_way(void);
/* For nvml.h: how often nvmlInit has been called and nvmlShutdown has not; then adds 1, 0 or -1,
 * unless that would be less than 0. */
int gshmem_host_nvml(int by);

#ifdef __cplusplus
}

static inline cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph,
                                               unsigned long long flags = 0)
{
    return cudaGraphInstantiateWithFlags(exec, graph, flags);
}

/* As it was before CUDA 12. */
static inline cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph,
                                               cudaGraphNode_t *, char *, size_t)
{
    return cudaGraphInstantiateWithFlags(exec, graph, 0);
}
#endif
#pragma GCC visibility pop

#include "gshmem_names_end.h"

#endif
