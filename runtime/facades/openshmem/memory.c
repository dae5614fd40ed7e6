/* Symmetric memory, and cache control, which has no effect on today's machines. */
#include "runtime/facades/openshmem/openshmem.h"

/* Calls that change the heap are barriers, which complete this PE's operations; those that do
 * nothing are local. */
static bool completes(bool acts)
{
    if (acts && gshmem_initialized())
        settle(gshmem_quiet());
    return acts;
}

void *pshmem_malloc(size_t size)
{
    return completes(size > 0) ? gshmem_path_malloc(size) : NULL;
}
WEAK(shmem_malloc)

void *pshmem_calloc(size_t count, size_t size)
{
    return completes(count > 0 && size > 0) ? gshmem_calloc(count, size) : NULL;
}
WEAK(shmem_calloc)

void *pshmem_align(size_t alignment, size_t size)
{
    if (alignment == 1 || alignment == 2 || alignment == 4) /* values that old programs use */
        alignment = sizeof(void *);
    return completes(size > 0) ? gshmem_align(alignment, size) : NULL;
}
WEAK(shmem_align)

/* All of the heap has what these hints ask for; other hints have no effect here. */
void *pshmem_malloc_with_hints(size_t size, long hints)
{
    const long known = SHMEM_MALLOC_ATOMICS_REMOTE | SHMEM_MALLOC_SIGNAL_REMOTE;

    return completes(size > 0) ? gshmem_malloc_with_hints(size, hints & known) : NULL;
}
WEAK(shmem_malloc_with_hints)

void *pshmem_realloc(void *ptr, size_t size)
{
    return completes(ptr || size > 0) ? gshmem_realloc(ptr, size) : NULL;
}
WEAK(shmem_realloc)

void pshmem_free(void *ptr)
{
    if (completes(ptr != NULL))
        settle(gshmem_free(ptr));
}
WEAK(shmem_free)

/* ---- Deprecated names ---- */

void *pshmalloc(size_t size)
{
    return pshmem_malloc(size);
}
WEAK(shmalloc)

void pshfree(void *ptr)
{
    pshmem_free(ptr);
}
WEAK(shfree)

void *pshrealloc(void *ptr, size_t size)
{
    return pshmem_realloc(ptr, size);
}
WEAK(shrealloc)

void *pshmemalign(size_t alignment, size_t size)
{
    return pshmem_align(alignment, size);
}
WEAK(shmemalign)

/* ---- Caches ---- */

void pshmem_set_cache_inv(void)
{
}
WEAK(shmem_set_cache_inv)

void pshmem_clear_cache_inv(void)
{
}
WEAK(shmem_clear_cache_inv)

void pshmem_set_cache_line_inv(void *dest)
{
    (void)dest;
}
WEAK(shmem_set_cache_line_inv)

void pshmem_clear_cache_line_inv(void *dest)
{
    (void)dest;
}
WEAK(shmem_clear_cache_line_inv)

void pshmem_udcflush(void)
{
}
WEAK(shmem_udcflush)

void pshmem_udcflush_line(void *dest)
{
    (void)dest;
}
WEAK(shmem_udcflush_line)
