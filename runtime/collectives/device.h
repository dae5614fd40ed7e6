/* Collectives that the device performs, on objects in memory of its own. */
#ifndef GSHMEM_COLLECTIVES_DEVICE_H
#define GSHMEM_COLLECTIVES_DEVICE_H

#include "device/request.h"
#include "gshmem/status.h"

/* Has the device perform it with all members of the team, and waits for it. */
gshmem_status_t device_collective(const char *call, const struct device_request *r);

#endif
