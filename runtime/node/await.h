/* How this room waits for PEs of the node. The rooms above give it a function of this type
 * (network_await), since they make progress while they wait, and know who has failed. */
#ifndef GSHMEM_RUNTIME_NODE_AWAIT_H
#define GSHMEM_RUNTIME_NODE_AWAIT_H

#include <stdbool.h>
#include <stdint.h>

#include "gshmem/base.h"
#include "gshmem/status.h"

/* Calls done(context) until it is true. Fails when the job was ended, a PE of the team has died
 * (GSHMEM_TEAM_INVALID: any of the node), or `limit` ns have passed (0: no limit). `call` is what
 * the program called. */
typedef gshmem_status_t await_fn(const char *call, gshmem_team_t team, uint64_t limit,
                                 bool (*done)(void *context), void *context);

#endif
