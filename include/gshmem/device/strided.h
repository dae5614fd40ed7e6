/* Which strided copies there are: the rule of the host's calls and of kernels. */
#ifndef GSHMEM_DEVICE_STRIDED_H
#define GSHMEM_DEVICE_STRIDED_H

#include <stddef.h>

#include "gshmem/memory.h"

/* Of n blocks. */
struct gshmem_strided {
    size_t run;       /* bytes moved at once */
    size_t to_step;   /* bytes from one block to the next */
    size_t from_step;
    size_t to_span;   /* bytes from the first byte to the last */
    size_t from_span;
};

enum gshmem_strided_fault {
    GSHMEM_STRIDED_GOOD,
    GSHMEM_STRIDED_SMALL, /* a stride is less than 1, or than the block */
    GSHMEM_STRIDED_LARGE  /* an object ends beyond the largest address */
};

/* Whether a * b is larger than a size_t, in which *product is what is left of it. */
GSHMEM_DEVICE int gshmem_multiply_wraps(size_t a, size_t b, size_t *product)
{
#if defined __CUDA_ARCH__ && defined __NVCC__
    *product = a * b;
    return __umul64hi(a, b) != 0;
#else
    return __builtin_mul_overflow(a, b, product);
#endif
}

GSHMEM_DEVICE int gshmem_span_wraps(size_t step, size_t run, size_t n, size_t *span)
{
    const int wraps = gshmem_multiply_wraps(n - 1, step, span);

    *span += run;
    return wraps || *span < run;
}

/* Of at least one block of at least one element. */
GSHMEM_DEVICE enum gshmem_strided_fault gshmem_strided_check(ptrdiff_t dst, ptrdiff_t sst,
                                                             size_t block, size_t element,
                                                             size_t n, struct gshmem_strided *s)
{
    if (dst < 1 || sst < 1 || (size_t)dst < block || (size_t)sst < block)
        return GSHMEM_STRIDED_SMALL;
    if (gshmem_multiply_wraps(block, element, &s->run) ||
        gshmem_multiply_wraps((size_t)dst, element, &s->to_step) ||
        gshmem_multiply_wraps((size_t)sst, element, &s->from_step) ||
        gshmem_span_wraps(s->to_step, s->run, n, &s->to_span) ||
        gshmem_span_wraps(s->from_step, s->run, n, &s->from_span))
        return GSHMEM_STRIDED_LARGE;
    return GSHMEM_STRIDED_GOOD;
}

#endif
