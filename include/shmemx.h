/* What OpenSHMEM leaves to its libraries. GSHMEM's own API is in gshmem.h, and may be used beside this one;
 * here are names of other libraries: for what has become standard since, and a clock that many programs
 * read. */
#ifndef SHMEMX_H
#define SHMEMX_H

#include "shmem.h"

#include "shmem/extensions.h"

#define shmemx_signal_add        shmem_signal_add
#define shmemx_signal_set        shmem_signal_set
#define shmemx_ctx_signal_add    shmem_ctx_signal_add
#define shmemx_ctx_signal_set    shmem_ctx_signal_set
#define shmemx_pe_quiet          shmem_pe_quiet
#define shmemx_ctx_pe_quiet      shmem_ctx_pe_quiet
#define shmemx_team_ptr          shmem_team_ptr
#define shmemx_query_initialized shmem_query_initialized

#define shmemx_ctx_session_config_t  shmem_ctx_session_config_t
#define shmemx_ctx_session_start     shmem_ctx_session_start
#define shmemx_ctx_session_stop      shmem_ctx_session_stop
#define SHMEMX_CTX_SESSION_BATCH     SHMEM_CTX_SESSION_BATCH
#define SHMEMX_CTX_SESSION_TOTAL_OPS SHMEM_CTX_SESSION_TOTAL_OPS

#ifdef __cplusplus
extern "C" {
#endif
SHMEM_API double shmemx_wtime(void); /* seconds, since some time in the past */
#ifdef __cplusplus
}
#endif

#define SHMEMX_TEAM_NODE GSHMEM_TEAM_HOST /* the PEs of this machine */

#endif
