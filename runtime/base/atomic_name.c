#include "runtime/base/atomic_name.h"

#include <stddef.h>

#include "gshmem/atomic.h"

const char *const atomic_names[GSHMEM_AMO_COUNT] = {
#define X(name, number, text, ...) [GSHMEM_AMO_##name] = text,
    GSHMEM_AMO_TABLE(X)
#undef X
};

const char *atomic_name(int op)
{
    return (unsigned)op < GSHMEM_AMO_COUNT ? atomic_names[op] : NULL;
}
