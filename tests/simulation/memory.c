/* What the library asks of the C library in memory and files: calls that may fail. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "nth.h"
#include "wrap.h"

#define ALLOCATE(call)                                                                             \
    void *memory = NTH(malloc) ? NULL : (call);                                                    \
    nth_allocated(memory, __builtin_return_address(0));                                            \
    return memory

void *__wrap_malloc(size_t bytes)
{
    ALLOCATE(malloc(bytes));
}

void *__wrap_calloc(size_t n, size_t bytes)
{
    ALLOCATE(calloc(n, bytes));
}

void *__wrap_aligned_alloc(size_t alignment, size_t bytes)
{
    ALLOCATE(aligned_alloc(alignment, bytes));
}

char *__wrap_strdup(const char *text)
{
    ALLOCATE(strdup(text));
}

void *__wrap_realloc(void *memory, size_t bytes)
{
    if (NTH(malloc))
        return NULL;
    nth_freed(memory);
    memory = realloc(memory, bytes);
    nth_allocated(memory, __builtin_return_address(0));
    return memory;
}

void __wrap_free(void *memory)
{
    nth_freed(memory);
    free(memory);
}

void *__wrap_mremap(void *at, size_t bytes, size_t more, int flags, void *to)
{
    return NTH(mremap) ? MAP_FAILED : mremap(at, bytes, more, flags, to);
}

int __wrap_memfd_create(const char *name, unsigned flags)
{
    return NTH(memfd_create) ? -1 : memfd_create(name, flags);
}

int __wrap_ftruncate64(int fd, off_t bytes)
{
    return NTH(ftruncate) ? -1 : ftruncate(fd, bytes);
}

int __wrap_fallocate64(int fd, int mode, off_t offset, off_t bytes)
{
    return NTH(fallocate) ? -1 : fallocate(fd, mode, offset, bytes);
}
