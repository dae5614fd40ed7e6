/* Whether device/cuda/driver.h says what cuda.h says; only compiled, where there is a cuda.h. */
#include <cuda.h>

#include "device/cuda/driver.h"

#define SAME(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #ours " is " #theirs)
#define SIZE(ours, theirs) _Static_assert(sizeof(ours) == sizeof(theirs), #ours " is " #theirs)
#define FIELD(ours, field, theirs, other)                                                          \
    _Static_assert(offsetof(ours, field) == offsetof(theirs, other), #ours "." #field)

SAME(CUDA_OK, CUDA_SUCCESS);
SAME(CUDA_INVALID_VALUE, CUDA_ERROR_INVALID_VALUE);
SAME(CUDA_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY);
SAME(CUDA_NO_DEVICE, CUDA_ERROR_NO_DEVICE);
SAME(CUDA_INVALID_DEVICE, CUDA_ERROR_INVALID_DEVICE);
SAME(CUDA_INVALID_CONTEXT, CUDA_ERROR_INVALID_CONTEXT);
SAME(CUDA_PEER_ACCESS_UNSUPPORTED, CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
SAME(CUDA_NOT_FOUND, CUDA_ERROR_NOT_FOUND);
SAME(CUDA_ILLEGAL_ADDRESS, CUDA_ERROR_ILLEGAL_ADDRESS);
SAME(CUDA_HOST_REGISTERED_BEFORE, CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
SAME(CUDA_NOT_PERMITTED, CUDA_ERROR_NOT_PERMITTED);
SAME(CUDA_NOT_SUPPORTED, CUDA_ERROR_NOT_SUPPORTED);
SAME(CUDA_ATTRIBUTE_COMPUTE_MODE, CU_DEVICE_ATTRIBUTE_COMPUTE_MODE);
SAME(CUDA_ATTRIBUTE_UNIFIED_ADDRESSING, CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING);
SAME(CUDA_ATTRIBUTE_MAJOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
SAME(CUDA_ATTRIBUTE_MINOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
SAME(CUDA_ATTRIBUTE_VMM, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
SAME(CUDA_ATTRIBUTE_DESCRIPTORS, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED);
SAME(CUDA_ATTRIBUTE_FABRIC, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED);
SAME(CUDA_ATTRIBUTE_REGISTERED_IN_PLACE,
     CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM);
SAME(CUDA_ATTRIBUTE_RDMA_VMM, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED);
SAME(CUDA_ATTRIBUTE_DMA_BUF, CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED);
SAME(CUDA_COMPUTE_MODE_PROHIBITED, CU_COMPUTEMODE_PROHIBITED);
SAME(CUDA_ALLOCATION_PINNED, CU_MEM_ALLOCATION_TYPE_PINNED);
SAME(CUDA_LOCATION_GPU, CU_MEM_LOCATION_TYPE_DEVICE);
SAME(CUDA_HANDLE_NONE, CU_MEM_HANDLE_TYPE_NONE);
SAME(CUDA_HANDLE_DESCRIPTOR, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
SAME(CUDA_HANDLE_FABRIC, CU_MEM_HANDLE_TYPE_FABRIC);
SAME(CUDA_READ_WRITE, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
SAME(CUDA_ATTRIBUTE_MULTICAST, CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED);
SAME(CUDA_GRANULARITY_MINIMUM, CU_MULTICAST_GRANULARITY_MINIMUM);
SAME(CUDA_GRANULARITY_RECOMMENDED, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
SAME(CUDA_HOST_PORTABLE, CU_MEMHOSTALLOC_PORTABLE);
SAME(CUDA_HOST_DEVICE_MAP, CU_MEMHOSTALLOC_DEVICEMAP);
SAME(CUDA_STREAM_NON_BLOCKING, CU_STREAM_NON_BLOCKING);
SAME(CUDA_POINTER_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_MEMORY_TYPE);
SAME(CUDA_MEMORY_GPU, CU_MEMORYTYPE_DEVICE);
SAME(CUDA_MEMORY_HOST, CU_MEMORYTYPE_HOST);
SAME(CUDA_POINTER_RANGE_START, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR);
SAME(CUDA_POINTER_RANGE_BYTES, CU_POINTER_ATTRIBUTE_RANGE_SIZE);
SAME(CUDA_POINTER_MAPPING_BYTES, CU_POINTER_ATTRIBUTE_MAPPING_SIZE);
SAME(CUDA_POINTER_MAPPING_START, CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR);
SAME(CUDA_ATTRIBUTE_FLUSHES, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS);
SAME(CUDA_ATTRIBUTE_ORDERING, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING);
SAME(CUDA_FLUSHES_BY_HOST, CU_FLUSH_GPU_DIRECT_RDMA_WRITES_OPTION_HOST);
SAME(CUDA_FLUSH_OF_CONTEXT, CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX);
SAME(CUDA_ORDERED_NEVER, CU_GPU_DIRECT_RDMA_WRITES_ORDERING_NONE);
SAME(CUDA_ORDERED_OWNER, CU_GPU_DIRECT_RDMA_WRITES_ORDERING_OWNER);
SAME(CUDA_ORDERED_ALL, CU_GPU_DIRECT_RDMA_WRITES_ORDERING_ALL_DEVICES);
SAME(CUDA_ORDERED_ALL, CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_ALL_DEVICES);
SAME(CUDA_RANGE_DMA_BUF, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD);
SAME(CUDA_HOST_PORTABLE, CU_MEMHOSTREGISTER_PORTABLE);
SAME(CUDA_HOST_DEVICE_MAP, CU_MEMHOSTREGISTER_DEVICEMAP);
SAME(CUDA_NO_BINARY, CUDA_ERROR_NO_BINARY_FOR_GPU);
SAME(CUDA_NOT_READY, CUDA_ERROR_NOT_READY);
SAME(CUDA_CAPTURE_UNSUPPORTED, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
SAME(CUDA_EVENT_NO_TIMING, CU_EVENT_DISABLE_TIMING);
SAME(CUDA_CAPTURE_RELAXED, CU_STREAM_CAPTURE_MODE_RELAXED);
SAME(CUDA_IPC_LAZY_PEER_ACCESS, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);

SIZE(cuda_gpu, CUdevice);
SIZE(cuda_address, CUdeviceptr);
SIZE(cuda_piece, CUmemGenericAllocationHandle);
SIZE(struct cuda_uuid, CUuuid);
SIZE(struct cuda_handle, CUipcMemHandle);
SIZE(struct cuda_handle, CUmemFabricHandle);
SIZE(struct cuda_allocation, CUmemAllocationProp);
FIELD(struct cuda_allocation, handle_types, CUmemAllocationProp, requestedHandleTypes);
FIELD(struct cuda_allocation, location.id, CUmemAllocationProp, location.id);
FIELD(struct cuda_allocation, for_windows, CUmemAllocationProp, win32HandleMetaData);
FIELD(struct cuda_allocation, flags.usage, CUmemAllocationProp, allocFlags.usage);
FIELD(struct cuda_allocation, flags.gpu_direct_rdma, CUmemAllocationProp,
      allocFlags.gpuDirectRDMACapable);
SIZE(struct cuda_multicast, CUmulticastObjectProp);
FIELD(struct cuda_multicast, bytes, CUmulticastObjectProp, size);
FIELD(struct cuda_multicast, handle_types, CUmulticastObjectProp, handleTypes);
SIZE(struct cuda_access, CUmemAccessDesc);
FIELD(struct cuda_access, flags, CUmemAccessDesc, flags);

/* The symbols that cuda.h's names stand for, and as many arguments of the same sizes: the first and
 * the last of each are compared by what a call would be compiled to. */
#define TEXT(symbol)  #symbol
#define NAMED(symbol) TEXT(symbol)

#include <stdio.h>
#include <string.h>

int main(void)
{
    static const struct {
        const char *theirs, *ours;
    } names[] = {
        {NAMED(cuDeviceGetUuid), "cuDeviceGetUuid_v2"},
        {NAMED(cuDeviceTotalMem), "cuDeviceTotalMem_v2"},
        {NAMED(cuDevicePrimaryCtxRelease), "cuDevicePrimaryCtxRelease_v2"},
        {NAMED(cuCtxPushCurrent), "cuCtxPushCurrent_v2"},
        {NAMED(cuCtxPopCurrent), "cuCtxPopCurrent_v2"},
        {NAMED(cuMemAlloc), "cuMemAlloc_v2"},
        {NAMED(cuMemFree), "cuMemFree_v2"},
        {NAMED(cuIpcOpenMemHandle), "cuIpcOpenMemHandle_v2"},
        {NAMED(cuMemHostRegister), "cuMemHostRegister_v2"},
        {NAMED(cuStreamDestroy), "cuStreamDestroy_v2"},
        {NAMED(cuEventDestroy), "cuEventDestroy_v2"},
        {NAMED(cuModuleGetGlobal), "cuModuleGetGlobal_v2"},
    };

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        /* cuda.h may know later versions; one that is not called any more would be missing from it */
        if (strcmp(names[i].theirs, names[i].ours) != 0)
            printf("cuda.h means %s where the library calls %s\n", names[i].theirs, names[i].ours);
    }
    return 0;
}
