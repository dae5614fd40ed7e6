/* <nvml.h> for programs built for the host device: the calls by which programs tell one GPU from
 * another and ask what it does, answered for the devices that cudaGetDeviceCount counts. There is
 * no library to link: a program that links -lnvidia-ml leaves that out. What a CPU has nothing of,
 * such as links to other GPUs, is NVML_ERROR_NOT_SUPPORTED. */
#ifndef GSHMEM_HOST_DEVICE_NVML_H
#define GSHMEM_HOST_DEVICE_NVML_H

#include "gshmem_names_begin.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "cuda_runtime_api.h"

#define NVML_API_VERSION 12

#define NVML_DEVICE_NAME_BUFFER_SIZE           64
#define NVML_DEVICE_NAME_V2_BUFFER_SIZE        96
#define NVML_DEVICE_UUID_BUFFER_SIZE           80
#define NVML_DEVICE_UUID_V2_BUFFER_SIZE        96
#define NVML_DEVICE_PCI_BUS_ID_BUFFER_SIZE     32
#define NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE 80
#define NVML_NVLINK_MAX_LINKS                  18

typedef enum nvmlReturn_enum {
    NVML_SUCCESS = 0,
    NVML_ERROR_UNINITIALIZED = 1,
    NVML_ERROR_INVALID_ARGUMENT = 2,
    NVML_ERROR_NOT_SUPPORTED = 3,
    NVML_ERROR_NO_PERMISSION = 4,
    NVML_ERROR_NOT_FOUND = 6,
    NVML_ERROR_INSUFFICIENT_SIZE = 7,
    NVML_ERROR_UNKNOWN = 999
} nvmlReturn_t;

typedef struct nvmlDevice_st *nvmlDevice_t;

typedef struct nvmlMemory_st {
    unsigned long long total, free, used;
} nvmlMemory_t;

typedef struct nvmlUtilization_st {
    unsigned gpu, memory;
} nvmlUtilization_t;

typedef struct nvmlPciInfo_st {
    char busIdLegacy[16];
    unsigned domain, bus, device, pciDeviceId, pciSubSystemId;
    char busId[NVML_DEVICE_PCI_BUS_ID_BUFFER_SIZE];
} nvmlPciInfo_t;

typedef enum nvmlEnableState_enum {
    NVML_FEATURE_DISABLED = 0,
    NVML_FEATURE_ENABLED = 1
} nvmlEnableState_t;

typedef enum nvmlGpuLevel_enum {
    NVML_TOPOLOGY_INTERNAL = 0,
    NVML_TOPOLOGY_SINGLE = 10,
    NVML_TOPOLOGY_MULTIPLE = 20,
    NVML_TOPOLOGY_HOSTBRIDGE = 30,
    NVML_TOPOLOGY_NODE = 40,
    NVML_TOPOLOGY_SYSTEM = 50
} nvmlGpuTopologyLevel_t;

typedef enum nvmlTemperatureSensors_enum { NVML_TEMPERATURE_GPU = 0 } nvmlTemperatureSensors_t;

typedef enum nvmlClockType_enum {
    NVML_CLOCK_GRAPHICS = 0,
    NVML_CLOCK_SM = 1,
    NVML_CLOCK_MEM = 2,
    NVML_CLOCK_VIDEO = 3
} nvmlClockType_t;

static inline const char *nvmlErrorString(nvmlReturn_t result)
{
    switch (result) {
    case NVML_SUCCESS:
        return "The operation was successful";
    case NVML_ERROR_UNINITIALIZED:
        return "NVML was not initialized";
    case NVML_ERROR_INVALID_ARGUMENT:
        return "An argument is not valid";
    case NVML_ERROR_NOT_SUPPORTED:
        return "The host device has nothing of the kind";
    case NVML_ERROR_NO_PERMISSION:
        return "Not permitted";
    case NVML_ERROR_NOT_FOUND:
        return "Not found";
    case NVML_ERROR_INSUFFICIENT_SIZE:
        return "Too little room";
    case NVML_ERROR_UNKNOWN:
        break;
    }
    return "Unknown error";
}

