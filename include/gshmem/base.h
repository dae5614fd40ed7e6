/* The base of all other headers of GSHMEM: visibility, constants and handles. */
#ifndef GSHMEM_BASE_H
#define GSHMEM_BASE_H

#include <stddef.h>
#include <stdint.h>

#include "gshmem/status.h"

#define GSHMEM_MAJOR_VERSION 0
#define GSHMEM_MINOR_VERSION 1
#define GSHMEM_PATCH_VERSION 0
#define GSHMEM_VERSION_TEXT  "0.1.0"

/* Inline code reads structures of the library. This number changes whenever a new version would
 * make code that was compiled before read them wrongly. Each object that includes this header
 * carries the number and the version in an ELF note, and gshmem_init refuses a program or a library
 * of another layout. */
#define GSHMEM_LAYOUT 1
#if defined(__ELF__) && defined(__GNUC__) && !defined(__NVCC__)
#define GSHMEM_NOTE(layout, major, minor, patch)                                                   \
    __asm__(".pushsection .note.gshmem,\"a\",%note\n.balign 4\n.long 7, 16, 1\n"                   \
            ".asciz \"GSHMEM\"\n.balign 4\n"                                                       \
            ".long " #layout ", " #major ", " #minor ", " #patch "\n.popsection\n")
#define GSHMEM_NOTE_OF(layout, major, minor, patch) GSHMEM_NOTE(layout, major, minor, patch)
GSHMEM_NOTE_OF(GSHMEM_LAYOUT, GSHMEM_MAJOR_VERSION, GSHMEM_MINOR_VERSION, GSHMEM_PATCH_VERSION);
#endif

/* CUDA sources, compiled by nvcc or, for the host device, by the C++ compiler. */
#if defined(__CUDACC__) && defined(__cplusplus)
#define GSHMEM_CUDA 1
#endif

/* Prototypes of functions that kernels may call too stand between these two. In CUDA sources they
 * put the host's prototypes into a namespace of their own, and gshmem_device.h defines functions of
 * the same names that work on the host and in kernels. */
#ifdef GSHMEM_CUDA
#define GSHMEM_KERNELS_TOO_BEGIN namespace gshmem_on_host {
#define GSHMEM_KERNELS_TOO_END   }
#else
#define GSHMEM_KERNELS_TOO_BEGIN
#define GSHMEM_KERNELS_TOO_END
#endif

#define GSHMEM_API           __attribute__((visibility("default")))
#define GSHMEM_LIKELY(x)     __builtin_expect(!!(x), 1)
#define GSHMEM_UNLIKELY(x)   __builtin_expect(!!(x), 0)

/* Teams are small numbers. Therefore initialisers can use the constants, and the library notices a
 * team that was destroyed. */
typedef int32_t gshmem_team_t;
#define GSHMEM_TEAM_INVALID ((gshmem_team_t)-1)
#define GSHMEM_TEAM_WORLD   ((gshmem_team_t)0) /* all PEs */
#define GSHMEM_TEAM_SHARED  ((gshmem_team_t)1) /* the PEs of this node */
#define GSHMEM_TEAM_HOST    ((gshmem_team_t)2) /* the same PEs */
/* The PEs that have this PE's number within their nodes, one of each node that has so many. */
#define GSHMEM_TEAM_SAME_INDEX ((gshmem_team_t)3)

typedef struct gshmem_ctx *gshmem_ctx_t;
#define GSHMEM_CTX_INVALID ((gshmem_ctx_t)0)
#define GSHMEM_CTX_DEFAULT ((gshmem_ctx_t)1)

/* Options of gshmem_ctx_create: a bitwise OR of these, or 0. */
#define GSHMEM_CTX_SERIALIZED 0x1 /* used by one thread at a time */
#define GSHMEM_CTX_PRIVATE    0x2 /* used by the creating thread alone */
#define GSHMEM_CTX_NOSTORE    0x4 /* its quiet and fence need not order stores to mapped peers */

enum gshmem_thread_level {
    GSHMEM_THREAD_SINGLE,
    GSHMEM_THREAD_FUNNELED,
    GSHMEM_THREAD_SERIALIZED,
    GSHMEM_THREAD_MULTIPLE
};

enum gshmem_cmp { /* the numbers of NVSHMEM and of most OpenSHMEM libraries */
    GSHMEM_CMP_EQ,
    GSHMEM_CMP_NE,
    GSHMEM_CMP_GT,
    GSHMEM_CMP_LE,
    GSHMEM_CMP_LT,
    GSHMEM_CMP_GE
};

enum gshmem_signal_op {
    GSHMEM_SIGNAL_SET = 1,
    GSHMEM_SIGNAL_ADD
};

/* Hints of gshmem_malloc_with_hints: a bitwise OR of these, or 0. */
#define GSHMEM_MALLOC_ATOMICS_REMOTE 0x1
#define GSHMEM_MALLOC_SIGNAL_REMOTE  0x2 /* accepted, without effect */
#define GSHMEM_MALLOC_HOST           0x4 /* in host memory, also where the heap is GPU memory */

#endif
