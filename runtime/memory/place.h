/* The symmetric heap at an address that the user chooses, the same on all PEs: GSHMEM_HEAP_BASE. */
#ifndef GSHMEM_RUNTIME_PLACE_H
#define GSHMEM_RUNTIME_PLACE_H

#include <stdint.h>

#include "gshmem/status.h"

struct job;

/* The address that GSHMEM_HEAP_BASE asks for on this PE; 0: none. */
uint64_t place_wanted(void);
/* Call once peers are mapped. Does nothing where the setting is empty. */
gshmem_status_t place_heap(struct job *j);
void place_end(struct job *j);

#endif
