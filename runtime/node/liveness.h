/* How the PEs of a machine detect that one of them has died. Each holds a lock on its byte of the
 * file that they share. The system releases the lock however the process ends, and any PE can test
 * it, in any namespace.
 *
 * The lock belongs to an open file description that is kept by a mapping alone: there is no
 * descriptor of it. So nothing that the program closes releases it (a lock of fcntl is released
 * when any descriptor of the file is closed), and no thread owns it. Forked children do not inherit
 * the mapping: it ends with the process. */
#ifndef GSHMEM_RUNTIME_NODE_LIVENESS_H
#define GSHMEM_RUNTIME_NODE_LIVENESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "gshmem/status.h"

struct liveness {
    void *mapping;     /* the mapping that keeps the lock; NULL: none */
    dev_t device;      /* the file's identity, by which a reused descriptor number is detected */
    ino_t file;
    bool closed;       /* the program has closed the descriptor, and was told what follows from
                          it */
};

/* Takes the lock, which shows the others that this process lives. */
gshmem_status_t liveness_begin(struct liveness *l, int fd, int index);
/* Whether the PE with that index lives. If that cannot be tested any more, it counts as alive. */
bool liveness_of(struct liveness *l, int fd, int index);
void liveness_end(struct liveness *l);

#endif