static inline nvmlReturn_t nvmlInit_v2(void)
{
    gshmem_host_nvml(1);
    return NVML_SUCCESS;
}
#define nvmlInit nvmlInit_v2

static inline nvmlReturn_t nvmlShutdown(void)
{
    return gshmem_host_nvml(-1) ? NVML_SUCCESS : NVML_ERROR_UNINITIALIZED;
}

/* Of the other calls: nvmlShutdown has not been called as often as nvmlInit. */
static inline nvmlReturn_t gshmem_host_nvml_result(nvmlReturn_t result)
{
    return gshmem_host_nvml(0) ? result : NVML_ERROR_UNINITIALIZED;
}

static inline nvmlReturn_t nvmlDeviceGetCount_v2(unsigned *count)
{
    nvmlReturn_t result = gshmem_host_nvml_result(NVML_SUCCESS);
    int n = 0;

    if (result != NVML_SUCCESS || !count)
        return result != NVML_SUCCESS ? result : NVML_ERROR_INVALID_ARGUMENT;
    if (cudaGetDeviceCount(&n) != cudaSuccess)
        return NVML_ERROR_UNKNOWN;
    *count = (unsigned)n;
    return NVML_SUCCESS;
}
#define nvmlDeviceGetCount nvmlDeviceGetCount_v2

/* A device's number and one stand in the place of an address. */
static inline nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *device)
{
    unsigned n = 0;
    nvmlReturn_t result = nvmlDeviceGetCount_v2(&n);

    if (result == NVML_SUCCESS && (!device || index >= n))
        return NVML_ERROR_INVALID_ARGUMENT;
    if (result == NVML_SUCCESS)
        *device = (nvmlDevice_t)((uintptr_t)index + 1);
    return result;
}
#define nvmlDeviceGetHandleByIndex nvmlDeviceGetHandleByIndex_v2

static inline nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned *index)
{
    unsigned n = 0;
    nvmlReturn_t result = nvmlDeviceGetCount_v2(&n);

    if (result == NVML_SUCCESS && (!index || (uintptr_t)device - 1 >= n))
        return NVML_ERROR_INVALID_ARGUMENT;
    if (result == NVML_SUCCESS)
        *index = (unsigned)((uintptr_t)device - 1);
    return result;
}
#define nvmlDeviceGetMinorNumber nvmlDeviceGetIndex

static inline nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned length)
{
    struct cudaDeviceProp p;
    unsigned index = 0;
    nvmlReturn_t result = nvmlDeviceGetIndex(device, &index);

    if (result != NVML_SUCCESS || !name)
        return result != NVML_SUCCESS ? result : NVML_ERROR_INVALID_ARGUMENT;
    if (cudaGetDeviceProperties(&p, (int)index) != cudaSuccess)
        return NVML_ERROR_UNKNOWN;
    return snprintf(name, length, "%s", p.name) < (int)length ? NVML_SUCCESS
                                                              : NVML_ERROR_INSUFFICIENT_SIZE;
}

static inline nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned length)
{
    unsigned index = 0;
    nvmlReturn_t result = nvmlDeviceGetIndex(device, &index);

    if (result != NVML_SUCCESS || !uuid)
        return result != NVML_SUCCESS ? result : NVML_ERROR_INVALID_ARGUMENT;
    return snprintf(uuid, length, "GPU-00000000-0000-0000-0000-%012x", index) < (int)length
               ? NVML_SUCCESS
               : NVML_ERROR_INSUFFICIENT_SIZE;
}

static inline nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
    size_t unused = 0, total = 0;
    unsigned index = 0;
    nvmlReturn_t result = nvmlDeviceGetIndex(device, &index);

    if (result != NVML_SUCCESS || !memory)
        return result != NVML_SUCCESS ? result : NVML_ERROR_INVALID_ARGUMENT;
    if (cudaMemGetInfo(&unused, &total) != cudaSuccess)
        return NVML_ERROR_UNKNOWN;
    memory->total = total;
    memory->free = unused;
    memory->used = total - unused;
    return NVML_SUCCESS;
}

