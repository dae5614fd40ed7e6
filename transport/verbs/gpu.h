/* Memory of a device that the CPU cannot load from or store to: the device copies and updates
 * it. */
#ifndef GSHMEM_TRANSPORT_VERBS_GPU_H
#define GSHMEM_TRANSPORT_VERBS_GPU_H

#include <stdbool.h>
#include <stdint.h>

#include "gshmem/status.h"

struct device_update; /* device/device.h */
struct verbs;

/* What came of carrying out a message of a peer. */
enum served {
    SERVED,
    SERVED_LATER, /* the device is at its update */
    SERVED_NEVER, /* it makes no sense, or has failed */
};

bool gpu_has(const struct verbs *v, const void *at, uint64_t bytes);
/* From any memory of this process to the CPU's, and back. */
gshmem_status_t gpu_fetch(struct verbs *v, void *to, const void *from, uint64_t bytes);
gshmem_status_t gpu_deliver(struct verbs *v, void *to, const void *from, uint64_t bytes);
/* Kernels that run see what NICs have written to its memory. */
gshmem_status_t gpu_flush(struct verbs *v);
/* Stores to a segment of this PE's, for a peer. */
gshmem_status_t gpu_store(struct verbs *v, unsigned segment, char *at, const void *data,
                          uint64_t bytes);
/* Updates for a peer. SERVED_LATER: the device is at it, or at too many others, and the same call
 * with the same *ticket, 0 at first, is to come again. */
enum served gpu_signal(struct verbs *v, unsigned segment, uint64_t *at, int op, uint64_t value,
                       uint64_t *ticket);
enum served gpu_apply(struct verbs *v, unsigned segment, const struct device_update *u,
                      uint64_t *ticket, uint64_t *old);
void gpu_forget(struct verbs *v, uint64_t *ticket); /* nobody asks for its outcome again */

#endif
