#include "device/cuda/context.h"

#include <stdarg.h>
#include <stdio.h>

gshmem_status_t cuda_fail(const struct cuda *c, cuda_result result, const char *format, ...)
{
    gshmem_status_t status = result == CUDA_OUT_OF_MEMORY ? GSHMEM_ERR_MEMORY
                             : result == CUDA_NOT_SUPPORTED ? GSHMEM_ERR_UNSUPPORTED
                                                            : GSHMEM_ERR_DEVICE;
    char what[400];
    va_list args;

    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    return c->config.fail(status, "cuda: %s: %s", what, cuda_error(&c->driver, result).text);
}

/* How deep the pairs of this thread are nested, and its mode of captures outside of them. Stays
 * thread-local: the driver keeps both, the stack of contexts and the mode, for each thread. */
static _Thread_local struct {
    int depth, mode;
} within;

gshmem_status_t cuda_enter_context(const struct cuda *c, cuda_context context, cuda_gpu gpu)
{
    cuda_result result = c->driver.context_push(context);

    if (result)
        return cuda_fail(c, result, "taking GPU %d for this thread", gpu);
    if (within.depth++ == 0) {
        within.mode = CUDA_CAPTURE_RELAXED;
        c->driver.capture_mode(&within.mode);
    }
    return GSHMEM_OK;
}

gshmem_status_t cuda_enter(const struct cuda *c)
{
    return cuda_enter_context(c, c->context, c->gpu);
}

void cuda_leave(const struct cuda *c)
{
    cuda_context ours;

    if (--within.depth == 0)
        c->driver.capture_mode(&within.mode);
    c->driver.context_pop(&ours);
}

int cuda_attribute_of(const struct cuda *c, enum cuda_attribute which)
{
    int value = 0;

    return c->driver.gpu_attribute(&value, which, c->gpu) ? 0 : value;
}
