/* How PEs of a node, all of them or a team's, exchange letters with a descriptor, all to all, at
 * any time of the job.
 *
 * Every PE has a Unix socket without a name in any file system. Its address, and the token with
 * which a letter to it must begin, are in the memory that only the node's PEs share. Knows nothing
 * of the letters' contents. */
#ifndef GSHMEM_RUNTIME_NODE_HANDOVER_H
#define GSHMEM_RUNTIME_NODE_HANDOVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gshmem/base.h"
#include "gshmem/status.h"
#include "runtime/node/await.h"

enum { HANDOVER_LETTER_MAX = 128 };

/* The address of one PE: two sockets, for exchanges of even and of odd number, since a PE that has
 * completed one exchange may begin the next while others are still in the first. */
struct handover_address {
    uint8_t name_bytes[2]; /* of the abstract sockets' names */
    unsigned char name[2][7];
    unsigned char token[16];
};

struct handover {
    int fd[2];
    uint32_t round; /* exchanges so far */
    uint32_t refused; /* letters from other processes */
    bool *marks; /* of an exchange, which so needs no memory: the others wait for this PE in it */
    struct handover_address address;
};

/* n: the participants of an exchange, at most. */
gshmem_status_t handover_open(struct handover *h, int n);
void handover_close(struct handover *h);

/* The participants: all PEs of a node, or of a team. */
struct handover_circle {
    int n, index;                           /* how many, and this PE's index */
    const struct handover_address *address; /* of the first participant */
    size_t step;                            /* bytes from one address to the next */
    gshmem_team_t team;                     /* for reports of PEs that have not arrived */
    await_fn *await;                        /* how to wait for the others */
};

/* Sends `mine` (at most HANDOVER_LETTER_MAX bytes) and the descriptor (-1: none) to all others, and
 * waits for theirs: letters[index] and fds[index] (-1: none) are those of the participant with that
 * index. After a failure no descriptor is left open. All participants call it, each time with the
 * same struct handover. */
gshmem_status_t handover_exchange(struct handover *h, const struct handover_circle *circle,
                                  const char *call, const void *mine, size_t bytes, int fd,
                                  void *letters, int *fds);

#endif
