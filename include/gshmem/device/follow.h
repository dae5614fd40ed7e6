/* GSHMEM_CHECK=races in kernels of the host device, compiled by gshmemcc --check=races: one thread
 * of those that make an operation tells the library of it. In all other code this is nothing. */
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
/* An operation and its form that does not wait: context, what, there, local, bytes, PE. */
#define GSHMEM_FOLLOW_EITHER(scope, nbi, c, what, ...)                                             \
    GSHMEM_FOLLOW(scope, c, nbi ? GSHMEM_FOLLOWED_##what##_NBI : GSHMEM_FOLLOWED_##what,           \
                  __VA_ARGS__)
/* A step that concerns no object: what, team. */
#define GSHMEM_FOLLOW_STEP(scope, what, team)                                                      \
    do {                                                                                           \
        if (gshmem_kernel_rank<scope>() == 0)                                                      \
            gshmem_path_follow(what, NULL, NULL, 0, team);                                         \
    } while (0)
#else
#define GSHMEM_FOLLOW(scope, ...)             ((void)0)
#define GSHMEM_FOLLOW_EITHER(scope, nbi, ...) ((void)0)
#define GSHMEM_FOLLOW_STEP(scope, what, team) ((void)0)
#endif

#endif
