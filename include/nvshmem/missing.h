/* What NVSHMEM has for kernels alone: a call in a source without kernels does not compile, and the
 * message says what to use instead. */
#ifndef NVSHMEM_MISSING_H
#define NVSHMEM_MISSING_H

#include "nvshmem/base.h"

#ifdef __cplusplus

/* A template: the message then appears where a program calls it, in host code or kernels. */
#define NVSHMEM_MISSING_AS(name, text)                                                             \
    template <class... argument> NVSHMEM_EITHER int name(argument...)                              \
    {                                                                                              \
        static_assert(sizeof...(argument) == (size_t)-1, text);                                    \
        return 0;                                                                                  \
    }

#else

#define NVSHMEM_MISSING_AS(name, text) int name(void *, ...) __attribute__((error(text)));

#endif

/* Operations on queue pairs are for kernels alone. */
#ifndef GSHMEM_CUDA
#define NVSHMEM_FOR_KERNELS(name) NVSHMEM_MISSING_AS(name, #name NVSHMEM_FOR_KERNELS_TEXT)
#define NVSHMEM_FOR_KERNELS_TEXT                                                                   \
    " is for kernels: host code has nvshmem_… without a queue pair, or gshmem_ctx_… with a "   \
    "context"
NVSHMEM_FOR_KERNELS(nvshmemx_qp_quiet)
NVSHMEM_FOR_KERNELS(nvshmemx_qp_fence)
NVSHMEM_FOR_KERNELS(nvshmemx_qp_signal_op)
#ifdef __cplusplus
#include "nvshmem/qp.h" /* generated */
#endif
#undef NVSHMEM_FOR_KERNELS
#undef NVSHMEM_FOR_KERNELS_TEXT
#endif

#undef NVSHMEM_MISSING_AS
#endif
