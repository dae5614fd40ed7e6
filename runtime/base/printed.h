/* Checks that a program's output has been written: a full disk is a failure, and must not leave an
 * empty file. For our own programs, also where they are built for another library: needs nothing
 * but libc. */
#ifndef GSHMEM_BASE_PRINTED_H
#define GSHMEM_BASE_PRINTED_H

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* The status to end with: `status` if all output was written. The reason is known only for a
 * failure that happens here. */
static inline int printed(const char *program, int status)
{
    const int failed = ferror(stdout);

    if (fflush(stdout) == 0 && !failed)
        return status;
    fprintf(stderr, "%s: writing standard output: %s\n", program, failed ? "it has failed" : strerror(errno));
    return 1;
}

#endif
