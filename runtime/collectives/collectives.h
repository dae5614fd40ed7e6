/* What the rest of the runtime asks of collectives. */
#ifndef GSHMEM_RUNTIME_COLLECTIVES_H
#define GSHMEM_RUNTIME_COLLECTIVES_H

#include <stdint.h>

#include "gshmem/status.h"
#include "runtime/departures.h"

struct team;

enum { COLLECTIVE_AGREE_MAX = 16 };

/* The least and the greatest of each of n numbers (at most COLLECTIVE_AGREE_MAX), over the members
 * of a team: they agree on a number where both are the same. It is a barrier too: who returns has
 * seen all arrive, and the stores they made before. call names it in failures. */
gshmem_status_t collective_agree(struct team *t, const char *call, const uint64_t *mine,
                                 uint64_t *min, uint64_t *max, int n);

/* The last meeting of all PEs, of those that leave the job; `way` is for those who wait for this one elsewhere.
 * Completes what this PE has issued, and takes part whatever came of that. */
gshmem_status_t collective_finalize(struct job *j, const char *call, enum departure_way way);

#endif
