/* Makes private memory of this process shared among PEs, at its address.
 *
 * Its contents move into the file that all PEs of the node map, and pages of that file replace the
 * private ones: the program keeps its addresses, and peers see the same bytes. This is possible for
 * whole pages of private anonymous memory, not for files and stacks. */
#ifndef GSHMEM_RUNTIME_SYMMETRIC_HOST_H
#define GSHMEM_RUNTIME_SYMMETRIC_HOST_H

#include <stdbool.h>
#include <stddef.h>

#include "gshmem/status.h"

/* Whether it is possible, and if not, the reason, for people. */
bool symmetric_host_can(const void *at, size_t bytes, char *why, size_t why_size);

/* The contents at `at` move to `shared`, a mapping of the file from `offset` on, and the file's
 * pages are mapped at `at`. After a failure, which is not logged (errno has the reason), nothing
 * has changed. */
bool symmetric_host_share(void *at, size_t bytes, char *shared, int fd, size_t offset);

/* The inverse. False: the program has mapped something else there meanwhile, or there is no memory;
 * then nothing has changed. */
bool symmetric_host_unshare(void *at, size_t bytes, int fd, size_t offset);

#endif
