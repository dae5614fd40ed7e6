/* What calls that all PEs make on the heap together have in common. */
#ifndef GSHMEM_RUNTIME_OPERATIONS_MALLOC_H
#define GSHMEM_RUNTIME_OPERATIONS_MALLOC_H

#include "runtime/memory/heap.h"

/* enter: the heap that gshmem_malloc allocates from, locked until end, and a request to fill in;
 * NULL: there is no job, or PEs of several nodes do not fit together. */
struct heap *malloc_enter(struct request *r, enum heap_call call, size_t bytes);
void malloc_end(void);
/* Gives back what the library itself has taken. */
void malloc_stop(struct job *j);

#endif
