/* The types that atomics work on: who asks for one and who carries it out must agree. */
#ifndef GSHMEM_BASE_ATOMIC_TYPE_H
#define GSHMEM_BASE_ATOMIC_TYPE_H

#include <stddef.h>

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

#endif
