/* The kernels of reductions, generated from two tables: types, and what each operation is for them.
 * Included once for each set of instructions, with COMBINE_KERNELS as the name of the resulting
 * table.
 *
 * The loops are plain, so that the compiler vectorises them. omp simd: out may be a or b, element
 * by element, and the compiler need not test for other overlaps. Not vectorised are long double,
 * and complex products with C's rules for infinities. Sums and products of signed integers are
 * those of unsigned ones, which wrap without undefined behaviour, so both share one kernel. */
#include <complex.h>
#include <stdint.h>

#include "gshmem/host_device/half_bits.h"
#include "runtime/collectives/combine.h"

#define KERNEL_OF(loop, name, type, expression)                                                    \
    static void name(void *out, const void *a, const void *b, size_t n)                            \
    {                                                                                              \
        const type *left = a, *right = b;                                                          \
        type *result = out;                                                                        \
                                                                                                   \
        loop for (size_t i = 0; i < n; i++)                                                        \
        {                                                                                          \
            const type x = left[i], y = right[i];                                                  \
            result[i] = (type)(expression);                                                        \
        }                                                                                          \
    }

#define KERNEL(name, type, expression) KERNEL_OF(_Pragma("omp simd"), name, type, expression)
#define SCALAR(name, type, expression) KERNEL_OF(, name, type, expression)

/* 1u: 16-bit factors would otherwise become int, and overflow. */
#define INTEGER_KERNELS(bits)                                                                      \
    KERNEL(sum_##bits, uint##bits##_t, x + y)                                                      \
    KERNEL(prod_##bits, uint##bits##_t, 1u * x * y)                                                \
    KERNEL(and_##bits, uint##bits##_t, x &y)                                                       \
    KERNEL(or_##bits, uint##bits##_t, x | y)                                                       \
    KERNEL(xor_##bits, uint##bits##_t, x ^ y)                                                      \
    KERNEL(min_i##bits, int##bits##_t, x < y ? x : y)                                              \
    KERNEL(max_i##bits, int##bits##_t, x > y ? x : y)                                              \
    KERNEL(min_u##bits, uint##bits##_t, x < y ? x : y)                                             \
    KERNEL(max_u##bits, uint##bits##_t, x > y ? x : y)

/* clang-format off */
#define REAL_KERNELS(kernel, suffix, type)                                                         \
    kernel(sum_##suffix, type, x + y)                                                              \
    kernel(prod_##suffix, type, x *y)                                                              \
    kernel(min_##suffix, type, x < y ? x : y)                                                      \
    kernel(max_##suffix, type, x > y ? x : y)

#define COMPLEX_KERNELS(suffix, type)                                                              \
    KERNEL(sum_##suffix, type, x + y)                                                              \
    SCALAR(prod_##suffix, type, x *y)

/* Rounded after each step. */
#define HALF_KERNELS(suffix, to, from)                                                             \
    SCALAR(sum_##suffix, uint16_t, from(to(x) + to(y)))                                            \
    SCALAR(prod_##suffix, uint16_t, from(to(x) * to(y)))                                           \
    SCALAR(min_##suffix, uint16_t, to(x) < to(y) ? x : y)                                          \
    SCALAR(max_##suffix, uint16_t, to(x) > to(y) ? x : y)

INTEGER_KERNELS(8)
INTEGER_KERNELS(16)
INTEGER_KERNELS(32)
INTEGER_KERNELS(64)
REAL_KERNELS(KERNEL, float, float)
REAL_KERNELS(KERNEL, double, double)
REAL_KERNELS(SCALAR, longdouble, long double)
COMPLEX_KERNELS(complexf, float _Complex)
COMPLEX_KERNELS(complexd, double _Complex)
HALF_KERNELS(half, gshmem_half_to_float, gshmem_half_of_float)
HALF_KERNELS(bfloat16, gshmem_bfloat16_to_float, gshmem_bfloat16_of_float)

#define INTEGER_ROW(bits, sign)                                                                    \
    {sum_##bits, prod_##bits, min_##sign##bits, max_##sign##bits, and_##bits, or_##bits, xor_##bits}
#define REAL_ROW(suffix)                                                                           \
    {sum_##suffix, prod_##suffix, min_##suffix, max_##suffix, NULL, NULL, NULL}
#define COMPLEX_ROW(suffix)                                                                        \
    {sum_##suffix, prod_##suffix, NULL, NULL, NULL, NULL, NULL}

/* sum prod min max and or xor */
combine_fn *const COMBINE_KERNELS[GSHMEM_TYPE_COUNT][GSHMEM_OP_COUNT] = {
    [GSHMEM_TYPE_INT8]       = INTEGER_ROW(8, i),
    [GSHMEM_TYPE_INT16]      = INTEGER_ROW(16, i),
    [GSHMEM_TYPE_INT32]      = INTEGER_ROW(32, i),
    [GSHMEM_TYPE_INT64]      = INTEGER_ROW(64, i),
    [GSHMEM_TYPE_UINT8]      = INTEGER_ROW(8, u),
    [GSHMEM_TYPE_UINT16]     = INTEGER_ROW(16, u),
    [GSHMEM_TYPE_UINT32]     = INTEGER_ROW(32, u),
    [GSHMEM_TYPE_UINT64]     = INTEGER_ROW(64, u),
    [GSHMEM_TYPE_FLOAT]      = REAL_ROW(float),
    [GSHMEM_TYPE_DOUBLE]     = REAL_ROW(double),
    [GSHMEM_TYPE_LONGDOUBLE] = REAL_ROW(longdouble),
    [GSHMEM_TYPE_COMPLEXF]   = COMPLEX_ROW(complexf),
    [GSHMEM_TYPE_COMPLEXD]   = COMPLEX_ROW(complexd),
    [GSHMEM_TYPE_HALF]       = REAL_ROW(half),
    [GSHMEM_TYPE_BFLOAT16]   = REAL_ROW(bfloat16),
};
/* clang-format on */
