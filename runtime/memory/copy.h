/* Copies that bypass the caches, for collectives that write more than the caches hold. All other
 * copies are gshmem_copy (gshmem/rma.h). */
#ifndef GSHMEM_RUNTIME_COPY_H
#define GSHMEM_RUNTIME_COPY_H

#include <stddef.h>

/* Like gshmem_copy: a PE that sees a later release sees the copied data. */
void copy_past_caches(void *to, const void *from, size_t bytes);

/* The size of the last cache; SIZE_MAX where copies past it are not known to be faster. */
size_t copy_cache_bytes(void);

#endif
