/* GSHMEM_CHECK=memory: which objects the program has now, and had, so that each operation can be
 * compared with them rather than with the whole heap; and which variables.
 *
 * An object is followed by a red zone, which the allocator leaves free and which has a pattern:
 * what the program itself stores there is found at the next barrier, or when the object is freed.
 * Objects lie side by side, so that this zone is also the one in front of the next object.
 *
 * Variables are known by the symbols of the program's file. Between variables there is no red zone:
 * an access that begins in the wrong variable is not found. Of a file without its static symbols (a
 * stripped one) exported variables and the ends of the program's data are known. Without the
 * setting there is no table, and nobody asks. */
#ifndef GSHMEM_RUNTIME_MEMORY_CHECKED_H
#define GSHMEM_RUNTIME_MEMORY_CHECKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gshmem/status.h"

enum { CHECKED_ZONE = 64 }; /* bytes behind an object that belong to none */

struct checked;

struct checked *checked_start(void); /* NULL: out of memory */
void checked_stop(struct checked *c);
/* A line for each object whose red zone has been written since the last review. */
void checked_review(struct checked *c, const char *call);

/* An object is there from now on. call: what the program has called, a constant; zone: the CPU may
 * write behind it, and the bytes there are free. */
void checked_enter(struct checked *c, void *object, size_t bytes, const char *call, bool zone);
/* It is freed. A line if its red zone has been written. */
void checked_leave(struct checked *c, const void *object, const char *call);

/* The program's data at these addresses: its variables are there from now on. Before the first
 * access, by one thread. */
void checked_enter_variables(struct checked *c, uintptr_t base, size_t bytes);

/* Whether all these bytes are in one object; else one line with the call, the object that is there,
 * or was, or is before it, and where it was allocated. here: this thread is in the program's call,
 * so that the line also has its place. */
gshmem_status_t checked_access(struct checked *c, const void *at, size_t bytes, const char *call,
                               bool here);
/* The same for bytes in the program's data. */
gshmem_status_t checked_variable(struct checked *c, const void *at, size_t bytes, const char *call,
                                 bool here);
/* How many bytes the object, or variable, has from there on; `most` if none is known there. */
size_t checked_room(struct checked *c, const void *at, size_t most);

#endif
