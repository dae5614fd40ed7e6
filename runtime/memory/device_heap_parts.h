/* What the parts of the heap in a device's own memory know of each other: device_heap.c (how it grows,
 * and where things are), window.c (memory of the program's that it is lent) and domain.c (PEs of other hosts). */
#ifndef GSHMEM_RUNTIME_DEVICE_HEAP_PARTS_H
#define GSHMEM_RUNTIME_DEVICE_HEAP_PARTS_H

#include <pthread.h>

#include "runtime/node/node.h"
#include "runtime/memory/device_heap.h"

/* A PE of another node whose heap is mapped here all the same. */
struct remote_heap {
    int pe;
    struct device_heap_map map;
};

struct device_heap {
    struct device *device;
    const struct node *node;
    int pes; /* of the job */
    struct segment *segment; /* of the map of symmetric memory: what others know of all this */
    pthread_mutex_t pieces; /* held while the device's list of this PE's changes, and while it is read */
    void *letters;          /* for multicast: [PEs of the node] */
    int *letter_fds;
    struct handover handover;
    struct handover_circle circle; /* all PEs of the node */
    uint64_t limit;      /* of each PE's, the system part included */
    uint64_t limit_here; /* that of this node, before others had a say */
    uint64_t addresses;  /* of each PE's: also what it may be lent, behind the limit */
    uint64_t window;     /* from here on there is room for that, on the PEs of all hosts, */
    uint64_t window_end; /* up to here */
    uint64_t system;     /* bytes at the beginning that are the library's */
    uint64_t everywhere; /* up to here there is memory on all PEs */
    uint64_t mine;       /* and on this one: the proxy thread looks at it */
    struct remote_heap *remote; /* by PE, ascending */
    int remotes;
    char *letters_remote; /* symmetric, in host memory: one of each PE, and this PE's own; NULL: no PE of the
                           job needs any */
    struct device_piece grown; /* the last piece of this PE's heap; 0 bytes: the last call needed none */
    struct device_piece *lent; /* those that the last call has lent to it */
    int lents;
    struct device_heap_map map[]; /* by the PE's index on its node */
};

/* What PEs tell each other when heaps grow. */
struct news {
    uint64_t status; /* of the sender's part */
    struct device_piece piece; /* of 0 bytes: none was needed */
    uint64_t more;             /* of what is lent: the sender has another */
};

_Static_assert(sizeof(struct news) <= HANDOVER_LETTER_MAX, "it is a letter");

/* The lowest PE's failure is everybody's; who is to blame has logged it. */
gshmem_status_t device_heap_failure(const struct device_heap *d, const struct news *news,
                                    const char *call);
/* Tells the map of symmetric memory how far heaps reach, and where each PE's is mapped here. */
void device_heap_enter_map(struct device_heap *d);
/* Of a PE of another node; NULL: it is not mapped. */
const struct device_heap_map *domain_map_of(const struct device_heap *d, int pe);
void device_heap_close_all(const struct device_heap *d, const int *fds);

#endif
