/* Fills the map of symmetric memory from what the job has. */
#ifndef GSHMEM_RUNTIME_MEMORY_MAP_FILL_H
#define GSHMEM_RUNTIME_MEMORY_MAP_FILL_H

#include <stdint.h>

#include "gshmem/status.h"

struct job;

/* The segments in host memory, once all PEs of the node have joined. The heap in the device's
 * memory is entered by device_heap.c. */
gshmem_status_t map_fill(struct job *j);
/* This PE's heap in host memory, and the NIC heap behind it, have moved to another address. */
void map_move_heap(struct job *j, uintptr_t base);

#endif
