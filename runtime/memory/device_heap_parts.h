/* What the parts of the heap in a device's own memory share: device_heap.c (how it grows, and where
 * things are), window.c (imported memory) and domain.c (PEs of other nodes). */
#ifndef GSHMEM_RUNTIME_DEVICE_HEAP_PARTS_H
#define GSHMEM_RUNTIME_DEVICE_HEAP_PARTS_H

#include <pthread.h>

#include "runtime/node/node.h"
#include "device/device.h"
#include "runtime/memory/map.h"

struct news;

/* A PE of another node whose heap is mapped here. */
struct remote_heap {
    int pe;
    struct device_heap_map map;
};

struct device_heap {
    struct device *device;
    const struct node *node;
    int pes; /* PEs of the job */
    struct segment *segment; /* the entry in the map of symmetric memory */
    pthread_mutex_t pieces; /* held while the list of this PE's pieces changes, and while it is
                               read */
    void *letters;          /* for multicast: [PEs of the node] */
    int *letter_fds;
    struct news *news;      /* for growth and loans: [PEs of the node]; a PE without memory could
                               not tell the others, which wait for it */
    int *news_fds;
    struct handover handover;
    struct handover_circle circle; /* all PEs of the node */
    uint64_t limit;      /* of each PE's heap, the system part included */
    uint64_t limit_here; /* the limit of this node, before all nodes agreed */
    uint64_t addresses;  /* of each PE's heap, those for imported memory behind the limit
                            included */
    uint64_t window;     /* where addresses for imported memory begin, on the PEs of all nodes */
    uint64_t window_end; /* where they end */
    uint64_t system;     /* bytes at the beginning that are the library's */
    uint64_t everywhere; /* the end of the memory that all PEs have */
    uint64_t mine;       /* the end of this PE's memory; the proxy thread reads it */
    /* how all PEs of the job send each other the same number of bytes */
    gshmem_status_t (*tell)(gshmem_team_t team, void *dest, const void *source, size_t bytes);
    struct remote_heap *remote; /* by PE, ascending */
    int remotes;
    char *letters_remote; /* symmetric, in host memory: one letter of each PE, and this PE's own;
                             NULL: no PE of the job needs any */
    struct device_piece grown; /* the last piece of this PE's heap; 0 bytes: the last call needed
                                  none */
    struct device_piece *imported; /* the pieces that the last call imported */
    int lents;
    struct device_heap_map map[]; /* by the PE's index on its node */
};

/* What PEs send each other when heaps grow. */
struct news {
    uint64_t status; /* of the sender's part */
    struct device_piece piece; /* of 0 bytes: none was needed */
    uint64_t more;             /* of imported memory: the sender has another piece */
};

_Static_assert(sizeof(struct news) <= HANDOVER_LETTER_MAX, "it is a letter");

/* A failure of any PE is a failure of all: the lowest PE's. The PE where it happened has logged
 * it. */
gshmem_status_t device_heap_failure(const struct device_heap *d, const struct news *news,
                                    const char *call);
/* Enters in the map of symmetric memory how far heaps extend, and where each PE's is mapped
 * here. */
void device_heap_enter_map(struct device_heap *d);
/* The map of a PE of another node; NULL: it is not mapped. */
const struct device_heap_map *domain_map_of(const struct device_heap *d, int pe);
void device_heap_close_all(const struct device_heap *d, const int *fds);

#endif
