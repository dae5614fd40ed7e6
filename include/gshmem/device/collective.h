/* Collectives in kernels that synchronize or move data; and the host's by the same names.
 * Reductions are in gshmem/device/reduce.h.
 *
 * Small data is sent with a round, through the round's buffer (gshmem/device/round.h). Then only
 * the PE itself writes to its dest, during its call. Large data is moved between two rounds
 * (gshmem/device/call.h), to all members at once where a switch can do that
 * (gshmem/device/multicast.h). */
#ifndef GSHMEM_DEVICE_COLLECTIVE_H
#define GSHMEM_DEVICE_COLLECTIVE_H

#include "gshmem/device/call.h"

/* ---- sync and barrier ----------------------------------------------------------------------- */

/* barrier: also completes what the PE has issued on the default context. */
template <int scope, bool barrier>
GSHMEM_KERNEL_RARE gshmem_status_t gshmem_kernel_sync_team(gshmem_team_t team)
{
    GSHMEM_ONE_FOR_ALL(scope, (gshmem_kernel_sync_team<GSHMEM_SCOPE_THREAD, barrier>(team)));
    const struct gshmem_device_team *t = gshmem_kernel_team(team);
    const struct gshmem_kernel_call call = {team, GSHMEM_COLLECTIVE_SYNC, NULL, NULL, 0, 0, 0, 0};
    gshmem_status_t mine = GSHMEM_OK;

    if (!t) {
        gshmem_kernel_enter<scope>(t, &call, &mine);
        return mine;
    }
    gshmem_kernel_sync<scope>(); /* threads may still be in an earlier call, which changes the
                                    round counter */
    struct gshmem_kernel_round r = gshmem_kernel_round(t, GSHMEM_COLLECTIVE_SYNC);
    if (barrier && gshmem_kernel_rank<scope>() == 0)
        mine = gshmem_kernel_quiet(GSHMEM_CTX_DEFAULT);
    GSHMEM_FOLLOW_STEP(scope, GSHMEM_FOLLOWED_ARRIVE, team);
    gshmem_status_t status = gshmem_kernel_meet<scope>(&r, mine);
    if (!status)
        GSHMEM_FOLLOW_STEP(scope, GSHMEM_FOLLOWED_LEAVE, team);
    if (status && gshmem_kernel_rank<scope>() == 0)
        gshmem_kernel_explain(t, GSHMEM_COLLECTIVE_SYNC, status);
    return status;
}

/* ---- broadcast ------------------------------------------------------------------------------ */

/* Each member gets its part of the data from the root and puts it to all members. No PE sends more
 * than twice the size of the data. */
template <int scope>
GSHMEM_KERNEL gshmem_status_t gshmem_kernel_broadcast_large(const struct gshmem_device_team *t,
                                                            const struct gshmem_kernel_call *call)
{
    const struct gshmem_device_ctx *c = &t->ctx;
    const struct gshmem_kernel_part part = gshmem_kernel_part(c, call->dest_bytes);
    const char *source = (const char *)call->source + part.begin;
    char *mine = (char *)call->dest + part.begin;
    gshmem_status_t status = gshmem_kernel_open<scope>(t, call);
    size_t done;

    if (status)
        return status;
    done = gshmem_kernel_spread<scope>(
        t, mine,
        call->root == c->my_pe ? source : gshmem_kernel_reach(c, source, part.bytes, call->root),
        part.bytes);
    status = gshmem_kernel_bring_from<scope>(c, mine + done, source + done, part.bytes - done,
                                             call->root);
    if (!status)
        status = gshmem_kernel_send_all<scope>(c, mine + done, mine + done, part.bytes - done);
    return gshmem_kernel_close<scope>(t, call, status);
}

template <int scope>
GSHMEM_KERNEL_RARE gshmem_status_t gshmem_kernel_broadcast(gshmem_team_t team, void *dest,
                                                           const void *source, size_t bytes,
                                                           int root)
{
    GSHMEM_ONE_FOR_ALL(
        scope, gshmem_kernel_broadcast<GSHMEM_SCOPE_THREAD>(team, dest, source, bytes, root));
    const struct gshmem_device_team *t = gshmem_kernel_team(team);
    const struct gshmem_kernel_call call = {
        team, GSHMEM_COLLECTIVE_BROADCAST, dest, source, bytes, bytes, root, 0};
    gshmem_status_t status = GSHMEM_OK;

    if (!gshmem_kernel_enter<scope>(t, &call, &status))
        return status;
    if (bytes > t->sync_data)
        return gshmem_kernel_broadcast_large<scope>(t, &call);

    struct gshmem_kernel_round r = gshmem_kernel_round(t, gshmem_kernel_signature(&t->ctx, &call));
    r.brings = GSHMEM_BRINGS_ROOT;
    r.root = root;
    r.bytes = bytes;
    if (!(status = gshmem_kernel_call_meet<scope>(&call, &r)))
        gshmem_kernel_copy_apart<scope>(dest, r.data, bytes);
    gshmem_kernel_sync<scope>();
    return status;
}

