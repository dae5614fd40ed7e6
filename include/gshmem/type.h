/* The element types, and the operations of reductions: one table of each.
 *
 * The library's and the kernels' reductions, waits and atomics, the typed names, the facades and
 * their tests are made from these rows; include/generate/table.py reads them in this file. A type
 * or an operation that has no row is refused. Numbers are part of the binary interface: a new row
 * comes last. docs/adding.md says how to add one. */
#ifndef GSHMEM_TYPE_H
#define GSHMEM_TYPE_H

/* GSHMEM_TYPE_INT8 …
 *
 * in kernels: the type that kernels use for it; for a pair, the type of its two parts.
 * class:
 *   sint   signed integers; operations that may wrap are computed as U<name>, the unsigned type of
 *          the same size
 *   uint   unsigned integers
 *   real   floating-point numbers
 *   wide   floating-point numbers that kernels do not have
 *   small  floating-point numbers that the CPU does not have: it computes them as float, and rounds
 *          after each step. Kernels have them with gshmem/device/half.h
 *   pair   complex numbers, which have no order. Programs' kernels do not have them
 * atomics: whether atomics exist for the type. waits: whether waits and tests do.
 *
 *    name        no.  in messages         in C             in kernels     class  atomics  waits */
#define GSHMEM_TYPE_TABLE(X)                                                                       \
    X(INT8,        0, "int8",            int8_t,          int8_t,        sint,  no,  no)           \
    X(INT16,       1, "int16",           int16_t,         int16_t,       sint,  no,  yes)          \
    X(INT32,       2, "int32",           int32_t,         int32_t,       sint,  yes, yes)          \
    X(INT64,       3, "int64",           int64_t,         int64_t,       sint,  yes, yes)          \
    X(UINT8,       4, "uint8",           uint8_t,         uint8_t,       uint,  no,  no)           \
    X(UINT16,      5, "uint16",          uint16_t,        uint16_t,      uint,  no,  yes)          \
    X(UINT32,      6, "uint32",          uint32_t,        uint32_t,      uint,  yes, yes)          \
    X(UINT64,      7, "uint64",          uint64_t,        uint64_t,      uint,  yes, yes)          \
    X(FLOAT,       8, "float",           float,           float,         real,  yes, no)           \
    X(DOUBLE,      9, "double",          double,          double,        real,  yes, no)           \
    X(LONGDOUBLE, 10, "long double",     long double,     void,          wide,  no,  no)           \
    X(COMPLEXF,   11, "float _Complex",  float _Complex,  float,         pair,  no,  no)           \
    X(COMPLEXD,   12, "double _Complex", double _Complex, double,        pair,  no,  no)           \
    X(HALF,       13, "half",            uint16_t,        __half,        small, no,  no)           \
    X(BFLOAT16,   14, "bfloat16",        uint16_t,        __nv_bfloat16, small, no,  no)

enum gshmem_type {
#define X(name, number, ...) GSHMEM_TYPE_##name = number,
    GSHMEM_TYPE_TABLE(X)
#undef X
    GSHMEM_TYPE_COUNT
};

/* The type of char on this machine, and the complex types without <complex.h>, which would define
 * I. */
#define GSHMEM_TYPE_CHAR ((char)-1 < 0 ? GSHMEM_TYPE_INT8 : GSHMEM_TYPE_UINT8)
__extension__ typedef float _Complex gshmem_complexf_t;
__extension__ typedef double _Complex gshmem_complexd_t;

/* GSHMEM_OP_SUM …
 *
 * integers, reals, pairs: whether the operation is defined for these types. by_call: it is defined,
 * and takes a function call for each element, which the compiler cannot vectorise.
 * The result for the elements x and y:
 *   computes  is the value of the expression, which wraps for integers
 *   chooses   is x if the expression is true, else y
 * with: the table passes it on to each X as the last argument.
 *
 *    name  no.  in messages  integers reals pairs    result of x and y */
#define GSHMEM_OP_TABLE(X, with)                                                                   \
    X(SUM,   0, "sum",  yes, yes, yes,     computes, x + y, with)                                  \
    X(PROD,  1, "prod", yes, yes, by_call, computes, x * y, with)                                  \
    X(MIN,   2, "min",  yes, yes, no,      chooses,  x < y, with)                                  \
    X(MAX,   3, "max",  yes, yes, no,      chooses,  x > y, with)                                  \
    X(AND,   4, "and",  yes, no,  no,      computes, x & y, with)                                  \
    X(OR,    5, "or",   yes, no,  no,      computes, x | y, with)                                  \
    X(XOR,   6, "xor",  yes, no,  no,      computes, x ^ y, with)

enum gshmem_op {
#define X(name, number, ...) GSHMEM_OP_##name = number,
    GSHMEM_OP_TABLE(X, )
#undef X
    GSHMEM_OP_COUNT
};

#endif
