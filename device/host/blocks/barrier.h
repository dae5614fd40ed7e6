/* What barriers and warps are told of threads that end, and the order of fences. */
#ifndef GSHMEM_DEVICE_HOST_BARRIER_H
#define GSHMEM_DEVICE_HOST_BARRIER_H

#include "device/host/blocks/grid.h"

/* barrier.c and warp.c: the thread has ended; who waits for it waits no more. */
void barrier_thread_ended(struct block *block);
void warp_thread_ended(struct thread *thread);

/* Address for ThreadSanitizer of the one order of all __threadfence(). */
extern char fence_clock;

#endif
