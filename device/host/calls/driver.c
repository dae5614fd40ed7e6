/* The part of CUDA's driver API that programs need to make memory with cuMemCreate, and register it
 * as symmetric: what can be wrong with arguments. memory/virtual.c does the rest. */
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>

#include "device/host/calls/devices.h"
#include "device/host/memory/virtual.h"
#include "gshmem/host_device/cuda_runtime_api.h"

/* ---- Devices and errors ---- */

CUresult cuInit(unsigned flags)
{
    return flags ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

static const struct {
    CUresult error;
    const char *name, *text;
} driver_errors[] = {
    {CUDA_SUCCESS, "CUDA_SUCCESS", "no error"},
    {CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {CUDA_ERROR_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {CUDA_ERROR_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {CUDA_ERROR_INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {CUDA_ERROR_INVALID_PTX, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
    {CUDA_ERROR_FILE_NOT_FOUND, "CUDA_ERROR_FILE_NOT_FOUND", "file not found"},
    {CUDA_ERROR_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {CUDA_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {CUDA_ERROR_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE",
     "too many blocks in cooperative launch"},
    {CUDA_ERROR_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {CUDA_ERROR_UNKNOWN, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

static CUresult driver_find_error(CUresult error, const char **name, const char **text)
{
    *(name ? name : text) = NULL;
    for (size_t i = 0; i < sizeof driver_errors / sizeof driver_errors[0]; i++) {
        if (driver_errors[i].error == error) {
            *(name ? name : text) = name ? driver_errors[i].name : driver_errors[i].text;
            return CUDA_SUCCESS;
        }
    }
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorString(CUresult error, const char **text)
{
    return driver_find_error(error, NULL, text);
}

CUresult cuGetErrorName(CUresult error, const char **name)
{
    return driver_find_error(error, name, NULL);
}

CUresult cuDeviceGetCount(int *count)
{
    return count && cudaGetDeviceCount(count) == cudaSuccess ? CUDA_SUCCESS
                                                             : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    if (!device || !device_exists(ordinal))
        return device ? CUDA_ERROR_INVALID_DEVICE : CUDA_ERROR_INVALID_VALUE;
    *device = ordinal;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice *device)
{
    return device && cudaGetDevice(device) == cudaSuccess ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
    if (!value || !device_exists(device))
        return value ? CUDA_ERROR_INVALID_DEVICE : CUDA_ERROR_INVALID_VALUE;
    *value = attribute == CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED;
    return CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int *version)
{
    if (!version)
        return CUDA_ERROR_INVALID_VALUE;
    *version = CUDA_VERSION;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int bytes, CUdevice device)
{
    struct cudaDeviceProp p;

    if (!name || bytes < 1)
        return CUDA_ERROR_INVALID_VALUE;
    if (cudaGetDeviceProperties(&p, device))
        return CUDA_ERROR_INVALID_DEVICE;
    snprintf(name, (size_t)bytes, "%s", p.name);
    return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
    struct cudaDeviceProp p;

    if (!bytes)
        return CUDA_ERROR_INVALID_VALUE;
    if (cudaGetDeviceProperties(&p, device))
        return CUDA_ERROR_INVALID_DEVICE;
    *bytes = p.totalGlobalMem;
    return CUDA_SUCCESS;
}

/* ---- Contexts: a device's number and one, in the place of an address ---- */

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    if (!context || !device_exists(device))
        return context ? CUDA_ERROR_INVALID_DEVICE : CUDA_ERROR_INVALID_VALUE;
    *context = (CUcontext)((uintptr_t)device + 1);
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    return device_exists(device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuCtxGetCurrent(CUcontext *context)
{
    int device;

    return cudaGetDevice(&device) == cudaSuccess ? cuDevicePrimaryCtxRetain(context, device)
                                                 : CUDA_ERROR_NOT_INITIALIZED;
}

CUresult cuCtxSetCurrent(CUcontext context)
{
    const uintptr_t number = (uintptr_t)context;

    /* None is current after NULL, which has no meaning here. */
    return number == 0 || (number <= INT_MAX && cudaSetDevice((int)number - 1) == cudaSuccess)
               ? CUDA_SUCCESS
               : CUDA_ERROR_INVALID_VALUE;
}

static bool driver_accepts(const CUmemAllocationProp *prop)
{
    return prop && prop->type == CU_MEM_ALLOCATION_TYPE_PINNED &&
           prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE && device_exists(prop->location.id);
}

CUresult cuMemGetAllocationGranularity(size_t *bytes, const CUmemAllocationProp *prop,
                                       CUmemAllocationGranularity_flags option)
{
    if (!bytes || !driver_accepts(prop) || option > CU_MEM_ALLOC_GRANULARITY_RECOMMENDED)
        return CUDA_ERROR_INVALID_VALUE;
    *bytes = VIRTUAL_GRANULE;
    return CUDA_SUCCESS;
}

/* ---- Memory without an address ---- */

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes,
                     const CUmemAllocationProp *prop, unsigned long long flags)
{
    if (!handle || bytes == 0 || bytes % VIRTUAL_GRANULE || !driver_accepts(prop) || flags)
        return CUDA_ERROR_INVALID_VALUE;
    return virtual_create(handle, bytes);
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
    return virtual_release(handle);
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *address)
{
    return virtual_retain(handle, address);
}

/* ---- Addresses ---- */

CUresult cuMemAddressReserve(CUdeviceptr *address, size_t bytes, size_t alignment, CUdeviceptr hint,
                             unsigned long long flags)
{
    (void)hint; /* the driver may ignore it, too */
    if (!address || bytes == 0 || bytes % VIRTUAL_GRANULE || alignment > VIRTUAL_GRANULE ||
        (alignment & (alignment - 1)) || flags)
        return CUDA_ERROR_INVALID_VALUE;
    return virtual_reserve(address, bytes);
}

CUresult cuMemAddressFree(CUdeviceptr address, size_t bytes)
{
    return virtual_unreserve(address, bytes);
}

CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t offset,
                  CUmemGenericAllocationHandle handle, unsigned long long flags)
{
    if (address % VIRTUAL_GRANULE || offset || flags)
        return CUDA_ERROR_INVALID_VALUE;
    return virtual_map(address, bytes, handle);
}

CUresult cuMemUnmap(CUdeviceptr address, size_t bytes)
{
    return virtual_unmap(address, bytes);
}

CUresult cuMemSetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc *access, size_t n)
{
    int rights = PROT_NONE;

    for (size_t i = 0; access && i < n; i++) {
        if (access[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
            !device_exists(access[i].location.id))
            return CUDA_ERROR_INVALID_VALUE;
        if (access[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
            rights |= PROT_READ | PROT_WRITE;
        else if (access[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READ)
            rights |= PROT_READ;
    }
    return access && n ? virtual_protect(address, bytes, rights) : CUDA_ERROR_INVALID_VALUE;
}
