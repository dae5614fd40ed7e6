/* The OS threads that run blocks. */
#ifndef GSHMEM_DEVICE_HOST_WORKERS_H
#define GSHMEM_DEVICE_HOST_WORKERS_H

#include "device/host/blocks/pool.h"

/* How much fits at once. Starts the workers the first time; false if that fails. */
bool workers_start(struct capacity *capacity);
/* From here on a child made by fork finds the device failed: this process has threads for it. */
void work_watch_forks(void);
/* In such a child, which has no workers. */
void workers_leave_parent(void);

#endif
