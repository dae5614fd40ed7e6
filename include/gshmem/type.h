/* The element types of reductions, waits and atomics, as arguments at run time. */
#ifndef GSHMEM_TYPE_H
#define GSHMEM_TYPE_H

enum gshmem_type {
    GSHMEM_TYPE_INT8,
    GSHMEM_TYPE_INT16,
    GSHMEM_TYPE_INT32,
    GSHMEM_TYPE_INT64,
    GSHMEM_TYPE_UINT8,
    GSHMEM_TYPE_UINT16,
    GSHMEM_TYPE_UINT32,
    GSHMEM_TYPE_UINT64,
    GSHMEM_TYPE_FLOAT,
    GSHMEM_TYPE_DOUBLE,
    GSHMEM_TYPE_LONGDOUBLE,
    GSHMEM_TYPE_COMPLEXF, /* float _Complex */
    GSHMEM_TYPE_COMPLEXD, /* double _Complex */
    GSHMEM_TYPE_HALF,     /* 16 bits: IEEE's binary16, as CUDA's __half; only for reductions */
    GSHMEM_TYPE_BFLOAT16, /* 16 bits: a float's upper half, as CUDA's __nv_bfloat16; only for
                             reductions */
    GSHMEM_TYPE_COUNT
};

/* What char is here, and the complex types without <complex.h>, which would define I. */
#define GSHMEM_TYPE_CHAR ((char)-1 < 0 ? GSHMEM_TYPE_INT8 : GSHMEM_TYPE_UINT8)
__extension__ typedef float _Complex gshmem_complexf_t;
__extension__ typedef double _Complex gshmem_complexd_t;

enum gshmem_op {
    GSHMEM_OP_SUM,
    GSHMEM_OP_PROD,
    GSHMEM_OP_MIN,
    GSHMEM_OP_MAX,
    GSHMEM_OP_AND,
    GSHMEM_OP_OR,
    GSHMEM_OP_XOR,
    GSHMEM_OP_COUNT
};

#endif
