/* NVSHMEM's API over GSHMEM. Programs written for NVSHMEM include this and <nvshmemx.h>, and are
 * compiled with gshmemcc; CUDA sources have all of it in kernels, too. Names, arguments and
 * meanings are those of NVSHMEM's documentation; gshmem.h says what each call does here, by the
 * name with gshmem_ for nvshmem_ and nvshmemx_. Values of constants and the contents of structs are
 * GSHMEM's own: programs have to be compiled with this header, and not only linked anew.
 *
 * Functions that return nothing, or a value, hand failures to the error policy (GSHMEM_ON_ERROR);
 * those that return an int return 0, or the reason of a failure. A function that is not offered
 * does not compile, and the compiler's message names what to use (nvshmem/missing.h).
 *
 * In a job that nvshmem_init or one of its variants began, a put, get, atomic or signal of a PE to
 * itself may use any of its memory, symmetric or not, as in NVSHMEM. In kernels this holds for the
 * default context.
 *
 * Like NVSHMEM's header, this one includes <assert.h>, <errno.h>, <limits.h>, <stdio.h>,
 * <stdlib.h>, <cuda.h> where there is one and, in CUDA sources, <cooperative_groups.h>,
 * <cuda_fp16.h> and <cuda_bf16.h>. The last two take nvcc longer than everything else here: a
 * source without half and bfloat16 can define GSHMEM_NO_HALF first. */
#ifndef NVSHMEM_H
#define NVSHMEM_H

#include "gshmem_names_begin.h"

#include "gshmem.h"
#include "nvshmem/base.h"

/* ---- Setup --------------------------------------------------------------------------------- */

static inline void nvshmem_init(void)
{
    gshmem_status_t status = gshmem_init();

    gshmem_raise(status ? status : gshmem_path_own_memory());
}

static inline int nvshmem_init_thread(int requested, int *provided)
{
    gshmem_status_t status = gshmem_init_thread(requested, provided);

    return (int)(status ? status : gshmem_path_own_memory());
}

static inline void nvshmem_query_thread(int *provided)
{
    *provided = gshmem_query_thread();
}

static inline void nvshmem_finalize(void)
{
    gshmem_raise(gshmem_finalize());
}

static inline void nvshmem_global_exit(int status)
{
    gshmem_global_exit(status);
}

NVSHMEM_EITHER int nvshmem_my_pe(void)
{
    return gshmem_my_pe();
}

NVSHMEM_EITHER int nvshmem_n_pes(void)
{
    return gshmem_n_pes();
}

NVSHMEM_EITHER void *nvshmem_ptr(const void *dest, int pe)
{
    return gshmem_ptr(dest, pe);
}

/* The OpenSHMEM version that NVSHMEM follows, and the name and version of GSHMEM. */
NVSHMEM_EITHER void nvshmem_info_get_version(int *major, int *minor)
{
    *major = NVSHMEM_MAJOR_VERSION;
    *minor = NVSHMEM_MINOR_VERSION;
}

NVSHMEM_EITHER void nvshmem_info_get_name(char *name)
{
    const char *from = NVSHMEM_VENDOR_STRING;

    while ((*name++ = *from++))
        ;
}

/* ---- Symmetric memory ------------------------------------------------------------------------ */

static inline void *nvshmem_malloc(size_t size)
{
    return gshmem_malloc(size);
}

static inline void *nvshmem_calloc(size_t count, size_t size)
{
    return gshmem_calloc(count, size);
}

static inline void *nvshmem_align(size_t alignment, size_t size)
{
    return gshmem_align(alignment, size);
}

static inline void *nvshmem_realloc(void *ptr, size_t size)
{
    return gshmem_realloc(ptr, size);
}

static inline void nvshmem_free(void *ptr)
{
    gshmem_raise(gshmem_free(ptr));
}

/* ---- Teams ----------------------------------------------------------------------------------- */

NVSHMEM_EITHER int nvshmem_team_my_pe(nvshmem_team_t team)
{
    return gshmem_team_my_pe(team);
}

NVSHMEM_EITHER int nvshmem_team_n_pes(nvshmem_team_t team)
{
    return gshmem_team_n_pes(team);
}

NVSHMEM_EITHER int nvshmem_team_translate_pe(nvshmem_team_t src_team, int src_pe,
                                             nvshmem_team_t dest_team)
{
    return gshmem_team_translate_pe(src_team, src_pe, dest_team);
}

static inline void nvshmem_team_get_config(nvshmem_team_t team, nvshmem_team_config_t *config)
{
    gshmem_team_config_t has = {0};

    gshmem_raise(gshmem_team_get_config(team, GSHMEM_TEAM_NUM_CONTEXTS, &has));
    config->num_contexts = has.num_contexts;
}

/* Fields that the mask does not name may have any value. */
static inline gshmem_team_config_t nvshmem_wanted(const nvshmem_team_config_t *config, long mask)
{
    gshmem_team_config_t wants = {0};

    if (config && mask & NVSHMEM_TEAM_NUM_CONTEXTS)
        wants.num_contexts = config->num_contexts;
    return wants;
}

