/* How the PEs of a host hand each other a letter with a descriptor, all to all, at any time of the job.
 *
 * Every PE has a Unix socket without a name in any file system; where it is, and what a letter to it
 * must begin with, stands in the memory that only the host's PEs share. Knows nothing of what the
 * letters say. */
#ifndef GSHMEM_RUNTIME_HANDOVER_H
#define GSHMEM_RUNTIME_HANDOVER_H

#include <stddef.h>
#include <stdint.h>

#include "gshmem/status.h"

struct host;

enum { HANDOVER_LETTER_MAX = 128 };

/* Of one PE, for the others to write to: two sockets, for exchanges of even and of odd number, as who
 * is done with one may be in the next already. */
struct handover_address {
    uint8_t name_bytes[2]; /* of the abstract sockets' names */
    unsigned char name[2][7];
    unsigned char token[16];
};

struct handover {
    int fd[2];
    uint32_t round; /* exchanges so far */
    struct handover_address address;
};

gshmem_status_t handover_open(struct handover *h);
void handover_close(struct handover *h);

/* Sends `mine` (at most HANDOVER_LETTER_MAX bytes) and the descriptor (-1: none) to all PEs of the host, and
 * waits for theirs: letters[index] and fds[index] (-1: none) are those of the PE with that index. After
 * a failure none is left open. All PEs of the host must call it. */
gshmem_status_t handover_exchange(struct handover *h, const struct host *host, const char *call,
                                  const void *mine, size_t bytes, int fd, void *letters, int *fds);

#endif
