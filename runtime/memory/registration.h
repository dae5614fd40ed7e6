/* Memory of the program's own that it has registered, as source and dest of its operations: a table
 * by address. The proxy looks up what kernels point at, and transports that must know memory before
 * they move it get the buffers. */
#ifndef GSHMEM_RUNTIME_REGISTRATION_H
#define GSHMEM_RUNTIME_REGISTRATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gshmem/status.h"

struct job;
struct registrations;

gshmem_status_t registration_start(struct job *j);
/* Unregisters what the program has left. */
void registration_stop(struct job *j);

/* Whether all of it is in one registered buffer. */
bool registration_holds(struct registrations *r, uint64_t address, uint64_t bytes);
/* Whether some of it is in any. */
bool registration_overlaps(struct registrations *r, uintptr_t at, size_t bytes);

#endif
