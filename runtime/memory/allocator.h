/* Allocates ranges of an address space that it never touches: bookkeeping is outside the memory.
 *
 * Works on offsets from 0 to a limit. It is deterministic: the same calls in the same order give
 * the same offsets, which makes the symmetric heap symmetric. Knows nothing of PEs. */
#ifndef GSHMEM_RUNTIME_ALLOCATOR_H
#define GSHMEM_RUNTIME_ALLOCATOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct allocator;

struct allocator *allocator_create(size_t limit); /* NULL: out of memory */
void allocator_destroy(struct allocator *a);

/* From now on each object is followed by so many bytes that are in none. Before the first
 * object. */
void allocator_keep_apart(struct allocator *a, size_t bytes);

/* Takes `bytes` (> 0) aligned to a power of two; false if there is no room (or no memory for the
 * bookkeeping), and nothing has changed. */
bool allocator_take(struct allocator *a, size_t bytes, size_t alignment, size_t *offset);

/* The same at a given offset; false also if these bytes are not all free, or the offset is no
 * multiple of 16. */
bool allocator_take_at(struct allocator *a, size_t offset, size_t bytes);

enum allocator_answer {
    ALLOCATOR_OK,
    ALLOCATOR_FREED,   /* an object that was freed */
    ALLOCATOR_INSIDE,  /* within an object, not at its start; *object is that start */
    ALLOCATOR_FOREIGN, /* never allocated */
};

/* What the allocator knows of an offset; *bytes is the requested size if the offset is the start of
 * an object. */
enum allocator_answer allocator_look(const struct allocator *a, size_t offset, size_t *object,
                                     size_t *bytes);
enum allocator_answer allocator_give(struct allocator *a, size_t offset);
/* Changes an object's size in place; false if it cannot, and nothing has changed. */
bool allocator_resize(struct allocator *a, size_t offset, size_t bytes);

size_t allocator_used(const struct allocator *a); /* bytes in objects */
size_t allocator_objects(const struct allocator *a);
size_t allocator_largest(const struct allocator *a); /* the largest free range */
size_t allocator_top(const struct allocator *a);     /* end of the highest object */

#endif
