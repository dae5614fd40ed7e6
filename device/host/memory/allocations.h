/* The memory that CUDA calls gave out or pinned, by address, so that a wrong pointer is an error
 * and not a crash. Knows nothing of streams or kernels. */
#ifndef GSHMEM_DEVICE_HOST_ALLOCATIONS_H
#define GSHMEM_DEVICE_HOST_ALLOCATIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "gshmem/host_device/cuda_runtime_api.h"

enum { ALLOCATION_ALIGNMENT = 256 }; /* of all memory that CUDA calls give out */

struct allocation {
    char *at;
    size_t bytes;
    enum cudaMemoryType type;
    bool registered; /* the program's own memory, pinned by cudaHostRegister */
    int device;
};

/* False: there is no memory for the entry. */
bool allocation_remember(struct allocation a);
/* The same for the program's own memory; an error if a byte of it is in the table already. */
cudaError_t allocation_register(struct allocation a);
/* Removes the entry that begins there and is of that kind. False: there is none. */
bool allocation_forget(void *at, bool host, bool registered);
/* What the byte belongs to: an entry, mapped memory of cuMemCreate, or symmetric memory, which are
 * the device's. False: memory that is the program's own. */
bool allocation_look_up(const void *pointer, int device, struct allocation *found);

#endif
