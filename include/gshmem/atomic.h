/* Atomic updates of one 4- or 8-byte object on any PE.
 *
 * The typed names (gshmem_long_atomic_fetch_add, …) in gshmem/typed.h are thin wrappers. A mapped
 * peer's object is updated in place by the CPU's own atomics; all others go out of line, to the one
 * agent that owns the object. Atomics order nothing but themselves: relaxed, as the standard has it. */
#ifndef GSHMEM_ATOMIC_H
#define GSHMEM_ATOMIC_H

#include <string.h>

#include "gshmem/context.h"

#ifdef __cplusplus
extern "C" {
#endif

enum gshmem_amo {
    GSHMEM_AMO_FETCH,
    GSHMEM_AMO_SET,
    GSHMEM_AMO_SWAP,
    GSHMEM_AMO_COMPARE_SWAP,
    GSHMEM_AMO_ADD,
    GSHMEM_AMO_AND,
    GSHMEM_AMO_OR,
    GSHMEM_AMO_XOR
};

/* The path out of line, for what is not mapped or not valid: applies op with operand (and compare)
 * to the object of `type` at target on pe, and stores its old value in *old if old is not NULL.
 * Operands and old value are the object's bits in the low bytes. Not for programs to call. */
GSHMEM_API gshmem_status_t gshmem_path_atomic(gshmem_ctx_t ctx, enum gshmem_amo op, int type,
                                              void *target, uint64_t operand, uint64_t compare,
                                              uint64_t *old, int pe);

#ifdef __cplusplus
}
#endif
#endif
