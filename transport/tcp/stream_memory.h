/* The memory of one direction of a stream: a record with its buffers at the end. While no data
 * passes, the record keeps only the pages in front of its buffers. The system supplies the others
 * when they are used. */
#ifndef GSHMEM_TRANSPORT_TCP_STREAM_MEMORY_H
#define GSHMEM_TRANSPORT_TCP_STREAM_MEMORY_H

#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

/* A record of zeros; NULL: out of memory. */
static inline void *stream_memory_new(size_t bytes)
{
    void *record =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return record == MAP_FAILED ? NULL : record;
}

static inline void stream_memory_free(void *record, size_t bytes)
{
    munmap(record, bytes);
}

/* Gives back the pages behind the first `kept` bytes; they read as zero from here on. */
static inline void stream_memory_shrink(void *record, size_t kept, size_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t first = (kept + page - 1) / page * page;

    /* The record remains valid where this fails. */
    if (first < bytes)
        madvise((char *)record + first, bytes - first, MADV_DONTNEED);
}

#endif
