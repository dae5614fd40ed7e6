/* The types that atomics work on; initiator and target must agree on them. */
#ifndef GSHMEM_BASE_ATOMIC_TYPE_H
#define GSHMEM_BASE_ATOMIC_TYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gshmem/atomic.h"
#include "gshmem/type.h"

/* The size of an enum gshmem_type that atomics work on, or 0 if it is none of them. */
static inline size_t atomic_type_bytes(int type)
{
#define ATOMIC_BYTES_yes(name, type)                                                               \
    case GSHMEM_TYPE_##name:                                                                       \
        return sizeof(type);
#define ATOMIC_BYTES_no(name, type)
#define X(name, number, text, type, in_kernels, class, atomics, ...) ATOMIC_BYTES_##atomics(name, type)
    switch (type) {
        GSHMEM_TYPE_TABLE(X)
    }
#undef X
#undef ATOMIC_BYTES_no
#undef ATOMIC_BYTES_yes
    return 0;
}

/* Whether atomics add it as a floating-point number. */
static inline bool atomic_type_is_real(int type)
{
#define ATOMIC_REAL_real(name) || type == GSHMEM_TYPE_##name
#define ATOMIC_REAL_small(name)
#define ATOMIC_REAL_wide(name)
#define ATOMIC_REAL_pair(name)
#define ATOMIC_REAL_sint(name)
#define ATOMIC_REAL_uint(name)
#define X(name, number, text, c_type, in_kernels, class, ...) ATOMIC_REAL_##class(name)
    return false GSHMEM_TYPE_TABLE(X);
#undef X
}

/* Applies the operation to the object there, and returns the bits that it had. The caller has
 * checked that there is such an operation and atomics work on the type; nothing is done for any
 * other. */
uint64_t atomic_apply(enum gshmem_amo op, int type, void *at, uint64_t operand, uint64_t compare);

#endif
