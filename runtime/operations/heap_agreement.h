/* How all PEs find that they agree on a call on the symmetric heap (memory/request.h). */
#ifndef GSHMEM_RUNTIME_OPERATIONS_HEAP_AGREEMENT_H
#define GSHMEM_RUNTIME_OPERATIONS_HEAP_AGREEMENT_H

#include "runtime/memory/request.h"

/* Called by all PEs; also completes this PE's operations and is a barrier. GSHMEM_OK only if all
 * PEs have the same words and none refuses; otherwise one PE has logged the reason. */
gshmem_status_t request_agree(const struct request *r);

#endif
