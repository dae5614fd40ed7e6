/* The program's global and static variables as symmetric memory.
 *
 * The writable part of the executable (and of libraries that ask for it) is copied into the shared
 * file, and that file is mapped over it at the same addresses. The program does not notice, and
 * peers can reach it. Segments are found by the program headers, so that PIE and address
 * randomisation do not matter. */
#ifndef GSHMEM_RUNTIME_DATA_H
#define GSHMEM_RUNTIME_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gshmem/status.h"

enum { DATA_SEGMENT_MAX = 8 };

struct data_segment {
    uintptr_t base;     /* page aligned */
    size_t bytes;       /* whole pages */
    size_t offset;      /* in the data part of a slot */
    size_t initialised; /* bytes from base that come from the program's file; the rest is .bss */
    int protection;     /* PROT_… */
};

struct data_segments {
    int n;
    /* The executable's segments first, then those of libraries, in the order in which they
     * asked. */
    struct data_segment segment[DATA_SEGMENT_MAX];
    size_t bytes;    /* of all, as laid out in a slot */
    uint64_t digest; /* sizes and build id, or content: the same program on another PE */
};

/* Finds the segments. An executable without writable data has none. */
gshmem_status_t data_find(struct data_segments *segments);

/* Adds the writable segments of the library that has this variable, at the next data_find.
 * *of_library: false if it is the executable, whose segments are in any case. */
gshmem_status_t data_ask(const void *inside, bool *of_library);

/* Moves a segment into fd at offset, keeping address and contents. Not undone at finalize: the
 * variables stay there until the next job or the end of the process, and one duplicate of fd per
 * segment stays open for it. A child made by fork gets a private copy. */
gshmem_status_t data_share(const struct data_segment *segment, int fd, size_t offset);
/* Whether this is a child of fork without memory for its copy: it then shares its parent's
 * variables. */
bool data_is_parents(void);

#endif
