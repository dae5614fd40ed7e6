/* Tells the trace what kernels do (device/kernel_events.h). While nobody listens, each place that
 * tells something costs a load and a branch, and the paths of a thread only a branch on a byte of
 * its own. */
#ifndef GSHMEM_DEVICE_HOST_EVENTS_H
#define GSHMEM_DEVICE_HOST_EVENTS_H

#include "device/host/blocks/grid.h"
#include "device/kernel_events.h"

void events_grid_begins(struct grid *grid);
void events_grid_ends(const struct grid *grid);
void events_block_begins(const struct block *block);
void events_block_ends(struct block *block);

/* A thread that waits was run again. */
void events_thread_resumed(struct thread *self);
/* Its wait is over, which ended when the thread was last resumed. */
void events_wait_was_over(struct thread *self);
/* Its wait ends now. */
void events_wait_ends(struct thread *self);
/* A kernel made from PTX has polled that address for some time. */
void events_polls(struct thread *self, uint64_t address);

/* A thread of the host waits for work, in a call of CUDA. */
void events_host_waits(void);
void events_host_goes_on(void);

#endif
