/* The functions that typed inline code calls where the result is a value: failures go to the error
 * policy. */
#include <string.h>

#include "gshmem.h"

void gshmem_path_g(gshmem_ctx_t ctx, void *value, const void *source, size_t bytes, int pe)
{
    gshmem_status_t status = gshmem_path_get(ctx, value, source, bytes, pe, 0);

    if (status) {
        memset(value, 0, bytes);
        gshmem_raise(status);
    }
}

uint64_t gshmem_path_atomic_value(gshmem_ctx_t ctx, enum gshmem_amo op, int type, void *target,
                                  uint64_t operand, uint64_t compare, int pe)
{
    uint64_t old = 0;
    gshmem_status_t status = gshmem_path_atomic(ctx, op, type, target, operand, compare, &old, pe);

    if (status)
        gshmem_raise(status);
    return old;
}
