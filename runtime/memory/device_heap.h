/* The symmetric heap in memory of a device's own (GPU memory): where each PE's is, and how all grow.
 *
 * Beside it the heap in host memory stays, for objects that ask for it. PEs of other hosts are reached by
 * a transport, and grow theirs by themselves: who calls makes sure that all could. The CPU has no address for what is in here: it copies, by the device. */
#ifndef GSHMEM_RUNTIME_DEVICE_HEAP_H
#define GSHMEM_RUNTIME_DEVICE_HEAP_H

#include <stdbool.h>
#include <stdint.h>

#include "device/device.h"
#include "gshmem/status.h"
#include "runtime/node/handover.h"

struct job;
struct device_heap;

/* Where memory can be lent begins at a multiple of this, from where all of a heap begins. */
enum { DEVICE_HEAP_WINDOW_ALIGNMENT = 16 << 20 };

/* Before this PE shows itself to its node: what the others are to know of its heap. Makes
 * j->device_heap if the device has heaps of its own. */
gshmem_status_t device_heap_prepare(struct job *j);
/* Once all have shown themselves: finds the others' heaps. */
gshmem_status_t device_heap_start(struct job *j);
/* Lets go of the other PEs' heaps; then, when they have let go of this one too, of this one. */
void device_heap_leave(struct job *j);
void device_heap_stop(struct job *j);

/* This PE's heap for objects: from where, and up to how much. */
char *device_heap_base(const struct device_heap *d);
uint64_t device_heap_limit(const struct device_heap *d);
/* How many addresses there are from where it begins: behind the limit those for what it may be lent. */
uint64_t device_heap_addresses(const struct device_heap *d);
/* The least limit of all hosts, the most, and the least number of addresses. */
void device_heap_meet(struct device_heap *d, uint64_t least, uint64_t most, uint64_t addresses);
/* Makes sure that there is memory up to `end`, on all PEs of this node, which must all call it with the same. */
gshmem_status_t device_heap_reach(struct device_heap *d, uint64_t end, const char *call);
/* Up to here there is memory on all of them. */
uint64_t device_heap_everywhere(const struct device_heap *d);
/* No object is beyond `end` any more, on any PE. */
void device_heap_cut(struct device_heap *d, uint64_t end);

/* Where memory of the program's can be lent to it, from where objects begin: the same on all PEs. 0 bytes: the
 * device cannot. */
uint64_t device_heap_window(const struct device_heap *d, uint64_t *bytes);
/* Lends it what the program has at `at`, at an offset in there; all PEs of this node call it, with the same
 * but for `at`. After a failure nothing is lent. */
gshmem_status_t device_heap_lend(struct device_heap *d, const void *at, uint64_t bytes, uint64_t offset,
                                 const char *call);
/* And takes it away from it, here. */
void device_heap_return(struct device_heap *d, uint64_t offset, uint64_t bytes);

/* PEs of other hosts that are in the same NVLink domain, whose heaps are mapped here as those of this node are.
 * start: finds them; all PEs of the job call it, before the first object is made in the device's heap, where it
 * is possible for any of them. What fails is said as information, and leaves them to the network.
 * follow: after heaps have grown, or have been lent something (`lent`), what those others have of it; all
 * PEs of the job call it. A failure is this PE's own. */
bool domain_possible(const struct job *j);
gshmem_status_t domain_start(struct job *j, const char *call);
void domain_stop(struct job *j);
bool domain_exists(const struct device_heap *d);
gshmem_status_t domain_follow(struct device_heap *d, bool lent, const char *call);

/* For multicast. How much there is on all PEs, how much of this PE's heap would be left if no object were
 * beyond `end`, and how much there may ever be: each from where heaps begin, the library's part included.
 * This PE's piece that begins at an offset, as device.h says. */
uint64_t device_heap_filled(const struct device_heap *d);
uint64_t device_heap_kept(struct device_heap *d, uint64_t end);
uint64_t device_heap_span(const struct device_heap *d);
uint64_t device_heap_piece(struct device_heap *d, uint64_t offset);
const struct device_heap_map *device_heap_mine(const struct device_heap *d);
/* How all PEs of the node talk; and room for a letter and a descriptor of each. */
void device_heap_circle(struct device_heap *d, struct handover **handover,
                        const struct handover_circle **circle);
void *device_heap_letters(struct device_heap *d, int **fds);

/* Copies and fills by the device, with addresses as these give them. */
gshmem_status_t device_heap_copy(struct device_heap *d, void *to, const void *from, uint64_t bytes);
gshmem_status_t device_heap_fill(struct device_heap *d, void *at, int byte, uint64_t bytes);

#endif
