/* OpenSHMEM 1.6 over GSHMEM: all of its functions, the deprecated ones included.
 *
 * The standard says what each function does. Where GSHMEM has something to add, gshmem.h says it
 * under the same name with gshmem_ for shmem_. These functions are thin wrappers of those, except
 * that functions that return nothing hand failures to the error policy (GSHMEM_ON_ERROR), which by
 * default ends the job with one line that says what was wrong.
 *
 * Put and get of less than 1 KiB, p, g and atomics on peers whose memory is mapped are loads and
 * stores in the program itself when it is compiled with optimisation; all functions exist in
 * libgshmem_shmem.so as well. A program that defines SHMEM_NO_INLINE before this header calls only
 * those. Tools that replace functions (pshmem.h) see every call in either case. */
#ifndef SHMEM_H
#define SHMEM_H

#include "gshmem_names_begin.h"

#include <stddef.h>
#include <stdint.h>

#include "gshmem/base.h"
#include "gshmem/context.h"
#include "gshmem/type.h"

/* ---- Constants ------------------------------------------------------------------------------- */

#define SHMEM_MAJOR_VERSION 1
#define SHMEM_MINOR_VERSION 6
#define SHMEM_MAX_NAME_LEN  64
#define SHMEM_VENDOR_STRING "GSHMEM " GSHMEM_VERSION_TEXT

/* Macros that other libraries have, too. By these macros, bindings of other languages recognize a
 * library that has the whole standard; otherwise they define functions of their own. Some programs
 * test for the last one. */
#define SHMEM_DEF_H
#define SHMEM_FUNCTION_ATTRIBUTES GSHMEM_API
#define OSHMEM_SPEC_VERSION (SHMEM_MAJOR_VERSION * 10000 + SHMEM_MINOR_VERSION * 100)

#define SHMEM_THREAD_SINGLE     0
#define SHMEM_THREAD_FUNNELED   1
#define SHMEM_THREAD_SERIALIZED 2
#define SHMEM_THREAD_MULTIPLE   3

typedef int shmem_cmp_t; /* the name of this type in some libraries and programs */
#define SHMEM_CMP_EQ 0
#define SHMEM_CMP_NE 1
#define SHMEM_CMP_GT 2
#define SHMEM_CMP_LE 3
#define SHMEM_CMP_LT 4
#define SHMEM_CMP_GE 5

#define SHMEM_SIGNAL_SET 1
#define SHMEM_SIGNAL_ADD 2

#define SHMEM_MALLOC_ATOMICS_REMOTE 0x1L
#define SHMEM_MALLOC_SIGNAL_REMOTE  0x2L

/* Work arrays of active sets. Reductions need no pWrk. */
#define SHMEM_SYNC_VALUE              0L
#define SHMEM_SYNC_SIZE               8
#define SHMEM_BARRIER_SYNC_SIZE       SHMEM_SYNC_SIZE
#define SHMEM_BCAST_SYNC_SIZE         SHMEM_SYNC_SIZE
#define SHMEM_REDUCE_SYNC_SIZE        SHMEM_SYNC_SIZE
#define SHMEM_COLLECT_SYNC_SIZE       SHMEM_SYNC_SIZE
#define SHMEM_ALLTOALL_SYNC_SIZE      SHMEM_SYNC_SIZE
#define SHMEM_ALLTOALLS_SYNC_SIZE     SHMEM_SYNC_SIZE
#define SHMEM_REDUCE_MIN_WRKDATA_SIZE 1

/* Deprecated names of these. */
#define _SHMEM_MAJOR_VERSION           SHMEM_MAJOR_VERSION
#define _SHMEM_MINOR_VERSION           SHMEM_MINOR_VERSION
#define _SHMEM_MAX_NAME_LEN            SHMEM_MAX_NAME_LEN
#define _SHMEM_VENDOR_STRING           SHMEM_VENDOR_STRING
#define _SHMEM_CMP_EQ                  SHMEM_CMP_EQ
#define _SHMEM_CMP_NE                  SHMEM_CMP_NE
#define _SHMEM_CMP_GT                  SHMEM_CMP_GT
#define _SHMEM_CMP_LE                  SHMEM_CMP_LE
#define _SHMEM_CMP_LT                  SHMEM_CMP_LT
#define _SHMEM_CMP_GE                  SHMEM_CMP_GE
#define _SHMEM_SYNC_VALUE              SHMEM_SYNC_VALUE
#define _SHMEM_BARRIER_SYNC_SIZE       SHMEM_BARRIER_SYNC_SIZE
#define _SHMEM_BCAST_SYNC_SIZE         SHMEM_BCAST_SYNC_SIZE
#define _SHMEM_REDUCE_SYNC_SIZE        SHMEM_REDUCE_SYNC_SIZE
#define _SHMEM_COLLECT_SYNC_SIZE       SHMEM_COLLECT_SYNC_SIZE
#define _SHMEM_ALLTOALL_SYNC_SIZE      SHMEM_ALLTOALL_SYNC_SIZE
#define _SHMEM_ALLTOALLS_SYNC_SIZE     SHMEM_ALLTOALLS_SYNC_SIZE
#define _SHMEM_REDUCE_MIN_WRKDATA_SIZE SHMEM_REDUCE_MIN_WRKDATA_SIZE

/* ---- Handles --------------------------------------------------------------------------------- */

/* One more than the number of a team in gshmem.h; it is never dereferenced. It is a pointer because
 * handles are pointers in all other libraries, and bindings of other languages store eight bytes
 * for one. */
typedef struct shmem_team *shmem_team_t;
#define SHMEM_TEAM_INVALID ((shmem_team_t)0)
#define SHMEM_TEAM_WORLD   ((shmem_team_t)1)
#define SHMEM_TEAM_SHARED  ((shmem_team_t)2)

typedef struct {
    int num_contexts;
} shmem_team_config_t;
#define SHMEM_TEAM_NUM_CONTEXTS 0x1L

typedef gshmem_ctx_t shmem_ctx_t;
#define SHMEM_CTX_INVALID    GSHMEM_CTX_INVALID
#define SHMEM_CTX_DEFAULT    GSHMEM_CTX_DEFAULT
#define SHMEM_CTX_SERIALIZED 0x1L
#define SHMEM_CTX_PRIVATE    0x2L
#define SHMEM_CTX_NOSTORE    0x4L

typedef struct {
    size_t total_ops; /* how many operations are expected at most */
} shmem_ctx_session_config_t;
#define SHMEM_CTX_SESSION_BATCH     0x1L
#define SHMEM_CTX_SESSION_SAME_AMO  0x2L
#define SHMEM_CTX_SESSION_TOTAL_OPS 0x1L

/* ---- Functions ------------------------------------------------------------------------------- */

#define SHMEM_API extern GSHMEM_API

#ifdef __cplusplus
extern "C" {
#endif

#include "shmem/functions.h"

#if defined __OPTIMIZE__ && !defined SHMEM_NO_INLINE
#include "shmem/reach.h"
#include "shmem/inline.h"
#endif

#ifdef __cplusplus
}
#endif

#if defined __cplusplus || (defined __STDC_VERSION__ && __STDC_VERSION__ >= 201112L)
#include "shmem/generic.h"
#endif

#include "gshmem_names_end.h"
#endif
