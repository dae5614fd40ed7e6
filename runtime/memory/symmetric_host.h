/* Private memory of this process made memory that PEs share, where it is.
 *
 * Its contents move into the file that all PEs of the node map, and the pages of the file take the place
 * of its own: the program goes on with its addresses, and peers see the same bytes. That is done to
 * private memory that is nobody's else's business: no file, no stack, and whole pages of it. */
#ifndef GSHMEM_RUNTIME_SYMMETRIC_HOST_H
#define GSHMEM_RUNTIME_SYMMETRIC_HOST_H

#include <stdbool.h>
#include <stddef.h>

#include "gshmem/status.h"

/* Whether it can be done, and if not, why, for people. */
bool symmetric_host_can(const void *at, size_t bytes, char *why, size_t why_size);

/* What is at `at` moves to `shared`, a mapping of the file from `offset` on, and the file's pages come to
 * `at`. After a failure, which is not logged (errno says why), all is as it was. */
bool symmetric_host_share(void *at, size_t bytes, char *shared, int fd, size_t offset);

/* And back. False: the program has put something else there meanwhile, or there is no memory for it: what
 * is there stays. */
bool symmetric_host_unshare(void *at, size_t bytes, int fd, size_t offset);

#endif
