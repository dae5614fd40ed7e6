/* The kernels of reductions: a function for each type and operation of gshmem/type.h, which
 * documents the classes and columns. Included once for each set of instructions, with
 * COMBINE_KERNELS as the name of the resulting table.
 *
 * The loops are plain, so that the compiler vectorises them. omp simd: out may be a or b, element
 * by element, and the compiler need not test for other overlaps. Not vectorised are long double,
 * half and bfloat16, and complex products with C's rules for infinities. */
#include <complex.h>
#include <stdint.h>

#include "gshmem/host_device/half_bits.h"
#include "runtime/collectives/combine.h"

/* clang-format off */

#define LOOP_simd   _Pragma("omp simd")
#define LOOP_scalar

/* VALUE makes x and y of two elements; result is an expression of those, or of the elements. */
#define KERNEL(loop, function, type, VALUE, result)                                                \
    static void function(void *out, const void *a, const void *b, size_t n)                        \
    {                                                                                              \
        const type *left = a, *right = b;                                                          \
        type *to = out;                                                                            \
                                                                                                   \
        LOOP_##loop for (size_t i = 0; i < n; i++)                                                 \
        {                                                                                          \
            const type first = left[i], second = right[i];                                         \
            const __typeof__(VALUE(first)) x = VALUE(first), y = VALUE(second);                    \
            to[i] = (type)(result);                                                                \
        }                                                                                          \
    }

#define VALUE(element)          element
/* Factors of 16 bits would become int, and overflow. */
#define VALUE_WRAPS(element)    (1u * (element))

/* Of each small type: an element's value, and the element nearest to a value. */
#define VALUE_HALF(element)     gshmem_half_to_float(element)
#define HALF_OF(value)          gshmem_half_of_float(value)
#define VALUE_BFLOAT16(element) gshmem_bfloat16_to_float(element)
#define BFLOAT16_OF(value)      gshmem_bfloat16_of_float(value)

/* A kernel by the type's class and by the row's way to its result. sint uses the kernels of
 * uint. */
#define KERNEL_uint_computes(loop, op, name, result)                                               \
    KERNEL(loop, op##_##name, of_##name, VALUE_WRAPS, result)
#define KERNEL_uint_chooses(loop, op, name, result)                                                \
    KERNEL(loop, op##_##name, of_##name, VALUE, (result) ? first : second)
#define KERNEL_sint_computes(loop, op, name, result)
#define KERNEL_sint_chooses KERNEL_uint_chooses
#define KERNEL_real_computes(loop, op, name, result)                                               \
    KERNEL(loop, op##_##name, of_##name, VALUE, result)
#define KERNEL_real_chooses KERNEL_uint_chooses
#define KERNEL_wide_computes(loop, op, name, result) KERNEL_real_computes(scalar, op, name, result)
#define KERNEL_wide_chooses(loop, op, name, result) KERNEL_real_chooses(scalar, op, name, result)
#define KERNEL_small_computes(loop, op, name, result)                                              \
    KERNEL(scalar, op##_##name, of_##name, VALUE_##name, name##_OF(result))
#define KERNEL_small_chooses(loop, op, name, result)                                               \
    KERNEL(scalar, op##_##name, of_##name, VALUE_##name, (result) ? first : second)
#define KERNEL_pair_computes KERNEL_real_computes

/* Whether a kernel exists, by the operation's column for the class. */
#define IF_yes(kernel, op, name, result)     kernel(simd, op, name, result)
#define IF_by_call(kernel, op, name, result) kernel(scalar, op, name, result)
#define IF_no(kernel, op, name, result)

#define KERNELS_sint(op, number, text, integers, reals, pairs, how, result, name)                  \
    IF_##integers(KERNEL_sint_##how, op, name, result)
#define KERNELS_uint(op, number, text, integers, reals, pairs, how, result, name)                  \
    IF_##integers(KERNEL_uint_##how, op, name, result)
#define KERNELS_real(op, number, text, integers, reals, pairs, how, result, name)                  \
    IF_##reals(KERNEL_real_##how, op, name, result)
#define KERNELS_wide(op, number, text, integers, reals, pairs, how, result, name)                  \
    IF_##reals(KERNEL_wide_##how, op, name, result)
#define KERNELS_small(op, number, text, integers, reals, pairs, how, result, name)                 \
    IF_##reals(KERNEL_small_##how, op, name, result)
#define KERNELS_pair(op, number, text, integers, reals, pairs, how, result, name)                  \
    IF_##pairs(KERNEL_pair_##how, op, name, result)

#define X(name, number, text, type, in_kernels, class, atomics, waits)                             \
    typedef type of_##name;                                                                        \
    GSHMEM_OP_TABLE(KERNELS_##class, name)
GSHMEM_TYPE_TABLE(X)
#undef X

/* ---- The table of them ---- */

#define ENTRY_yes(op, function)     [GSHMEM_OP_##op] = function,
#define ENTRY_by_call(op, function) [GSHMEM_OP_##op] = function,
#define ENTRY_no(op, function)
#define SINT_computes(op, name) op##_U##name
#define SINT_chooses(op, name)  op##_##name

#define ENTRIES_sint(op, number, text, integers, reals, pairs, how, result, name)                  \
    ENTRY_##integers(op, SINT_##how(op, name))
#define ENTRIES_uint(op, number, text, integers, reals, pairs, how, result, name)                  \
    ENTRY_##integers(op, op##_##name)
#define ENTRIES_real(op, number, text, integers, reals, pairs, how, result, name)                  \
    ENTRY_##reals(op, op##_##name)
#define ENTRIES_wide  ENTRIES_real
#define ENTRIES_small ENTRIES_real
#define ENTRIES_pair(op, number, text, integers, reals, pairs, how, result, name)                  \
    ENTRY_##pairs(op, op##_##name)

combine_fn *const COMBINE_KERNELS[GSHMEM_TYPE_COUNT][GSHMEM_OP_COUNT] = {
#define X(name, number, text, type, in_kernels, class, atomics, waits)                             \
    [GSHMEM_TYPE_##name] = {GSHMEM_OP_TABLE(ENTRIES_##class, name)},
    GSHMEM_TYPE_TABLE(X)
#undef X
};
/* clang-format on */
