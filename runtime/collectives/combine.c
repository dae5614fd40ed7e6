/* Types and operations: their names, and the kernel that combines them.
 *
 * Kernels are compiled for the compiler's default instructions, and on x86 for AVX2, which compares
 * integers of 64 bits (docs/decisions/0009). Both give the same bits. */
#define COMBINE_KERNELS combine_kernels
#include "runtime/collectives/combine_kernels.h"

static const struct {
    const char *name;
    size_t bytes;
} types[GSHMEM_TYPE_COUNT] = {
    [GSHMEM_TYPE_INT8] = {"int8", 1},
    [GSHMEM_TYPE_INT16] = {"int16", 2},
    [GSHMEM_TYPE_INT32] = {"int32", 4},
    [GSHMEM_TYPE_INT64] = {"int64", 8},
    [GSHMEM_TYPE_UINT8] = {"uint8", 1},
    [GSHMEM_TYPE_UINT16] = {"uint16", 2},
    [GSHMEM_TYPE_UINT32] = {"uint32", 4},
    [GSHMEM_TYPE_UINT64] = {"uint64", 8},
    [GSHMEM_TYPE_FLOAT] = {"float", sizeof(float)},
    [GSHMEM_TYPE_DOUBLE] = {"double", sizeof(double)},
    [GSHMEM_TYPE_LONGDOUBLE] = {"long double", sizeof(long double)},
    [GSHMEM_TYPE_COMPLEXF] = {"float _Complex", sizeof(float _Complex)},
    [GSHMEM_TYPE_COMPLEXD] = {"double _Complex", sizeof(double _Complex)},
    [GSHMEM_TYPE_HALF] = {"half", 2},
    [GSHMEM_TYPE_BFLOAT16] = {"bfloat16", 2},
};

static const char *const ops[GSHMEM_OP_COUNT] = {"sum", "prod", "min", "max", "and", "or", "xor"};

combine_fn *combine_find(enum gshmem_type type, enum gshmem_op op)
{
    if ((unsigned int)type >= GSHMEM_TYPE_COUNT || (unsigned int)op >= GSHMEM_OP_COUNT)
        return NULL;
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx2"))
        return combine_kernels_avx2[type][op];
#endif
    return combine_kernels[type][op];
}

size_t combine_bytes(enum gshmem_type type)
{
    return (unsigned int)type < GSHMEM_TYPE_COUNT ? types[type].bytes : 0;
}

const char *combine_op_name(enum gshmem_op op)
{
    return (unsigned int)op < GSHMEM_OP_COUNT ? ops[op] : "no operation";
}

const char *combine_type_name(enum gshmem_type type)
{
    return (unsigned int)type < GSHMEM_TYPE_COUNT ? types[type].name : "no type";
}