/* ---- fcollect ------------------------------------------------------------------------------- */

template <int scope>
GSHMEM_KERNEL gshmem_status_t gshmem_kernel_fcollect_large(const struct gshmem_device_team *t,
                                                           const struct gshmem_kernel_call *call)
{
    const struct gshmem_device_ctx *c = &t->ctx;
    char *mine = (char *)call->dest + (size_t)c->my_pe * call->source_bytes;
    gshmem_status_t status = gshmem_kernel_open<scope>(t, call);

    if (status)
        return status;
    const size_t done = gshmem_kernel_spread<scope>(t, mine, call->source, call->source_bytes);
    const char *source = (const char *)call->source + done;
    const size_t left = call->source_bytes - done;
    gshmem_kernel_copy_apart<scope>(mine + done, source, left);
    status = gshmem_kernel_send_all<scope>(c, mine + done, source, left);
    return gshmem_kernel_close<scope>(t, call, status);
}

template <int scope>
GSHMEM_KERNEL_RARE gshmem_status_t gshmem_kernel_fcollect(gshmem_team_t team, void *dest,
                                                          const void *source, size_t bytes)
{
    GSHMEM_ONE_FOR_ALL(scope,
                       gshmem_kernel_fcollect<GSHMEM_SCOPE_THREAD>(team, dest, source, bytes));
    const struct gshmem_device_team *t = gshmem_kernel_team(team);
    const size_t all = t ? gshmem_kernel_times(bytes, (uint32_t)t->ctx.n_pes) : 0;
    const struct gshmem_kernel_call call = {
        team, GSHMEM_COLLECTIVE_FCOLLECT, dest, source, all, bytes, 0, 0};
    gshmem_status_t status = GSHMEM_OK;

    if (!gshmem_kernel_enter<scope>(t, &call, &status))
        return status;
    if (all > t->sync_data)
        return gshmem_kernel_fcollect_large<scope>(t, &call);

    struct gshmem_kernel_round r = gshmem_kernel_round(t, gshmem_kernel_signature(&t->ctx, &call));
    r.brings = GSHMEM_BRINGS_ALL;
    r.bytes = bytes;
    if (!(status = gshmem_kernel_call_meet<scope>(&call, &r)))
        gshmem_kernel_place<scope>(&r, (char *)dest);
    gshmem_kernel_sync<scope>();
    return status;
}

/* ---- alltoall ------------------------------------------------------------------------------- */

template <int scope>
GSHMEM_KERNEL gshmem_status_t gshmem_kernel_alltoall_large(const struct gshmem_device_team *t,
                                                           const struct gshmem_kernel_call *call,
                                                           size_t bytes)
{
    const struct gshmem_device_ctx *c = &t->ctx;
    const char *source = (const char *)call->source;
    const size_t place = (size_t)c->my_pe * bytes;
    gshmem_status_t status = gshmem_kernel_open<scope>(t, call);

    if (status)
        return status;
    gshmem_kernel_copy_apart<scope>((char *)call->dest + place, source + place, bytes);
    for (uint32_t i = 1; i < (uint32_t)c->n_pes && !status; i++) {
        uint32_t pe = gshmem_kernel_after(c, i);
        status = gshmem_kernel_send<scope>(c, (char *)call->dest + place, source + pe * bytes,
                                           bytes, pe);
    }
    return gshmem_kernel_close<scope>(t, call, status);
}

template <int scope>
GSHMEM_KERNEL_RARE gshmem_status_t gshmem_kernel_alltoall(gshmem_team_t team, void *dest,
                                                          const void *source, size_t bytes)
{
    GSHMEM_ONE_FOR_ALL(scope,
                       gshmem_kernel_alltoall<GSHMEM_SCOPE_THREAD>(team, dest, source, bytes));
    const struct gshmem_device_team *t = gshmem_kernel_team(team);
    const size_t all = t ? gshmem_kernel_times(bytes, (uint32_t)t->ctx.n_pes) : 0;
    const struct gshmem_kernel_call call = {
        team, GSHMEM_COLLECTIVE_ALLTOALL, dest, source, all, all, 0, 0};
    gshmem_status_t status = GSHMEM_OK;

    if (!gshmem_kernel_enter<scope>(t, &call, &status))
        return status;
    if (!gshmem_kernel_small_each(t, all))
        return gshmem_kernel_alltoall_large<scope>(t, &call, bytes);

    struct gshmem_kernel_round r = gshmem_kernel_round(t, gshmem_kernel_signature(&t->ctx, &call));
    r.brings = GSHMEM_BRINGS_EACH;
    r.bytes = bytes;
    if (!(status = gshmem_kernel_call_meet<scope>(&call, &r)))
        gshmem_kernel_place<scope>(&r, (char *)dest);
    gshmem_kernel_sync<scope>();
    return status;
}

