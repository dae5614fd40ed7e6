#define _GNU_SOURCE
#include "runtime/memory/pages.h"

#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

bool pages_exist(struct pages *p, uint64_t address, uint64_t bytes)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t first = address / page, last = (address + bytes - 1) / page;
    uintptr_t *known = &p->known[first % PAGES_REMEMBERED];

    if (address == 0 || address + bytes < address || address > UINTPTR_MAX - bytes)
        return false;
    if (first == last && *known == first + 1)
        return true;
    /* Has no effect except to fail where a page is not mapped. */
    if (msync((void *)(uintptr_t)(first * page), (size_t)((last - first + 1) * page), MS_ASYNC) !=
        0)
        return false;
    if (first == last)
        *known = (uintptr_t)first + 1;
    return true;
}