/* All devices are the processor, which has no place among PCI's: their numbers tell them apart. */
static inline nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
    struct cudaDeviceProp p;
    unsigned index = 0;
    nvmlReturn_t result = nvmlDeviceGetIndex(device, &index);

    if (result != NVML_SUCCESS || !pci)
        return result != NVML_SUCCESS ? result : NVML_ERROR_INVALID_ARGUMENT;
    if (cudaGetDeviceProperties(&p, (int)index) != cudaSuccess)
        return NVML_ERROR_UNKNOWN;
    nvmlPciInfo_t found = {
        {0}, (unsigned)p.pciDomainID, (unsigned)p.pciBusID, (unsigned)p.pciDeviceID, 0, 0, {0}};
    if (cudaDeviceGetPCIBusId(found.busId, (int)sizeof found.busId, (int)index) != cudaSuccess)
        return NVML_ERROR_UNKNOWN;
    snprintf(found.busIdLegacy, sizeof found.busIdLegacy, "%.15s", found.busId);
    *pci = found;
    return NVML_SUCCESS;
}
#define nvmlDeviceGetPciInfo nvmlDeviceGetPciInfo_v3

static inline nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *bus, nvmlDevice_t *device)
{
    nvmlReturn_t result = gshmem_host_nvml_result(NVML_SUCCESS);
    int index = 0;

    if (result != NVML_SUCCESS || !bus || !device)
        return result != NVML_SUCCESS ? result : NVML_ERROR_INVALID_ARGUMENT;
    return cudaDeviceGetByPCIBusId(&index, bus) == cudaSuccess
               ? nvmlDeviceGetHandleByIndex_v2((unsigned)index, device)
               : NVML_ERROR_NOT_FOUND;
}
#define nvmlDeviceGetHandleByPciBusId nvmlDeviceGetHandleByPciBusId_v2

static inline nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned length)
{
    nvmlReturn_t result = gshmem_host_nvml_result(NVML_SUCCESS);

    if (result != NVML_SUCCESS || !version)
        return result != NVML_SUCCESS ? result : NVML_ERROR_INVALID_ARGUMENT;
    return snprintf(version, length, "0 (GSHMEM host device)") < (int)length
               ? NVML_SUCCESS
               : NVML_ERROR_INSUFFICIENT_SIZE;
}

/* ---- What a CPU has nothing of ---- */

static inline nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device,
                                                         nvmlUtilization_t *utilization)
{
    (void)device, (void)utilization;
    return gshmem_host_nvml_result(NVML_ERROR_NOT_SUPPORTED);
}

static inline nvmlReturn_t
nvmlDeviceGetTemperature(nvmlDevice_t device, nvmlTemperatureSensors_t sensor, unsigned *degrees)
{
    (void)device, (void)sensor, (void)degrees;
    return gshmem_host_nvml_result(NVML_ERROR_NOT_SUPPORTED);
}

static inline nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned *milliwatts)
{
    (void)device, (void)milliwatts;
    return gshmem_host_nvml_result(NVML_ERROR_NOT_SUPPORTED);
}

static inline nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, nvmlClockType_t type,
                                                  unsigned *clock)
{
    (void)device, (void)type, (void)clock;
    return gshmem_host_nvml_result(NVML_ERROR_NOT_SUPPORTED);
}

static inline nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t device, unsigned link,
                                                    nvmlEnableState_t *state)
{
    (void)device, (void)link, (void)state;
    return gshmem_host_nvml_result(NVML_ERROR_NOT_SUPPORTED);
}

static inline nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t one, nvmlDevice_t other,
                                                               nvmlGpuTopologyLevel_t *level)
{
    (void)one, (void)other, (void)level;
    return gshmem_host_nvml_result(NVML_ERROR_NOT_SUPPORTED);
}

#include "gshmem_names_end.h"
#endif
