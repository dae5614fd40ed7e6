/* The symmetric heap: the allocator, the memory under it, and the agreement of all PEs. */
#ifndef GSHMEM_RUNTIME_HEAP_H
#define GSHMEM_RUNTIME_HEAP_H

#include "gshmem/status.h"

struct job;
struct heap;

/* Call once memory is mapped and teams exist; stop frees the bookkeeping and logs (info) leaks. */
gshmem_status_t heap_start(struct job *j);
void heap_stop(struct job *j);

#endif