static inline int nvshmem_team_split_strided(nvshmem_team_t parent, int start, int stride, int size,
                                             const nvshmem_team_config_t *config, long config_mask,
                                             nvshmem_team_t *new_team)
{
    gshmem_team_config_t wants = nvshmem_wanted(config, config_mask);

    return (int)gshmem_team_split_strided(parent, start, stride, size, &wants,
                                          config ? config_mask : 0, new_team);
}

static inline int nvshmemx_team_get_uniqueid(nvshmemx_team_uniqueid_t *uniqueid)
{
    return (int)gshmem_team_get_uniqueid(uniqueid);
}

/* 0 is no id: gshmem_team_create refuses it. */
static inline int nvshmemx_team_init(nvshmem_team_t *team, nvshmem_team_config_t *config,
                                     long config_mask, int npes, int pe_idx_in_team)
{
    gshmem_team_config_t wants = nvshmem_wanted(config, config_mask);
    const int has_id = config && config_mask & NVSHMEM_TEAM_CONFIG_MASK_UNIQUEID;

    return (int)gshmem_team_create(has_id ? config->uniqueid : 0, npes, pe_idx_in_team, &wants,
                                   config_mask & ~NVSHMEM_TEAM_CONFIG_MASK_UNIQUEID, team);
}

static inline int nvshmem_team_split_2d(nvshmem_team_t parent, int xrange,
                                        const nvshmem_team_config_t *xaxis_config, long xaxis_mask,
                                        nvshmem_team_t *xaxis_team,
                                        const nvshmem_team_config_t *yaxis_config, long yaxis_mask,
                                        nvshmem_team_t *yaxis_team)
{
    gshmem_team_config_t x = nvshmem_wanted(xaxis_config, xaxis_mask);
    gshmem_team_config_t y = nvshmem_wanted(yaxis_config, yaxis_mask);

    return (int)gshmem_team_split_2d(parent, xrange, &x, xaxis_config ? xaxis_mask : 0, xaxis_team,
                                     &y, yaxis_config ? yaxis_mask : 0, yaxis_team);
}

static inline void nvshmem_team_destroy(nvshmem_team_t team)
{
    gshmem_raise(gshmem_team_destroy(team));
}

/* ---- Order, and collectives without a type --------------------------------------------------- */

NVSHMEM_EITHER void nvshmem_fence(void)
{
    gshmem_raise(gshmem_fence());
}

NVSHMEM_EITHER void nvshmem_quiet(void)
{
    gshmem_raise(gshmem_quiet());
}

NVSHMEM_EITHER int nvshmem_barrier(nvshmem_team_t team)
{
    return (int)gshmem_barrier(team);
}

NVSHMEM_EITHER void nvshmem_barrier_all(void)
{
    gshmem_raise(gshmem_barrier_all());
}

NVSHMEM_EITHER int nvshmem_team_sync(nvshmem_team_t team)
{
    return (int)gshmem_team_sync(team);
}

NVSHMEM_EITHER int nvshmem_sync(nvshmem_team_t team)
{
    return (int)gshmem_team_sync(team);
}

NVSHMEM_EITHER void nvshmem_sync_all(void)
{
    gshmem_raise(gshmem_sync_all());
}

NVSHMEM_EITHER int nvshmem_broadcastmem(nvshmem_team_t team, void *dest, const void *source,
                                        size_t nelems, int PE_root)
{
    return (int)gshmem_broadcastmem(team, dest, source, nelems, PE_root);
}

NVSHMEM_EITHER int nvshmem_fcollectmem(nvshmem_team_t team, void *dest, const void *source,
                                       size_t nelems)
{
    return (int)gshmem_fcollectmem(team, dest, source, nelems);
}

NVSHMEM_EITHER int nvshmem_alltoallmem(nvshmem_team_t team, void *dest, const void *source,
                                       size_t nelems)
{
    return (int)gshmem_alltoallmem(team, dest, source, nelems);
}

/* ---- Signals --------------------------------------------------------------------------------- */

NVSHMEM_EITHER uint64_t nvshmem_signal_fetch(uint64_t *sig_addr)
{
    return gshmem_signal_fetch(sig_addr);
}

NVSHMEM_EITHER uint64_t nvshmem_signal_wait_until(uint64_t *sig_addr, int cmp, uint64_t cmp_value)
{
    return gshmem_signal_wait_until(sig_addr, cmp, cmp_value);
}

#ifdef GSHMEM_CUDA
#include "nvshmem/device/typed.h" /* generated, as the other is */
#else
#include "nvshmem/typed.h"
#endif
#ifdef NVSHMEM_HALF
#include "nvshmem/half_atomic.h"
#endif
#include "nvshmemx.h"

#include "gshmem_names_end.h"

#endif
