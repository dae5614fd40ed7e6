/* cuMemCreate, cuMemMap and their kin: private memory of the process, which moves to where it is mapped, so
 * that it can become symmetric there (runtime/memory/symmetric_host.h). Knows nothing of kernels. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "gshmem/host_device/cuda.h"
#include "gshmem/host_device/cuda_runtime_api.h"
#include "device/host/streams/work.h"

enum { GRANULE = 2 << 20 };

struct piece {
    struct piece *next;
    size_t bytes;
    int handles;
    void *home; /* where its memory is while it is not mapped; NULL: at `at` */
    void *at;   /* NULL: it is not mapped */
};

struct reservation {
    struct reservation *next;
    char *at;
    size_t bytes;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct piece *pieces;
static struct reservation *reservations;

/* ---- Devices and errors ---- */

CUresult cuInit(unsigned flags)
{
    return flags ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

static const struct {
    CUresult error;
    const char *name, *text;
} errors[] = {
    {CUDA_SUCCESS, "CUDA_SUCCESS", "no error"},
    {CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {CUDA_ERROR_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {CUDA_ERROR_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {CUDA_ERROR_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {CUDA_ERROR_UNKNOWN, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

static CUresult find_error(CUresult error, const char **name, const char **text)
{
    *(name ? name : text) = NULL;
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        if (errors[i].error == error) {
            *(name ? name : text) = name ? errors[i].name : errors[i].text;
            return CUDA_SUCCESS;
        }
    }
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorString(CUresult error, const char **text)
{
    return find_error(error, NULL, text);
}

CUresult cuGetErrorName(CUresult error, const char **name)
{
    return find_error(error, name, NULL);
}

CUresult cuDeviceGetCount(int *count)
{
    return count && cudaGetDeviceCount(count) == cudaSuccess ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static bool is_device(int device)
{
    int count;

    return !cuDeviceGetCount(&count) && device >= 0 && device < count;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    if (!device || !is_device(ordinal))
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
    if (!value || !is_device(device))
        return value ? CUDA_ERROR_INVALID_DEVICE : CUDA_ERROR_INVALID_VALUE;
    *value = attribute == CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED;
    return CUDA_SUCCESS;
}

/* ---- Pieces ---- */

static bool is_right(const CUmemAllocationProp *prop)
{
    return prop && prop->type == CU_MEM_ALLOCATION_TYPE_PINNED &&
           prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE && is_device(prop->location.id);
}

CUresult cuMemGetAllocationGranularity(size_t *bytes, const CUmemAllocationProp *prop,
                                       CUmemAllocationGranularity_flags option)
{
    if (!bytes || !is_right(prop) || option > CU_MEM_ALLOC_GRANULARITY_RECOMMENDED)
        return CUDA_ERROR_INVALID_VALUE;
    *bytes = GRANULE;
    return CUDA_SUCCESS;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes, const CUmemAllocationProp *prop,
                     unsigned long long flags)
{
    struct piece *p;

    if (!handle || bytes == 0 || bytes % GRANULE || !is_right(prop) || flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (!(p = calloc(1, sizeof *p)))
        return CUDA_ERROR_OUT_OF_MEMORY;
    *p = (struct piece){.bytes = bytes, .handles = 1};
    p->home = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p->home == MAP_FAILED) {
        free(p);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    pthread_mutex_lock(&lock);
    p->next = pieces;
    pieces = p;
    pthread_mutex_unlock(&lock);
    *handle = (CUmemGenericAllocationHandle)(uintptr_t)p;
    return CUDA_SUCCESS;
}

/* With the lock held; also of a handle that is none any more. */
static struct piece *virtual_find_piece(CUmemGenericAllocationHandle handle)
{
    struct piece *p = pieces;

    while (p && ((uintptr_t)p != handle || p->handles == 0))
        p = p->next;
    return p;
}

static struct piece *virtual_find_mapped(const char *at)
{
    struct piece *p = pieces;

    while (p && (!p->at || (size_t)(at - (char *)p->at) >= p->bytes))
        p = p->next;
    return p;
}

/* Its memory goes when nobody has a handle of it, and it is not mapped. */
bool virtual_is_mapped(const void *at)
{
    pthread_mutex_lock(&lock);
    bool mapped = virtual_find_mapped(at) != NULL;
    pthread_mutex_unlock(&lock);
    return mapped;
}

static void virtual_let_go(struct piece *p)
{
    if (p->handles || p->at)
        return;
    for (struct piece **link = &pieces; *link; link = &(*link)->next) {
        if (*link == p) {
            *link = p->next;
            break;
        }
    }
    munmap(p->home, p->bytes);
    free(p);
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
    pthread_mutex_lock(&lock);
    struct piece *p = virtual_find_piece(handle);
    if (p) {
        p->handles--;
        virtual_let_go(p);
    }
    pthread_mutex_unlock(&lock);
    return p ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *address)
{
    pthread_mutex_lock(&lock);
    struct piece *p = virtual_find_mapped(address);
    if (p && handle) {
        p->handles++;
        *handle = (CUmemGenericAllocationHandle)(uintptr_t)p;
    }
    pthread_mutex_unlock(&lock);
    return p && handle ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ---- Addresses ---- */

CUresult cuMemAddressReserve(CUdeviceptr *address, size_t bytes, size_t alignment, CUdeviceptr hint,
                             unsigned long long flags)
{
    struct reservation *r;

    (void)hint; /* which is no more than that */
    if (!address || bytes == 0 || bytes % GRANULE || alignment > GRANULE || (alignment & (alignment - 1)) ||
        flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (!(r = malloc(sizeof *r)))
        return CUDA_ERROR_OUT_OF_MEMORY;
    char *p = mmap(NULL, bytes + GRANULE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) {
        free(r);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    size_t before = -(uintptr_t)p & (GRANULE - 1);
    if (before)
        munmap(p, before);
    munmap(p + before + bytes, GRANULE - before);
    pthread_mutex_lock(&lock);
    *r = (struct reservation){reservations, p + before, bytes};
    reservations = r;
    pthread_mutex_unlock(&lock);
    *address = (CUdeviceptr)(uintptr_t)r->at;
    return CUDA_SUCCESS;
}

/* With the lock held. */
static bool is_free(const char *at, size_t bytes)
{
    for (const struct piece *p = pieces; p; p = p->next) {
        const char *other = p->at;
        if (other && other < at + bytes && at < other + p->bytes)
            return false;
    }
    return true;
}

CUresult cuMemAddressFree(CUdeviceptr address, size_t bytes)
{
    struct reservation **link = &reservations, *r;

    pthread_mutex_lock(&lock);
    while ((r = *link) && ((uintptr_t)r->at != address || r->bytes != bytes))
        link = &r->next;
    if (r && is_free(r->at, bytes))
        *link = r->next;
    else
        r = NULL;
    pthread_mutex_unlock(&lock);
    if (!r)
        return CUDA_ERROR_INVALID_VALUE;
    munmap(r->at, bytes);
    free(r);
    return CUDA_SUCCESS;
}

static bool is_reserved(const char *at, size_t bytes)
{
    const struct reservation *r = reservations;

    while (r && !(at >= r->at && at + bytes <= r->at + r->bytes))
        r = r->next;
    return r != NULL;
}

static void *reserve_at(void *at, size_t bytes)
{
    return mmap(at, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (at ? MAP_FIXED : 0), -1, 0);
}

static CUresult map_here(struct piece *p, char *at, size_t bytes)
{
    if (!p || bytes != p->bytes || !is_reserved(at, bytes) || !is_free(at, bytes))
        return CUDA_ERROR_INVALID_VALUE;
    if (p->at)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (mremap(p->home, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, at) != at)
        return CUDA_ERROR_OUT_OF_MEMORY;
    mprotect(at, bytes, PROT_NONE); /* until cuMemSetAccess */
    p->home = NULL;
    p->at = at;
    return CUDA_SUCCESS;
}

CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags)
{
    if (address % GRANULE || offset || flags)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    CUresult result = map_here(virtual_find_piece(handle), (char *)(uintptr_t)address, bytes);
    pthread_mutex_unlock(&lock);
    return result;
}

/* Its memory goes home, and the addresses stay reserved. */
static CUresult unmap(struct piece *p)
{
    void *home = mremap(p->at, p->bytes, p->bytes, MREMAP_MAYMOVE | MREMAP_FIXED, reserve_at(NULL, p->bytes));

    if (home == MAP_FAILED)
        return CUDA_ERROR_OUT_OF_MEMORY;
    reserve_at(p->at, p->bytes);
    p->home = home;
    p->at = NULL;
    virtual_let_go(p);
    return CUDA_SUCCESS;
}

/* The mappings that lie in there have to fill it. */
static bool is_filled(char *at, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        const struct piece *p = virtual_find_mapped(at + done);
        if (!p || p->at != at + done || p->bytes > bytes - done)
            return false;
        done += p->bytes;
    }
    return bytes > 0;
}

CUresult cuMemUnmap(CUdeviceptr address, size_t bytes)
{
    char *at = (char *)(uintptr_t)address;
    CUresult result = CUDA_SUCCESS;

    pthread_mutex_lock(&lock);
    if (!is_filled(at, bytes))
        result = CUDA_ERROR_INVALID_VALUE;
    for (size_t done = 0, next; done < bytes && !result; done += next) {
        struct piece *p = virtual_find_mapped(at + done);
        next = p->bytes;
        result = unmap(p);
    }
    pthread_mutex_unlock(&lock);
    return result;
}

CUresult cuMemSetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc *access, size_t n)
{
    char *at = (char *)(uintptr_t)address;
    int rights = PROT_NONE;

    for (size_t i = 0; access && i < n; i++) {
        if (access[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE || !is_device(access[i].location.id))
            return CUDA_ERROR_INVALID_VALUE;
        if (access[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
            rights |= PROT_READ | PROT_WRITE;
        else if (access[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READ)
            rights |= PROT_READ;
    }
    pthread_mutex_lock(&lock);
    bool fits = access && n && is_filled(at, bytes) && mprotect(at, bytes, rights) == 0;
    pthread_mutex_unlock(&lock);
    return fits ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
