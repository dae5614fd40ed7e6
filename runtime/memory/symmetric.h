/* Memory of the program's own that it has made part of the symmetric heap: a table of it, in the
 * order of addresses in the heap.
 *
 * On the host device its pages become pages of the heap (symmetric_host.h). On a device with memory
 * of its own, pieces of that memory are mapped behind the heap's limit (device_heap_lend). */
#ifndef GSHMEM_RUNTIME_SYMMETRIC_H
#define GSHMEM_RUNTIME_SYMMETRIC_H

#include <stdbool.h>
#include <stdint.h>

#include "gshmem/status.h"

struct job;
struct symmetric;

gshmem_status_t symmetric_start(struct job *j);
/* Unregisters what the program has left registered. The memory stays the program's, with its
 * current contents. */
void symmetric_stop(struct job *j);

/* Whether a buffer begins at this address of the heap. */
bool symmetric_is_at(const void *address);
/* Whether one buffer contains all these bytes; offset counts from the beginning of the heap in the
 * device's memory. For the map; `context` is the job. */
bool symmetric_imported(const void *context, uint64_t offset, uint64_t bytes);

#endif
