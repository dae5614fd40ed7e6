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
#define X(name, number, text, type, ...) [GSHMEM_TYPE_##name] = {text, sizeof(type)},
    GSHMEM_TYPE_TABLE(X)
#undef X
};

static const char *const ops[GSHMEM_OP_COUNT] = {
#define X(name, number, text, ...) [GSHMEM_OP_##name] = text,
    GSHMEM_OP_TABLE(X, )
#undef X
};

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
