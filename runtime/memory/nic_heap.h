/* The part of the heap that NICs update: objects of gshmem_malloc_with_hints(…,
 * GSHMEM_MALLOC_ATOMICS_REMOTE) in jobs over several hosts whose PEs all have NICs that make
 * atomics.
 *
 * An update there is a work request to one NIC of the owner's, whoever asks for it, the owner and
 * the PEs of its host included; CPUs only read and write it. It lies right behind the heap in host
 * memory, beyond the limit that inline code checks: what is updated inline elsewhere goes out of
 * line here, and nothing else pays for that. */
#ifndef GSHMEM_RUNTIME_NIC_HEAP_H
#define GSHMEM_RUNTIME_NIC_HEAP_H

#include "runtime/job.h"

/* Where all of it begins on this PE; empty, where there are no such NICs. */
static inline uintptr_t nic_heap_base(const struct job *j)
{
    return j->heap_peer[j->pe] + j->host.layout.heap_bytes;
}

/* Whether these bytes of this PE's are in it, and where, from its beginning. */
static inline bool nic_heap_find(const struct job *j, const void *mine, size_t bytes,
                                 uint64_t *offset)
{
    const size_t at = (uintptr_t)mine - nic_heap_base(j);

    *offset = at;
    return at < j->host.layout.nic_bytes && bytes <= j->host.layout.nic_bytes - at;
}

/* Where a PE of the job has the same, mapped here; NULL: nowhere. */
static inline char *nic_heap_there(const struct job *j, int pe, uint64_t offset)
{
    return j->heap_peer[pe] ? (char *)j->heap_peer[pe] + j->host.layout.heap_bytes + offset : NULL;
}

#endif
