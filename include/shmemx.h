/* What OpenSHMEM leaves to its libraries. GSHMEM adds nothing to the standard here (its own API is in
 * gshmem.h, and may be used beside this one), but knows the names under which other libraries had what
 * has become standard since. */
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

#define SHMEMX_TEAM_NODE GSHMEM_TEAM_HOST /* the PEs of this machine */

#endif
