/* Memory of the program's own that it has made part of the symmetric heap: a table of it, in the
 * order of addresses in the heap.
 *
 * On the host device its pages become pages of the heap (symmetric_host.h). On a device with memory
 * of its own, pieces of that memory are mapped behind the heap's limit (device_heap_lend). */
#ifndef GSHMEM_RUNTIME_SYMMETRIC_H
#define GSHMEM_RUNTIME_SYMMETRIC_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gshmem/status.h"
#include "runtime/memory/device_heap.h"

struct allocator;
struct job;
struct request;

struct imported {
    uintptr_t at;   /* in this PE's heap */
    size_t offset;  /* of that, in the node's heap, or in the device heap's addresses for imported
                       memory */
    uintptr_t mine; /* the program's own address */
    size_t bytes;
};

/* Pieces are multiples of the device's granularity, which is less. What NICs register at once
 * (transport/verbs) begins at such a multiple, and must not contain two buffers. */
enum { IMPORT_ALIGNMENT = DEVICE_HEAP_WINDOW_ALIGNMENT };

struct symmetric {
    pthread_mutex_t lock; /* held by the proxy during a look-up, and by a thread that changes the
                             table */
    struct imported *imported;    /* in the order of addresses */
    int n, room;
    struct allocator *window; /* addresses for memory imported into a device's heap; NULL: none
                                 yet */
};

gshmem_status_t symmetric_start(struct job *j);
/* Unregisters what the program has left registered. The memory stays the program's, with its
 * current contents. */
void symmetric_stop(struct job *j);

/* Whether a buffer begins at this address of the heap. */
bool symmetric_is_at(const void *address);
/* Whether one buffer contains all these bytes; offset counts from the beginning of the heap in the
 * device's memory. For the map; `context` is the job. */
bool symmetric_imported(const void *context, uint64_t offset, uint64_t bytes);

/* ---- For the calls: operations/register_symmetric.c ---- */

/* The one with that address in it, and how far in; false: none. find_mine: one that overlaps these
 * bytes of the program's own addresses. */
bool symmetric_find(struct symmetric *s, uintptr_t address, struct imported *found, size_t *inside);
bool symmetric_find_mine(struct symmetric *s, uintptr_t mine, size_t bytes, struct imported *found);
/* Whether the buffer may become symmetric, with room for it in the table; else the request is
 * refused. */
bool symmetric_check(const void *addr, size_t bytes, int flags, struct request *r);
/* There is room: symmetric_check. */
void symmetric_insert(struct symmetric *s, struct imported l);
void symmetric_take_out(struct symmetric *s, uintptr_t at);
/* On the host device: where a buffer's pages are in the node's file, and their return. */
size_t symmetric_file_offset(const struct job *j, const struct imported *l);
void symmetric_unshare(const struct job *j, const struct imported *l);

#endif
