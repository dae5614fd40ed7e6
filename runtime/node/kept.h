/* Memory that the program still reads when its job has ended: the contents stay at the same
 * addresses, as private memory. At no moment are these addresses free, where another thread's mmap
 * could take them. */
#ifndef GSHMEM_RUNTIME_NODE_KEPT_H
#define GSHMEM_RUNTIME_NODE_KEPT_H

#include <stdbool.h>
#include <stddef.h>

struct kept;

/* Keeps these whole pages of the node's file when the job ends, with their contents of now, or of
 * kept_copy. NULL: there is no memory for a copy. */
struct kept *kept_add(void *at, size_t bytes, bool now);
/* Nobody reads them any more. */
void kept_remove(struct kept *k);

/* Copies what kept_add has not: when no other PE writes to this one's memory any more. */
void kept_copy(void);
/* Unmaps a mapping of the node's file, and puts the copies in the place of what is kept. */
void kept_unmap(void *at, size_t bytes);

#endif
