/* Extensions of OpenSHMEM. GSHMEM's own API is in gshmem.h, and may be used beside this one. The
 * names here are those of other libraries: for functions that have become standard since, and for a
 * clock that many programs read. */
#ifndef SHMEMX_H
#define SHMEMX_H

#include "gshmem_names_begin.h"

#include "shmem.h"

#include "shmem/extensions.h"

#define shmemx_signal_add        shmem_signal_add
#define shmemx_signal_set        shmem_signal_set
#define shmemx_signal_fetch      shmem_signal_fetch
#define shmemx_signal_wait_until shmem_signal_wait_until
#define shmemx_ctx_signal_add    shmem_ctx_signal_add
#define shmemx_ctx_signal_set    shmem_ctx_signal_set
#define SHMEMX_SIGNAL_SET        SHMEM_SIGNAL_SET
#define SHMEMX_SIGNAL_ADD        SHMEM_SIGNAL_ADD

#define shmemx_pe_quiet          shmem_pe_quiet
#define shmemx_ctx_pe_quiet      shmem_ctx_pe_quiet
#define shmemx_query_initialized shmem_query_initialized
#define shmemx_pcontrol          shmem_pcontrol

#define shmemx_team_t              shmem_team_t
#define shmemx_team_config_t       shmem_team_config_t
#define SHMEMX_TEAM_INVALID        SHMEM_TEAM_INVALID
#define SHMEMX_TEAM_WORLD          SHMEM_TEAM_WORLD
#define SHMEMX_TEAM_SHARED         SHMEM_TEAM_SHARED
#define SHMEMX_TEAM_NUM_CONTEXTS   SHMEM_TEAM_NUM_CONTEXTS
#define shmemx_team_my_pe          shmem_team_my_pe
#define shmemx_team_n_pes          shmem_team_n_pes
#define shmemx_team_get_config     shmem_team_get_config
#define shmemx_team_translate_pe   shmem_team_translate_pe
#define shmemx_team_split_strided  shmem_team_split_strided
#define shmemx_team_split_2d       shmem_team_split_2d
#define shmemx_team_destroy        shmem_team_destroy
#define shmemx_team_sync           shmem_team_sync
#define shmemx_sync                shmem_sync
#define shmemx_team_ptr            shmem_team_ptr
#define shmemx_broadcastmem        shmem_broadcastmem
#define shmemx_collectmem          shmem_collectmem
#define shmemx_fcollectmem         shmem_fcollectmem
#define shmemx_alltoallmem         shmem_alltoallmem
#define shmemx_alltoallsmem        shmem_alltoallsmem

#define SHMEMX_CTX_INVALID           SHMEM_CTX_INVALID
#define shmemx_team_create_ctx       shmem_team_create_ctx
#define shmemx_ctx_get_team          shmem_ctx_get_team
#define shmemx_ctx_session_config_t  shmem_ctx_session_config_t
#define shmemx_ctx_session_start     shmem_ctx_session_start
#define shmemx_ctx_session_stop      shmem_ctx_session_stop
#define SHMEMX_CTX_SESSION_BATCH     SHMEM_CTX_SESSION_BATCH
#define SHMEMX_CTX_SESSION_TOTAL_OPS SHMEM_CTX_SESSION_TOTAL_OPS

#define shmemx_malloc_with_hints     shmem_malloc_with_hints
#define SHMEMX_MALLOC_ATOMICS_REMOTE SHMEM_MALLOC_ATOMICS_REMOTE
#define SHMEMX_MALLOC_SIGNAL_REMOTE  SHMEM_MALLOC_SIGNAL_REMOTE

/* Options without an effect. */
#define SHMEMX_MALLOC_NO_BARRIER 0L
#define SHMEMX_CTX_BOUNCE_BUFFER 0L

#ifdef __cplusplus
extern "C" {
#endif
#define HAVE_SHMEMX_WTIME
SHMEM_API double shmemx_wtime(void); /* seconds since a point in the past */

/* For libraries that must tell threads apart by an id of the program's. Does nothing here. */
SHMEM_API void shmemx_register_gettid(uint64_t (*gettid)(void));
#ifdef __cplusplus
}
#endif

#define SHMEMX_TEAM_NODE ((shmem_team_t)3) /* the PEs of this node */

#include "gshmem_names_end.h"

#endif
