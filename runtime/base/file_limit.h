/* Whether this process may write into a file up to this offset. If not (ulimit -f), the system
 * would end it with SIGXFSZ, without a line that says why. Stores to a mapping have no such
 * limit. */
#ifndef GSHMEM_BASE_FILE_LIMIT_H
#define GSHMEM_BASE_FILE_LIMIT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>

static inline bool file_limit_allows(uint64_t end)
{
    struct rlimit limit;

    return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || end <= limit.rlim_cur;
}

#endif
