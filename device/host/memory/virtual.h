/* Memory without an address, and addresses that it is mapped at: what cuMemCreate and cuMemMap
 * give.
 *
 * The memory is private to the process. Mapping moves it to the address, so that it can become
 * symmetric there (runtime/memory/symmetric_host.h). Knows nothing of devices or kernels. */
#ifndef GSHMEM_DEVICE_HOST_VIRTUAL_H
#define GSHMEM_DEVICE_HOST_VIRTUAL_H

#include <stdbool.h>
#include <stddef.h>

#include "gshmem/host_device/cuda.h"

enum { VIRTUAL_GRANULE = 2 << 20 }; /* sizes and addresses are multiples of it */

/* These do what the driver's calls of similar names do, whose other arguments the caller has
 * checked. */
CUresult virtual_create(CUmemGenericAllocationHandle *handle, size_t bytes);
CUresult virtual_release(CUmemGenericAllocationHandle handle);
CUresult virtual_retain(CUmemGenericAllocationHandle *handle, void *address);
CUresult virtual_reserve(CUdeviceptr *address, size_t bytes);
CUresult virtual_unreserve(CUdeviceptr address, size_t bytes);
CUresult virtual_map(CUdeviceptr address, size_t bytes, CUmemGenericAllocationHandle handle);
CUresult virtual_unmap(CUdeviceptr address, size_t bytes);
/* rights: PROT_READ, PROT_WRITE, PROT_NONE. */
CUresult virtual_protect(CUdeviceptr address, size_t bytes, int rights);
/* Whether memory of virtual_create is mapped there. */
bool virtual_is_mapped(const void *at);

#endif
