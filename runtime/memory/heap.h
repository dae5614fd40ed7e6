/* The symmetric heap: the allocator, the memory under it, and the agreement of all PEs. */
#ifndef GSHMEM_RUNTIME_HEAP_H
#define GSHMEM_RUNTIME_HEAP_H

#include <stddef.h>
#include <stdint.h>

#include "gshmem/status.h"
#include "runtime/memory/request.h"

struct job;
struct heap;

/* start: call when memory is mapped and teams exist. stop: frees the bookkeeping and logs leaks
 * (info). */
gshmem_status_t heap_start(struct job *j);
void heap_stop(struct job *j);

/* For other calls that all PEs make together. enter: the heap of gshmem_malloc, locked until leave,
 * and a request to fill in; NULL: there is no job, or the heaps of different nodes do not match. */
struct heap *heap_enter(struct request *r, enum heap_call call, size_t bytes);
void heap_leave(void);
/* An object in the node's memory, with the heap locked: its offset, or HEAP_NOWHERE. */
size_t heap_take(struct request *r, size_t bytes, size_t alignment);
void heap_release(struct job *j, size_t offset, size_t bytes);
char *heap_base(void);

#define HEAP_NOWHERE SIZE_MAX

#endif
