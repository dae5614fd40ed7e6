/* The symmetric heap at an address that the user chooses, the same in all PEs: GSHMEM_HEAP_BASE. */
#ifndef GSHMEM_RUNTIME_PLACE_H
#define GSHMEM_RUNTIME_PLACE_H

#include <stdint.h>

#include "gshmem/status.h"

struct job;

/* The address that GSHMEM_HEAP_BASE asks for here; 0: none. */
uint64_t place_wanted(void);
/* Once peers are mapped. Nothing, where the setting is empty. */
gshmem_status_t place_heap(struct job *j);
void place_end(struct job *j);

#endif
