/* Failures of driver calls, and the GPU that this thread's driver calls are about. */
#ifndef GSHMEM_CUDA_CONTEXT_H
#define GSHMEM_CUDA_CONTEXT_H

#include "device/cuda/cuda.h"

/* Fails with a line that says what was tried: "…: out of memory (CUDA_ERROR_OUT_OF_MEMORY, 2)". */
gshmem_status_t cuda_fail(const struct cuda *c, cuda_result result, const char *format, ...)
    __attribute__((format(printf, 3, 4), cold));

/* Between the two, driver calls of this thread are about this PE's GPU, and what a thread that
 * captures a stream may not do otherwise does not disturb the capture. Pairs nest. */
gshmem_status_t cuda_enter(const struct cuda *c);
void cuda_leave(const struct cuda *c);
/* The same for another GPU's context. */
gshmem_status_t cuda_enter_context(const struct cuda *c, cuda_context context, cuda_gpu gpu);

/* An attribute of this PE's GPU; 0 where the driver does not know it. */
int cuda_attribute_of(const struct cuda *c, enum cuda_attribute which);

static inline bool cuda_has(const struct cuda *c, enum cuda_attribute which)
{
    return cuda_attribute_of(c, which) != 0;
}

#endif
