/* Teams and contexts: like the native ones, except that invalid handles are no errors. */
#include "runtime/facades/openshmem/openshmem.h"

enum { REFUSED = -1 };

_Static_assert(sizeof(shmem_team_config_t) == sizeof(gshmem_team_config_t),
               "one is cast to the other");

int pshmem_team_my_pe(shmem_team_t team)
{
    return gshmem_team_my_pe(team_number(team));
}
WEAK(shmem_team_my_pe)

int pshmem_team_n_pes(shmem_team_t team)
{
    return gshmem_team_n_pes(team_number(team));
}
WEAK(shmem_team_n_pes)

int pshmem_team_get_config(shmem_team_t team, long config_mask, shmem_team_config_t *config)
{
    if (team == SHMEM_TEAM_INVALID)
        return REFUSED;
    return (int)gshmem_team_get_config(team_number(team), config_mask,
                                       (gshmem_team_config_t *)config);
}
WEAK(shmem_team_get_config)

int pshmem_team_translate_pe(shmem_team_t src_team, int src_pe, shmem_team_t dest_team)
{
    return gshmem_team_translate_pe(team_number(src_team), src_pe, team_number(dest_team));
}
WEAK(shmem_team_translate_pe)

int pshmem_team_split_strided(shmem_team_t parent_team, int start, int stride, int size,
                              const shmem_team_config_t *config, long config_mask,
                              shmem_team_t *new_team)
{
    gshmem_team_t made = GSHMEM_TEAM_INVALID;
    gshmem_status_t status;

    *new_team = SHMEM_TEAM_INVALID;
    if (parent_team == SHMEM_TEAM_INVALID)
        return REFUSED;
    status = gshmem_team_split_strided(team_number(parent_team), start, stride, size,
                                       (const gshmem_team_config_t *)config, config_mask, &made);
    *new_team = team_handle(made);
    return (int)status;
}
WEAK(shmem_team_split_strided)

int pshmem_team_split_2d(shmem_team_t parent_team, int xrange,
                         const shmem_team_config_t *xaxis_config, long xaxis_mask,
                         shmem_team_t *xaxis_team, const shmem_team_config_t *yaxis_config,
                         long yaxis_mask, shmem_team_t *yaxis_team)
{
    gshmem_team_t x = GSHMEM_TEAM_INVALID, y = GSHMEM_TEAM_INVALID;
    gshmem_status_t status;

    *xaxis_team = *yaxis_team = SHMEM_TEAM_INVALID;
    if (parent_team == SHMEM_TEAM_INVALID)
        return REFUSED;
    status = gshmem_team_split_2d(team_number(parent_team), xrange,
                                  (const gshmem_team_config_t *)xaxis_config, xaxis_mask, &x,
                                  (const gshmem_team_config_t *)yaxis_config, yaxis_mask, &y);
    *xaxis_team = team_handle(x);
    *yaxis_team = team_handle(y);
    return (int)status;
}
WEAK(shmem_team_split_2d)

void pshmem_team_destroy(shmem_team_t team)
{
    gshmem_status_t status = GSHMEM_OK;

    if (team == SHMEM_TEAM_INVALID)
        return;
    /* predefined teams stay, and are refused with a reason */
    if (team_number(team) > GSHMEM_TEAM_SAME_INDEX)
        status = gshmem_path_close_contexts(team_number(team));
    settle(status ? status : gshmem_team_destroy(team_number(team)));
}
WEAK(shmem_team_destroy)

/* ---- Contexts ---- */

int pshmem_ctx_create(long options, shmem_ctx_t *ctx)
{
    *ctx = SHMEM_CTX_INVALID;
    return (int)gshmem_ctx_create(options, ctx);
}
WEAK(shmem_ctx_create)

int pshmem_team_create_ctx(shmem_team_t team, long options, shmem_ctx_t *ctx)
{
    *ctx = SHMEM_CTX_INVALID;
    if (team == SHMEM_TEAM_INVALID)
        return REFUSED;
    return (int)gshmem_team_create_ctx(team_number(team), options, ctx);
}
WEAK(shmem_team_create_ctx)

void pshmem_ctx_destroy(shmem_ctx_t ctx)
{
    if (ctx != SHMEM_CTX_INVALID)
        settle(gshmem_ctx_destroy(ctx));
}
WEAK(shmem_ctx_destroy)

int pshmem_ctx_get_team(shmem_ctx_t ctx, shmem_team_t *team)
{
    gshmem_team_t of = GSHMEM_TEAM_INVALID;
    gshmem_status_t status;

    *team = SHMEM_TEAM_INVALID;
    if (ctx == SHMEM_CTX_INVALID)
        return REFUSED;
    status = gshmem_ctx_get_team(ctx, &of);
    *team = team_handle(of);
    return (int)status;
}
WEAK(shmem_ctx_get_team)

void pshmem_ctx_session_start(shmem_ctx_t ctx, long options,
                              const shmem_ctx_session_config_t *config, long config_mask)
{
    (void)config;
    (void)config_mask;
    if (ctx != SHMEM_CTX_INVALID)
        gshmem_ctx_session_start(ctx, options);
}
WEAK(shmem_ctx_session_start)

void pshmem_ctx_session_stop(shmem_ctx_t ctx)
{
    if (ctx != SHMEM_CTX_INVALID)
        gshmem_ctx_session_stop(ctx);
}
WEAK(shmem_ctx_session_stop)
