/* Where is memory, where do kernels run? What the runtime asks of a device.
 *
 * A device is one `const struct device_ops`. The host device is built in: its memory is the
 * machine's, in files without names that processes hand to each other as descriptors. */
#ifndef GSHMEM_DEVICE_H
#define GSHMEM_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gshmem/status.h"

#define DEVICE_VERSION 1

struct device_ops {
    size_t size;      /* of this struct */
    uint32_t version; /* DEVICE_VERSION */
    const char *name; /* as in GSHMEM_DEVICE */

    /* Memory of `bytes` bytes that other processes can map through *fd; pages are taken as they are
     * first touched, and its size is fixed. It is gone when nobody holds or maps it any more. */
    gshmem_status_t (*memory_create)(size_t bytes, int *fd);
    /* Maps all of it for loads and stores; *at is where. */
    gshmem_status_t (*memory_map)(int fd, size_t bytes, void **at);
    void (*memory_unmap)(void *at, size_t bytes);
    /* Gives pages back that were touched; they read as zero afterwards. */
    gshmem_status_t (*memory_discard)(int fd, size_t offset, size_t bytes);

    /* Calls function(argument) when all work before it on the stream is done; what is put on the
     * stream later waits until it returns. It may block, as long as it likes, without holding up
     * other streams. On a stream that is being captured in a graph it is called each time that the
     * graph is launched, and not before. release(argument) comes when it is called no more.
     * stream: what the program's runtime calls a cudaStream_t. */
    gshmem_status_t (*stream_call)(void *stream, void (*function)(void *), void *argument,
                                   void (*release)(void *));
    bool (*stream_is_captured)(void *stream);
};

extern const struct device_ops device_host;

#endif
