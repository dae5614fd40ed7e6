/* What the rest of the runtime needs of collectives. */
#ifndef GSHMEM_RUNTIME_COLLECTIVES_H
#define GSHMEM_RUNTIME_COLLECTIVES_H

#include <stdint.h>

#include "gshmem/status.h"
#include "runtime/teams/departures.h"

struct team;

enum { COLLECTIVE_AGREE_MAX = 16 };

/* The least and the greatest of each of n numbers (at most COLLECTIVE_AGREE_MAX), over the members
 * of a team: they agree on a number where both are the same. It is a barrier, too: on return all
 * members have arrived, and the stores they made before are visible. `call` names it in
 * failures. */
gshmem_status_t collective_agree(struct team *t, const char *call, const uint64_t *mine,
                                 uint64_t *min, uint64_t *max, int n);

/* The last round of all PEs, for a PE that leaves the job. `way` is for PEs that wait for this one
 * elsewhere. Completes this PE's operations, and takes part even if that failed. *differed changes
 * if the round has taken place, and shows that PEs have made different broadcasts before. */
gshmem_status_t collective_finalize(struct job *j, const char *call, enum departure_way way,
                                    gshmem_status_t *differed);

#endif
