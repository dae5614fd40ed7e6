/* Copies that leave the caches alone, for collectives that write more than the caches hold; all others
 * are gshmem_copy (gshmem/rma.h). */
#ifndef GSHMEM_RUNTIME_COPY_H
#define GSHMEM_RUNTIME_COPY_H

#include <stddef.h>

/* As gshmem_copy. Who sees a release after it sees what was copied, as ever. */
void copy_past_caches(void *to, const void *from, size_t bytes);

/* Of the last cache; SIZE_MAX where copies past it are not known to pay. */
size_t copy_cache_bytes(void);

#endif