/* ---- The names of gshmem.h, where they are documented ----------------------------------------
 *
 * All threads of a warp or block of each PE call those that end in _warp and _block. */

#define GSHMEM_KERNEL_COLLECTIVES(ending, scope)                                                   \
    GSHMEM_KERNEL gshmem_status_t gshmem_team_sync##ending(gshmem_team_t team)                     \
    {                                                                                              \
        return gshmem_kernel_sync_team<scope, false>(team);                                        \
    }                                                                                              \
    GSHMEM_KERNEL gshmem_status_t gshmem_sync_all##ending(void)                                    \
    {                                                                                              \
        return gshmem_kernel_sync_team<scope, false>(GSHMEM_TEAM_WORLD);                           \
    }                                                                                              \
    GSHMEM_KERNEL gshmem_status_t gshmem_barrier##ending(gshmem_team_t team)                       \
    {                                                                                              \
        return gshmem_kernel_sync_team<scope, true>(team);                                         \
    }                                                                                              \
    GSHMEM_KERNEL gshmem_status_t gshmem_barrier_all##ending(void)                                 \
    {                                                                                              \
        return gshmem_kernel_sync_team<scope, true>(GSHMEM_TEAM_WORLD);                            \
    }                                                                                              \
    GSHMEM_KERNEL gshmem_status_t gshmem_broadcastmem##ending(                                     \
        gshmem_team_t team, void *dest, const void *source, size_t bytes, int root)                \
    {                                                                                              \
        return gshmem_kernel_broadcast<scope>(team, dest, source, bytes, root);                    \
    }                                                                                              \
    GSHMEM_KERNEL gshmem_status_t gshmem_fcollectmem##ending(gshmem_team_t team, void *dest,       \
                                                             const void *source, size_t bytes)     \
    {                                                                                              \
        return gshmem_kernel_fcollect<scope>(team, dest, source, bytes);                           \
    }                                                                                              \
    GSHMEM_KERNEL gshmem_status_t gshmem_alltoallmem##ending(gshmem_team_t team, void *dest,       \
                                                             const void *source, size_t bytes)     \
    {                                                                                              \
        return gshmem_kernel_alltoall<scope>(team, dest, source, bytes);                           \
    }

GSHMEM_KERNEL_COLLECTIVES(_warp, GSHMEM_SCOPE_WARP)
GSHMEM_KERNEL_COLLECTIVES(_block, GSHMEM_SCOPE_BLOCK)
#undef GSHMEM_KERNEL_COLLECTIVES

GSHMEM_EITHER gshmem_status_t gshmem_team_sync(gshmem_team_t team)
{
    GSHMEM_RETURN((gshmem_kernel_sync_team<GSHMEM_SCOPE_THREAD, false>(team)),
                  gshmem_on_host::gshmem_team_sync(team));
}

GSHMEM_EITHER gshmem_status_t gshmem_sync_all(void)
{
    GSHMEM_RETURN((gshmem_kernel_sync_team<GSHMEM_SCOPE_THREAD, false>(GSHMEM_TEAM_WORLD)),
                  gshmem_on_host::gshmem_sync_all());
}

GSHMEM_EITHER gshmem_status_t gshmem_barrier(gshmem_team_t team)
{
    GSHMEM_RETURN((gshmem_kernel_sync_team<GSHMEM_SCOPE_THREAD, true>(team)),
                  gshmem_on_host::gshmem_barrier(team));
}

GSHMEM_EITHER gshmem_status_t gshmem_barrier_all(void)
{
    GSHMEM_RETURN((gshmem_kernel_sync_team<GSHMEM_SCOPE_THREAD, true>(GSHMEM_TEAM_WORLD)),
                  gshmem_on_host::gshmem_barrier_all());
}

GSHMEM_EITHER gshmem_status_t gshmem_broadcastmem(gshmem_team_t team, void *dest,
                                                  const void *source, size_t bytes, int root)
{
    GSHMEM_RETURN((gshmem_kernel_broadcast<GSHMEM_SCOPE_THREAD>(team, dest, source, bytes, root)),
                  gshmem_on_host::gshmem_broadcastmem(team, dest, source, bytes, root));
}

GSHMEM_EITHER gshmem_status_t gshmem_fcollectmem(gshmem_team_t team, void *dest, const void *source,
                                                 size_t bytes)
{
    GSHMEM_RETURN((gshmem_kernel_fcollect<GSHMEM_SCOPE_THREAD>(team, dest, source, bytes)),
                  gshmem_on_host::gshmem_fcollectmem(team, dest, source, bytes));
}

GSHMEM_EITHER gshmem_status_t gshmem_alltoallmem(gshmem_team_t team, void *dest, const void *source,
                                                 size_t bytes)
{
    GSHMEM_RETURN((gshmem_kernel_alltoall<GSHMEM_SCOPE_THREAD>(team, dest, source, bytes)),
                  gshmem_on_host::gshmem_alltoallmem(team, dest, source, bytes));
}

#endif
