/* The symmetric heaps of a PE: which objects there are, and the memory under them.
 *
 * Every PE does the same to its own heap, so that all get the same offsets; operations/malloc.c has
 * the calls, and makes sure of it by agreement.
 *
 * Where the device has a heap of its own there are two heaps: that one, and the one in host memory
 * for objects that request it (GSHMEM_MALLOC_HOST). Where NICs make atomics there is one more, for
 * objects that request that (GSHMEM_MALLOC_ATOMICS_REMOTE), directly behind the one in host
 * memory. */
#ifndef GSHMEM_RUNTIME_MEMORY_HEAP_H
#define GSHMEM_RUNTIME_MEMORY_HEAP_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gshmem/status.h"
#include "runtime/memory/request.h"

struct allocator;
struct device_heap;
struct job;
struct network;
struct node;

enum { HEAP_HUGE_PAGE = 2 << 20 }; /* objects of a huge page or more begin at a huge page */

#define HEAP_NOWHERE SIZE_MAX

/* Whether a NIC holds some of these bytes of this PE's, so that their pages must stay. */
typedef bool heap_pins_fn(struct network *n, const void *mine, size_t bytes);

struct heap {
    pthread_mutex_t calls; /* one call at a time, also while it waits for other PEs; only the host
                              heap's is used */
    struct allocator *objects;
    struct device_heap *device; /* where the memory is; NULL: the host's, and the fields below are
                                   for that */
    const struct node *node; /* the node whose file holds the memory */
    size_t in_file; /* the offset in the file */
    char *base;
    size_t limit;
    size_t touched;
    size_t affordable; /* what each PE of the node can have of this machine's memory; SIZE_MAX: the
                          limit says it, or it has been said */
    size_t keep; /* this much free memory may stay in front of the last object, and behind it */
    size_t page;
    size_t dumped; /* up to here, memory is part of core dumps */
    heap_pins_fn *pins; /* whether a NIC holds some of these pages */
    bool met;      /* all nodes have agreed on the limit */
    bool huge;     /* huge pages are wanted and not requested yet */
    bool of_nics;  /* the heap that NICs update, and whether they can, once all PEs have agreed */
};

/* Call start once memory is mapped; stop frees the bookkeeping and logs (info) leaks. */
gshmem_status_t heap_start(struct job *j, heap_pins_fn *pins);
void heap_stop(struct job *j);

/* The heap that ptr is in; h: if it is in none of those in host memory. */
struct heap *heap_of(struct heap *h, const void *ptr);
/* Lowers the limit, before the first object. */
gshmem_status_t heap_lower_limit(struct heap *h, size_t limit);

/* Takes room for an object: its offset, or HEAP_NOWHERE, with the request refused. The memory is
 * not touched yet. */
size_t heap_take(struct heap *h, struct request *r, size_t bytes, size_t alignment);
/* The same at that offset; HEAP_NOWHERE if it is not free, and nothing is refused. */
size_t heap_take_at(struct heap *h, struct request *r, size_t bytes, size_t offset);
/* The alignment that an object of that size has, whatever was asked for. */
size_t heap_natural_alignment(size_t bytes);
/* The object at ptr and its size; HEAP_NOWHERE if ptr is NULL, or is refused. */
size_t heap_find(const struct heap *h, struct request *r, const void *ptr, size_t *bytes);
/* Gives the object back, and in host memory its pages. */
void heap_give(struct heap *h, size_t offset, size_t bytes);

/* ---- heap_pages.c ---- */

/* An object is there from now on. */
void heap_touch(struct heap *h, size_t offset, size_t bytes);
/* An object in host memory was freed. Returns the unused end of the heap beyond h->keep to the
 * system, and the pages of this object if it was a large one in front of others and more than
 * h->keep is free there: pages that come back must be zeroed and faulted in again
 * (docs/decisions/0034, 0042). */
void heap_return_pages(struct heap *h, size_t offset, size_t bytes);
gshmem_status_t heap_make_zero(const struct heap *h, size_t offset, size_t bytes);
gshmem_status_t heap_copy(const struct heap *h, size_t to, size_t from, size_t bytes);
void heap_discard_all(const struct heap *h);

#endif
