/* GSHMEM_CHECK=races in kernels of the host device that were compiled by gshmemcc --check=races:
 * each operation is told to the library by one of its threads. In all other code this is nothing. */
#ifndef GSHMEM_DEVICE_FOLLOW_H
#define GSHMEM_DEVICE_FOLLOW_H

#include "gshmem/device/reach.h"
#include "gshmem/device/scope.h"

#if defined(GSHMEM_RACES) && defined(GSHMEM_HOST_DEVICE)
#include "gshmem/races.h"

GSHMEM_KERNEL void gshmem_kernel_follow(const struct gshmem_device_ctx *c,
                                        enum gshmem_followed what, const void *there,
                                        const void *local, size_t bytes, int pe)
{
    if (gshmem_kernel_has_pe(c, pe))
        gshmem_path_follow(what, there, local, bytes, c->world[pe]);
}

/* An operation of the threads of a scope: context, what, there, local, bytes, PE of the context. */
#define GSHMEM_FOLLOW(scope, ...)                                                                  \
    do {                                                                                           \
        if (gshmem_kernel_rank<scope>() == 0)                                                      \
            gshmem_kernel_follow(__VA_ARGS__);                                                     \
    } while (0)
/* A step that concerns no object: what, team. */
#define GSHMEM_FOLLOW_STEP(scope, what, team)                                                      \
    do {                                                                                           \
        if (gshmem_kernel_rank<scope>() == 0)                                                      \
            gshmem_path_follow(what, NULL, NULL, 0, team);                                         \
    } while (0)
#else
#define GSHMEM_FOLLOW(scope, ...)               ((void)0)
#define GSHMEM_FOLLOW_STEP(scope, what, team)   ((void)0)
#endif

#endif
