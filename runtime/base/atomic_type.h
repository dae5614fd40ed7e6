/* The types that atomics work on: who asks for one and who carries it out must agree. */
#ifndef GSHMEM_BASE_ATOMIC_TYPE_H
#define GSHMEM_BASE_ATOMIC_TYPE_H

#include <stddef.h>
#include <stdint.h>

#include "gshmem/atomic.h"
#include "gshmem/type.h"

/* The size of an enum gshmem_type, or 0 if it is none of them. */
static inline size_t atomic_type_bytes(int type)
{
    switch (type) {
    case GSHMEM_TYPE_INT32:
    case GSHMEM_TYPE_UINT32:
    case GSHMEM_TYPE_FLOAT:
        return 4;
    case GSHMEM_TYPE_INT64:
    case GSHMEM_TYPE_UINT64:
    case GSHMEM_TYPE_DOUBLE:
        return 8;
    }
    return 0;
}

/* Applies the operation to the object there, and returns the bits that it had. */
uint64_t atomic_apply(enum gshmem_amo op, int type, void *at, uint64_t operand, uint64_t compare);

#endif
