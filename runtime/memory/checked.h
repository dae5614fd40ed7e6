/* GSHMEM_CHECK=memory: which objects the program has now, and had, so that each operation can be
 * compared with them rather than with the whole heap.
 *
 * An object is followed by a red zone, which the allocator leaves free and which has a pattern:
 * what the program itself stores there is found when the object is freed. Without the setting there
 * is no table, and nobody asks. */
#ifndef GSHMEM_RUNTIME_MEMORY_CHECKED_H
#define GSHMEM_RUNTIME_MEMORY_CHECKED_H

#include <stdbool.h>
#include <stddef.h>

#include "gshmem/status.h"

enum { CHECKED_ZONE = 64 }; /* bytes behind an object that belong to none */

struct checked;

struct checked *checked_start(void); /* NULL: out of memory */
void checked_stop(struct checked *c);
/* At the end of a job: a line for each object that was not freed and whose red zone has been
 * written. */
void checked_review(struct checked *c);

/* An object is there from now on. call: what the program has called, a constant; zone: the CPU may
 * write behind it, and the bytes there are free. */
void checked_enter(struct checked *c, void *object, size_t bytes, const char *call, bool zone);
/* It is freed. A line if its red zone has been written. */
void checked_leave(struct checked *c, const void *object, const char *call);

/* Whether all these bytes are in one object; else one line with the call, the object that is there,
 * or was, or is before it, and where it was allocated. here: this thread is in the program's call,
 * so that the line also has its place. */
gshmem_status_t checked_access(struct checked *c, const void *at, size_t bytes, const char *call,
                               bool here);

#endif
