/* How the PEs of a machine see that one of them has died: each holds a lock on its byte of the file that
 * they share, which the system lets go of however the process ends, and tells any of them about, in
 * whatever namespace it is.
 *
 * The lock belongs to an open file description that a mapping alone keeps: no descriptor of it is left.
 * So nothing that the program closes releases it (a lock of fcntl goes when any descriptor of the file is
 * closed), no thread owns it, and forked children do not get the mapping: it ends with the process. */
#ifndef GSHMEM_RUNTIME_NODE_LIVENESS_H
#define GSHMEM_RUNTIME_NODE_LIVENESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "gshmem/status.h"

struct liveness {
    void *mapping;     /* what keeps the lock; NULL: none */
    dev_t device;      /* of the file, to tell its descriptor from another of that number */
    ino_t file;
    bool closed;       /* the program has closed the descriptor, and has been told what that means */
};

/* Shows the others that this process lives. */
gshmem_status_t liveness_begin(struct liveness *l, int fd, int index);
/* Whether the one with that index does. Where that cannot be found out any more it is taken to. */
bool liveness_of(struct liveness *l, int fd, int index);
void liveness_end(struct liveness *l);

#endif
