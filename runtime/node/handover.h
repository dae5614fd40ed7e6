/* How PEs of a node, all of them or a team's, hand each other a letter with a descriptor, all to all, at
 * any time of the job.
 *
 * Every PE has a Unix socket without a name in any file system; where it is, and what a letter to it
 * must begin with, stands in the memory that only the node's PEs share. Knows nothing of what the
 * letters say. */
#ifndef GSHMEM_RUNTIME_NODE_HANDOVER_H
#define GSHMEM_RUNTIME_NODE_HANDOVER_H

#include <stddef.h>
#include <stdint.h>

#include "gshmem/base.h"
#include "gshmem/status.h"

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
    uint32_t refused; /* letters of strangers */
    struct handover_address address;
};

gshmem_status_t handover_open(struct handover *h);
void handover_close(struct handover *h);

/* Who takes part: all of a node, or of a team. */
struct handover_circle {
    int n, index;                           /* how many, and which is this PE */
    const struct handover_address *address; /* of the first; */
    size_t step;                            /* so many bytes from one to the next */
    gshmem_team_t team;                     /* for reports of who has not come */
};

/* Sends `mine` (at most HANDOVER_LETTER_MAX bytes) and the descriptor (-1: none) to all others, and
 * waits for theirs: letters[index] and fds[index] (-1: none) are those of the one with that index. After
 * a failure none is left open. All of the circle must call it, each time with the same struct handover. */
gshmem_status_t handover_exchange(struct handover *h, const struct handover_circle *circle,
                                  const char *call, const void *mine, size_t bytes, int fd,
                                  void *letters, int *fds);

#endif
