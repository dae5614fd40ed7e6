/* Whether this process has memory at an address that a kernel gave: a put from nowhere must be an
 * error of that put, and not the end of the process. The system knows; what it said of single pages
 * is remembered, as most commands point into the same few. Memory that is unmapped while commands
 * point at it is beyond help. */
#ifndef GSHMEM_PROXY_PAGES_H
#define GSHMEM_PROXY_PAGES_H

#include <stdbool.h>
#include <stdint.h>

enum { PAGES_REMEMBERED = 256 };

/* All zero at first. For one thread at a time. */
struct pages {
    uintptr_t known[PAGES_REMEMBERED]; /* page numbers + 1, by their low bits */
};

bool pages_exist(struct pages *p, uint64_t address, uint64_t bytes);

#endif
