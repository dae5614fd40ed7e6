/* PEs and teams, in kernels; and the host's functions by the same names. */
#ifndef GSHMEM_DEVICE_TEAM_H
#define GSHMEM_DEVICE_TEAM_H

#include "gshmem/device/post.h"

/* The team of a handle; NULL: there is none, or this PE is not in it. */
GSHMEM_KERNEL const struct gshmem_device_team *gshmem_kernel_team(gshmem_team_t team)
{
    const struct gshmem_device_job *job = gshmem_device_here.ctx.job;

    return job && (uint32_t)team < job->teams ? job->team[team] : NULL;
}

GSHMEM_KERNEL int gshmem_kernel_my_pe(void)
{
    return gshmem_device_here.ctx.n_pes ? gshmem_device_here.ctx.my_pe : -1;
}

GSHMEM_KERNEL int gshmem_kernel_n_pes(void)
{
    return gshmem_device_here.ctx.n_pes ? gshmem_device_here.ctx.n_pes : -1;
}

GSHMEM_KERNEL int gshmem_kernel_team_my_pe(gshmem_team_t team)
{
    const struct gshmem_device_team *t = gshmem_kernel_team(team);

    return t ? t->ctx.my_pe : -1;
}

GSHMEM_KERNEL int gshmem_kernel_team_n_pes(gshmem_team_t team)
{
    const struct gshmem_device_team *t = gshmem_kernel_team(team);

    return t ? t->ctx.n_pes : -1;
}

GSHMEM_KERNEL_RARE int gshmem_kernel_translate_pe(gshmem_team_t src_team, int src_pe,
                                                  gshmem_team_t dest_team)
{
    const struct gshmem_device_team *from = gshmem_kernel_team(src_team);
    const struct gshmem_device_team *to = gshmem_kernel_team(dest_team);

    if (!from || !to || !gshmem_kernel_has_pe(&from->ctx, src_pe))
        return -1;
    int world = from->ctx.world[src_pe];
    if (dest_team == GSHMEM_TEAM_WORLD)
        return world;
    for (int i = 0; i < to->ctx.n_pes; i++) {
        if (to->ctx.world[i] == world)
            return i;
    }
    return -1;
}

/* This PE's own memory is always mapped, even with GSHMEM_MAPPED=off. */
GSHMEM_KERNEL void *gshmem_kernel_ptr(const struct gshmem_device_ctx *c, const void *dest, int pe)
{
    size_t offset;

    if (!gshmem_kernel_has_pe(c, pe))
        return NULL;
    if (!gshmem_kernel_within(&c->heap, dest, 1, &offset) &&
        !gshmem_kernel_within(&c->data, dest, 1, &offset))
        return NULL;
    return pe == c->my_pe ? (void *)dest : gshmem_kernel_reach(c, dest, 1, pe);
}

GSHMEM_KERNEL void *gshmem_kernel_team_ptr(gshmem_team_t team, const void *dest, int pe)
{
    const struct gshmem_device_team *t = gshmem_kernel_team(team);

    return t ? gshmem_kernel_ptr(&t->ctx, dest, pe) : NULL;
}

/* ---- The names of gshmem.h, where they are documented --------------------------------------- */

GSHMEM_EITHER int gshmem_my_pe(void)
{
    GSHMEM_RETURN(gshmem_kernel_my_pe(), gshmem_on_host::gshmem_my_pe());
}

GSHMEM_EITHER int gshmem_n_pes(void)
{
    GSHMEM_RETURN(gshmem_kernel_n_pes(), gshmem_on_host::gshmem_n_pes());
}

GSHMEM_EITHER void *gshmem_ptr(const void *dest, int pe)
{
    GSHMEM_RETURN(gshmem_kernel_ptr(&gshmem_device_here.ctx, dest, pe),
                  gshmem_on_host::gshmem_ptr(dest, pe));
}

GSHMEM_EITHER void *gshmem_team_ptr(gshmem_team_t team, const void *dest, int pe)
{
    GSHMEM_RETURN(gshmem_kernel_team_ptr(team, dest, pe),
                  gshmem_on_host::gshmem_team_ptr(team, dest, pe));
}

GSHMEM_EITHER int gshmem_team_my_pe(gshmem_team_t team)
{
    GSHMEM_RETURN(gshmem_kernel_team_my_pe(team), gshmem_on_host::gshmem_team_my_pe(team));
}

GSHMEM_EITHER int gshmem_team_n_pes(gshmem_team_t team)
{
    GSHMEM_RETURN(gshmem_kernel_team_n_pes(team), gshmem_on_host::gshmem_team_n_pes(team));
}

GSHMEM_EITHER int gshmem_team_translate_pe(gshmem_team_t src_team, int src_pe,
                                           gshmem_team_t dest_team)
{
    GSHMEM_RETURN(gshmem_kernel_translate_pe(src_team, src_pe, dest_team),
                  gshmem_on_host::gshmem_team_translate_pe(src_team, src_pe, dest_team));
}

#endif
