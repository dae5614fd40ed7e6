/* The symmetric heap in memory of a device's own (GPU memory): where each PE's is, and how all
 * grow.
 *
 * There is also the heap in host memory, for objects that request it. PEs of other nodes are
 * reached by a transport, and grow their heaps themselves; the caller makes sure that all could.
 * The CPU has no address for an object in here: it copies, by the device. */
#ifndef GSHMEM_RUNTIME_DEVICE_HEAP_H
#define GSHMEM_RUNTIME_DEVICE_HEAP_H

#include <stdbool.h>
#include <stdint.h>

#include "device/device.h"
#include "gshmem/status.h"
#include "runtime/memory/map.h"
#include "runtime/node/handover.h"

struct job;
struct device_heap;

/* Imported memory begins at a multiple of this, counted from where the whole heap begins. */
enum { DEVICE_HEAP_WINDOW_ALIGNMENT = 16 << 20 };

/* Prepares what the node's other PEs are to know of this PE's heap, before this PE joins the node.
 * Makes j->device_heap if the device has heaps of its own. */
gshmem_status_t device_heap_prepare(struct job *j, uint64_t system);
/* Finds the others' heaps, once all have joined. */
gshmem_status_t device_heap_start(struct job *j, await_fn *await, imported_fn *imported);
/* leave: unmaps the other PEs' heaps. Then, when they have unmapped this PE's, the heap itself is
 * released. */
void device_heap_leave(struct job *j);
void device_heap_stop(struct job *j);

/* This PE's heap for objects: its base, and its limit. */
char *device_heap_base(const struct device_heap *d);
uint64_t device_heap_limit(const struct device_heap *d);
/* The number of addresses from its base: those behind the limit are for imported memory. */
uint64_t device_heap_addresses(const struct device_heap *d);
/* The least limit of all nodes, the most, and the least number of addresses. */
void device_heap_meet(struct device_heap *d, uint64_t least, uint64_t most, uint64_t addresses);
/* Makes sure that there is memory up to `end`, on all PEs of this node, which all call it with the
 * same `end`. */
gshmem_status_t device_heap_reach(struct device_heap *d, uint64_t end, const char *call);
/* The end of the memory that all PEs of the node have. */
uint64_t device_heap_everywhere(const struct device_heap *d);
/* No object is beyond `end` any more, on any PE: memory there may be released. */
void device_heap_cut(struct device_heap *d, uint64_t end);

/* Where imported memory can begin, counted from where objects begin: the same on all PEs. 0 bytes:
 * the device cannot import memory. */
uint64_t device_heap_window(const struct device_heap *d, uint64_t *bytes);
/* Imports the program's memory at `at`, at an offset in there. All PEs of this node call it, with
 * the same arguments except `at`. After a failure nothing is imported. */
gshmem_status_t device_heap_lend(struct device_heap *d, const void *at, uint64_t bytes,
                                 uint64_t offset, const char *call);
/* Ends that on this PE. */
void device_heap_return(struct device_heap *d, uint64_t offset, uint64_t bytes);

/* PEs of other nodes that are in the same NVLink domain, whose heaps are mapped here like those of
 * this node.
 *
 * start: finds them. All PEs of the job call it, before the first object is made in the device's
 * heap, where the device of any of them makes it possible. A failure is logged as information, and
 * leaves those PEs to the network.
 *
 * follow: maps what those PEs have, after heaps have grown or memory was imported (`lent`). All PEs
 * of the job call it. A failure concerns this PE alone. */
bool domain_possible(const struct job *j);
/* tell: how all PEs of the job send each other the same number of bytes (gshmem_fcollectmem); room:
 * symmetric memory for that, of domain_room bytes. */
uint64_t domain_room(const struct job *j);
typedef gshmem_status_t domain_tell_fn(gshmem_team_t team, void *dest, const void *source,
                                       size_t bytes);
gshmem_status_t domain_start(struct job *j, domain_tell_fn *tell, void *room);
/* Returns the room; NULL: there was none. */
void *domain_stop(struct job *j);
bool domain_exists(const struct device_heap *d);
gshmem_status_t domain_follow(struct device_heap *d, bool imported, const char *call);

/* For multicast: how much memory there is on all PEs, how much of this PE's heap would remain if no
 * object were beyond `end`, and how much there may ever be. Each is counted from where heaps begin,
 * the library's part included. The last function returns this PE's piece that begins at an offset
 * (see device.h). */
uint64_t device_heap_filled(const struct device_heap *d);
uint64_t device_heap_kept(struct device_heap *d, uint64_t end);
uint64_t device_heap_span(const struct device_heap *d);
uint64_t device_heap_piece(struct device_heap *d, uint64_t offset);
const struct device_heap_map *device_heap_mine(const struct device_heap *d);
/* How all PEs of the node exchange messages, with room for a letter and a descriptor of each. */
void device_heap_circle(struct device_heap *d, struct handover **handover,
                        const struct handover_circle **circle);
void *device_heap_letters(struct device_heap *d, int **fds);

/* Copies and fills by the device; addresses are those that the functions above return. */
gshmem_status_t device_heap_copy(struct device_heap *d, void *to, const void *from, uint64_t bytes);
gshmem_status_t device_heap_fill(struct device_heap *d, void *at, int byte, uint64_t bytes);

#endif
