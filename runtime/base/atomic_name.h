/* What atomic operations are called in messages. */
#ifndef GSHMEM_RUNTIME_BASE_ATOMIC_NAME_H
#define GSHMEM_RUNTIME_BASE_ATOMIC_NAME_H

#include "gshmem/atomic.h"

extern const char *const atomic_names[GSHMEM_AMO_COUNT]; /* "atomic_add", … */

/* The same; NULL if there is no such operation. */
const char *atomic_name(int op);

#endif
