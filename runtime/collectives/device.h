/* Collectives on objects in a device's own memory, which the device performs. */
#ifndef GSHMEM_COLLECTIVES_DEVICE_H
#define GSHMEM_COLLECTIVES_DEVICE_H

#include "device/request.h"
#include "gshmem/status.h"

/* The device performs it with all members of the team; returns when it is complete. */
gshmem_status_t device_collective(const char *call, const struct device_request *r);

#endif
