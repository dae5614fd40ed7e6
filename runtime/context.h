/* Contexts: what inline code reads (gshmem/context.h), and what the library keeps beside it. */
#ifndef GSHMEM_RUNTIME_CONTEXT_H
#define GSHMEM_RUNTIME_CONTEXT_H

#include "gshmem/context.h"
#include "runtime/job.h"

struct context {
    struct gshmem_ctx view; /* first: a handle points at it */
    struct context *next;   /* in the job's list */
};

/* Opens and closes the default context; stop also frees those that the program left. */
void context_start(struct job *j);
void context_stop(struct job *j);

/* The context of a handle, or NULL after one logged line that names `call`. */
struct gshmem_ctx *context_find(gshmem_ctx_t handle, const char *call);

/* Like gshmem_ctx_reach, for what that cannot do: data of libraries. On failure one line says which
 * of the two was wrong, the PE or the address, and how; `call` is what the caller was asked to do. */
gshmem_status_t context_reach(gshmem_ctx_t handle, const void *mine, size_t bytes, int pe,
                              const char *call, void **there);

/* Where pe's copy of a library's variable is mapped (the executable's are in the view), or NULL. */
void *context_reach_library(const struct gshmem_ctx *ctx, const void *mine, size_t bytes, int pe);

#endif
