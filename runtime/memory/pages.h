/* Whether this process has memory at an address that a kernel named: a put from an unmapped address
 * must be an error of that put, and not end the process. The system is asked, and its answers for
 * single pages are cached, as most commands name the same few pages. Memory that is unmapped while
 * commands use it is not detected. */
#ifndef GSHMEM_RUNTIME_MEMORY_PAGES_H
#define GSHMEM_RUNTIME_MEMORY_PAGES_H

#include <stdbool.h>
#include <stdint.h>

enum { PAGES_REMEMBERED = 256 };

/* All zero at first. For one thread at a time. */
struct pages {
    uintptr_t known[PAGES_REMEMBERED]; /* page numbers + 1, by their low bits */
};

bool pages_exist(struct pages *p, uint64_t address, uint64_t bytes);

#endif
