/* The OS threads that run blocks. */
#ifndef GSHMEM_DEVICE_HOST_WORKERS_H
#define GSHMEM_DEVICE_HOST_WORKERS_H

#include "device/host/blocks/pool.h"

/* How much fits at once. Starts the workers the first time; false if that fails. */
bool workers_start(struct capacity *capacity);

#endif
