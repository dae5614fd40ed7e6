/* Types and operations in kernels, from the tables of gshmem/type.h. */
#ifndef GSHMEM_DEVICE_TYPE_H
#define GSHMEM_DEVICE_TYPE_H

#include "gshmem/base.h"
#include "gshmem/type.h"

/* The classes of types; none: it is not a type. */
enum gshmem_class {
    GSHMEM_CLASS_sint,
    GSHMEM_CLASS_uint,
    GSHMEM_CLASS_real,
    GSHMEM_CLASS_wide,
    GSHMEM_CLASS_small,
    GSHMEM_CLASS_pair,
    GSHMEM_CLASS_none
};

/* Whether T has the values of a row's type; long and long long both have those of INT64. Types of
 * the class small say so themselves (gshmem/device/half.h). */
#define GSHMEM_IS_real(type)  (T)0.5 != (T)0 && sizeof(T) == sizeof(type)
#define GSHMEM_IS_sint(type)  (T)0.5 == (T)0 && !((T)0 < (T)-1) && sizeof(T) == sizeof(type)
#define GSHMEM_IS_uint(type)  (T)0.5 == (T)0 && (T)0 < (T)-1 && sizeof(T) == sizeof(type)
#define GSHMEM_IS_wide(type)  false
#define GSHMEM_IS_small(type) false
#define GSHMEM_IS_pair(type)  false

/* The enum gshmem_type of a C type; GSHMEM_TYPE_COUNT if kernels have no such type. */
template <class T> __host__ __device__ constexpr enum gshmem_type gshmem_type_of(void)
{
#define X(name, number, text, type, in_kernels, class, ...)                                        \
    GSHMEM_IS_##class(in_kernels) ? GSHMEM_TYPE_##name:
    return GSHMEM_TYPE_TABLE(X) GSHMEM_TYPE_COUNT;
#undef X
}

/* The class of an enum gshmem_type. */
GSHMEM_EITHER constexpr enum gshmem_class gshmem_class_of(int type)
{
#define X(name, number, text, c_type, in_kernels, class, ...)                                      \
    type == GSHMEM_TYPE_##name ? GSHMEM_CLASS_##class:
    return GSHMEM_TYPE_TABLE(X) GSHMEM_CLASS_none;
#undef X
}

#define GSHMEM_GIVEN_yes     true
#define GSHMEM_GIVEN_by_call true
#define GSHMEM_GIVEN_no      false

/* Whether an operation is defined for the types of a class. */
GSHMEM_EITHER constexpr bool gshmem_op_is_for(int op, enum gshmem_class of)
{
#define X(name, number, text, integers, reals, pairs, how, result, with)                           \
    op == GSHMEM_OP_##name                                                                         \
        ? (of == GSHMEM_CLASS_sint || of == GSHMEM_CLASS_uint ? GSHMEM_GIVEN_##integers            \
           : of == GSHMEM_CLASS_pair                          ? GSHMEM_GIVEN_##pairs               \
                                     : of != GSHMEM_CLASS_none && GSHMEM_GIVEN_##reals)            \
        :
    return GSHMEM_OP_TABLE(X, ) false;
#undef X
}

/* The unsigned integer of a size, in which operations that may wrap are computed. */
template <size_t bytes> struct gshmem_unsigned;
#define GSHMEM_UNSIGNED_uint(in_kernels)                                                           \
    template <> struct gshmem_unsigned<sizeof(in_kernels)> {                                       \
        typedef in_kernels type;                                                                   \
        typedef decltype(1ull * (in_kernels)1) wide; /* no int, whose products could overflow */   \
    };
#define GSHMEM_UNSIGNED_sint(in_kernels)
#define GSHMEM_UNSIGNED_real(in_kernels)
#define GSHMEM_UNSIGNED_wide(in_kernels)
#define GSHMEM_UNSIGNED_small(in_kernels)
#define GSHMEM_UNSIGNED_pair(in_kernels)
#define X(name, number, text, type, in_kernels, class, ...) GSHMEM_UNSIGNED_##class(in_kernels)
GSHMEM_TYPE_TABLE(X)
#undef X

#endif
