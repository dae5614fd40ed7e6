/* Lets other threads run when one waits without saying so. */
#ifndef GSHMEM_DEVICE_HOST_WATCH_H
#define GSHMEM_DEVICE_HOST_WATCH_H

#include "device/host/blocks/grid.h"

/* Sees to it that a thread that waits without saying so lets the others run. */
void watch_start(struct worker *workers, unsigned count);
void watch_stop(void);
void watch_kernels(void);               /* a worker becomes busy */
void watch_code(const void *function);  /* a kernel in code that may be interrupted, */
void watch_forget(const void *function); /* and one that is to be unloaded */

#endif
