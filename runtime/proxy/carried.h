/* Commands of kernels that are posted while the job is traced.
 *
 * The local transport carries out in post what is not large, nor a device's. Such a command has one
 * reading of the clock and one event for all of its steps, which is written when kernels have seen
 * that the command is complete, or when the next one is posted. */
#ifndef GSHMEM_PROXY_CARRIED_H
#define GSHMEM_PROXY_CARRIED_H

#include <stdbool.h>

#include "runtime/trace/trace.h"
#include "transport/transport.h"

struct carried {
    uint64_t ticks, id; /* id 0: there is none */
    uint64_t at, bytes;
    uint64_t signal_at; /* of its signal, plus 1; 0: it has none */
    enum trace_op op;
    int pe;
};

/* A small command, by the local transport. *last: the command that was complete last, and then this
 * one. */
gshmem_status_t carried_post_small(struct carried *last, struct transport *local,
                                   const struct transport_request *r);
/* Any other. here: by the local transport. */
gshmem_status_t carried_post(struct transport *t, bool here, const struct transport_request *r);
void carried_write(struct carried *last);

#endif
