/* Combining elements: one kernel for each type and operation, out[i] = a[i] op b[i]. */
#ifndef GSHMEM_RUNTIME_COMBINE_H
#define GSHMEM_RUNTIME_COMBINE_H

#include <stddef.h>

#include "gshmem/type.h"

/* out may be a or b, and may not overlap them otherwise. */
typedef void combine_fn(void *out, const void *a, const void *b, size_t n);

/* NULL if the type or operation does not exist, or the operation is not defined for the type: the
 * tables in gshmem/type.h say which are. */
combine_fn *combine_find(enum gshmem_type type, enum gshmem_op op);

/* The kernels: one table for each set of instructions. */
extern combine_fn *const combine_kernels[GSHMEM_TYPE_COUNT][GSHMEM_OP_COUNT];
extern combine_fn *const combine_kernels_avx2[GSHMEM_TYPE_COUNT][GSHMEM_OP_COUNT];

/* Bytes of an element; 0 if there is no such type. */
size_t combine_bytes(enum gshmem_type type);

/* "sum", "float _Complex", for messages. */
const char *combine_op_name(enum gshmem_op op);
const char *combine_type_name(enum gshmem_type type);

#endif
