/* Memory of the program's own that it has made part of the symmetric heap: a table of it, in the order
 * of addresses in the heap.
 *
 * On the host device its pages become pages of the heap (symmetric_host.h); of a device with memory of
 * its own, pieces of that memory are mapped behind what the heap can grow to (device_heap_lend). */
#ifndef GSHMEM_RUNTIME_SYMMETRIC_H
#define GSHMEM_RUNTIME_SYMMETRIC_H

#include <stdbool.h>
#include <stdint.h>

#include "gshmem/status.h"

struct job;
struct symmetric;

gshmem_status_t symmetric_start(struct job *j);
/* Gives back what the program has left registered: its memory is as it was, with what it holds now. */
void symmetric_stop(struct job *j);

/* Whether one begins at this address of the heap. */
bool symmetric_is_at(const void *address);
/* Whether all these bytes are in one, which lie so far behind the beginning of the heap in the
 * device's memory. For the map of the job that `context` is. */
bool symmetric_imported(const void *context, uint64_t offset, uint64_t bytes);

#endif
