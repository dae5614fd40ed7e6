/* NVSHMEM's types and constants, and what its headers need of CUDA. */
#ifndef NVSHMEM_BASE_H
#define NVSHMEM_BASE_H

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "gshmem.h"

#if defined(__has_include)
#if __has_include(<cuda_runtime_api.h>)
#include <cuda_runtime_api.h>
#else
#include "gshmem/host_device/cuda_runtime_api.h" /* a host source of a program for the host
                                                    device */
#endif
/* For cuMemCreate and the other functions for symmetric buffers, and because programs rely on
 * it. */
#if __has_include(<cuda.h>)
#include <cuda.h>
#elif !__has_include(<cuda_runtime_api.h>)
#include "gshmem/host_device/cuda.h"
#endif
#if defined(__cplusplus) && !defined(GSHMEM_NO_HALF) && __has_include(<cuda_fp16.h>) && \
    __has_include(<cuda_bf16.h>)
#define NVSHMEM_HALF 1
#endif
#endif

#ifdef GSHMEM_CUDA
#include <cooperative_groups.h>
#ifdef NVSHMEM_HALF
#include "gshmem/device/half.h"
#endif
#define NVSHMEM_EITHER GSHMEM_EITHER /* for the host and for kernels */
#else
#ifdef NVSHMEM_HALF
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#endif
#define NVSHMEM_EITHER static inline
#endif

/* The OpenSHMEM version, and the release of NVSHMEM whose documentation this follows. */
#define NVSHMEM_MAJOR_VERSION        1
#define NVSHMEM_MINOR_VERSION        3
#define NVSHMEM_VENDOR_MAJOR_VERSION 3
#define NVSHMEM_VENDOR_MINOR_VERSION 4
#define NVSHMEM_VENDOR_PATCH_VERSION 0
#define NVSHMEM_VENDOR_STRING        "GSHMEM " GSHMEM_VERSION_TEXT
#define NVSHMEM_MAX_NAME_LEN         256

enum {
    NVSHMEM_CMP_EQ = GSHMEM_CMP_EQ,
    NVSHMEM_CMP_NE = GSHMEM_CMP_NE,
    NVSHMEM_CMP_GT = GSHMEM_CMP_GT,
    NVSHMEM_CMP_LE = GSHMEM_CMP_LE,
    NVSHMEM_CMP_LT = GSHMEM_CMP_LT,
    NVSHMEM_CMP_GE = GSHMEM_CMP_GE
};

enum { NVSHMEM_SIGNAL_SET = GSHMEM_SIGNAL_SET, NVSHMEM_SIGNAL_ADD = GSHMEM_SIGNAL_ADD };

enum {
    NVSHMEM_THREAD_SINGLE = GSHMEM_THREAD_SINGLE,
    NVSHMEM_THREAD_FUNNELED = GSHMEM_THREAD_FUNNELED,
    NVSHMEM_THREAD_SERIALIZED = GSHMEM_THREAD_SERIALIZED,
    NVSHMEM_THREAD_MULTIPLE = GSHMEM_THREAD_MULTIPLE
};

/* The results of functions that return an int: 0, or one of GSHMEM's statuses. */
enum {
    NVSHMEMX_SUCCESS = GSHMEM_OK,
    NVSHMEMX_ERROR_INVALID_VALUE = GSHMEM_ERR_ARGUMENT,
    NVSHMEMX_ERROR_OUT_OF_MEMORY = GSHMEM_ERR_MEMORY,
    NVSHMEMX_ERROR_NOT_SUPPORTED = GSHMEM_ERR_UNSUPPORTED,
    NVSHMEMX_ERROR_SYMMETRY = GSHMEM_ERR_NOT_SYMMETRIC,
    NVSHMEMX_ERROR_COLLECTIVE_LAUNCH_FAILED = GSHMEM_ERR_DEVICE,
    NVSHMEMX_ERROR_INTERNAL = GSHMEM_ERR_SYSTEM,
    NVSHMEMX_ERROR_GPU_NOT_SELECTED = 1000, /* which no function returns */
    NVSHMEMX_ERROR_SENTINEL = INT_MAX
};

/* How NVSHMEM's tests and examples say that something went wrong. */
#define NVSHMEMI_ERROR_PRINT(...)                                                                  \
    do {                                                                                           \
        fprintf(stderr, "%s:%s:%d: ", __FILE__, __func__, __LINE__);                               \
        fprintf(stderr, __VA_ARGS__);                                                              \
    } while (0)
#define NVSHMEMI_ERROR_EXIT(...)                                                                   \
    do {                                                                                           \
        NVSHMEMI_ERROR_PRINT(__VA_ARGS__);                                                         \
        exit(-1);                                                                                  \
    } while (0)

/* The name of a status above; for GSHMEM's other statuses, what gshmem_status_text says. */
static inline const char *nvshmemx_status_string(int status)
{
    switch (status) {
    case NVSHMEMX_SUCCESS:
        return "NVSHMEMX_SUCCESS";
    case NVSHMEMX_ERROR_INVALID_VALUE:
        return "NVSHMEMX_ERROR_INVALID_VALUE";
    case NVSHMEMX_ERROR_OUT_OF_MEMORY:
        return "NVSHMEMX_ERROR_OUT_OF_MEMORY";
    case NVSHMEMX_ERROR_NOT_SUPPORTED:
        return "NVSHMEMX_ERROR_NOT_SUPPORTED";
    case NVSHMEMX_ERROR_SYMMETRY:
        return "NVSHMEMX_ERROR_SYMMETRY";
    case NVSHMEMX_ERROR_COLLECTIVE_LAUNCH_FAILED:
        return "NVSHMEMX_ERROR_COLLECTIVE_LAUNCH_FAILED";
    case NVSHMEMX_ERROR_INTERNAL:
        return "NVSHMEMX_ERROR_INTERNAL";
    case NVSHMEMX_ERROR_GPU_NOT_SELECTED:
        return "NVSHMEMX_ERROR_GPU_NOT_SELECTED";
    default:
        return gshmem_status_text((gshmem_status_t)status);
    }
}

/* Regions: a PE's host code, or a block, says that many operations follow. */
typedef uint64_t nvshmemx_region_handle_t;
typedef enum {
    NVSHMEMX_REGION_HINT_NONE = 0,
    NVSHMEMX_REGION_HINT_BATCH_RMA = 1 /* they may be sent together */
} nvshmemx_region_hint_t;

typedef struct nvshmemx_region_attrs {
    uint32_t hints;
    char reserved[60];
} nvshmemx_region_attrs_t;
#define NVSHMEMX_REGION_ATTRS_INITIALIZER {NVSHMEMX_REGION_HINT_NONE, {0}}

/* How much shared memory nvshmemx_ask_smem is asked for. */
typedef enum {
    NVSHMEMX_SMEM_RECOMMENDED,
    NVSHMEMX_SMEM_MINIMUM,
    NVSHMEMX_SMEM_BARRIERS_ONLY
} nvshmemx_smem_amount_t;

typedef gshmem_team_t nvshmem_team_t;
#define NVSHMEM_TEAM_INVALID GSHMEM_TEAM_INVALID
#define NVSHMEM_TEAM_WORLD   GSHMEM_TEAM_WORLD
#define NVSHMEM_TEAM_SHARED  GSHMEM_TEAM_SHARED
#define NVSHMEMX_TEAM_NODE   GSHMEM_TEAM_HOST
#define NVSHMEMX_TEAM_SAME_MYPE_NODE GSHMEM_TEAM_SAME_INDEX
/* The PEs that may have a multicast address together. */
#define NVSHMEM_TEAM_MC_SHARED GSHMEM_TEAM_SHARED

/* The numbers of these teams, which are their handles here. */
enum {
    NVSHMEM_TEAM_WORLD_INDEX = GSHMEM_TEAM_WORLD,
    NVSHMEM_TEAM_SHARED_INDEX = GSHMEM_TEAM_SHARED,
    NVSHMEM_TEAM_NODE_INDEX = GSHMEM_TEAM_HOST,
    NVSHMEM_TEAM_SAME_MYPE_NODE_INDEX = GSHMEM_TEAM_SAME_INDEX,
    NVSHMEM_TEAM_MC_SHARED_INDEX = GSHMEM_TEAM_SHARED,
    NVSHMEM_TEAM_INDEX_MAX = INT_MAX
};

typedef gshmem_team_uniqueid_t nvshmemx_team_uniqueid_t;
typedef struct nvshmem_team_config {
    int version;
    int num_contexts;
    nvshmemx_team_uniqueid_t uniqueid; /* of nvshmemx_team_init */
    char padding[48];
} nvshmem_team_config_t;
#define NVSHMEM_TEAM_CONFIG_INITIALIZER       {(2 << 16) + 64, 0, 0, {0}}
#define NVSHMEM_TEAM_CONFIG_MASK_UNIQUEID     0x2L
#define NVSHMEM_TEAM_CONFIG_MASK_NUM_CONTEXTS GSHMEM_TEAM_NUM_CONTEXTS
#define NVSHMEM_TEAM_NUM_CONTEXTS             GSHMEM_TEAM_NUM_CONTEXTS

/* Queue pairs: a handle names a context, which has a channel of its own from kernels to the proxy.
 * Those of nvshmemx_qp_create are larger than DEFAULT. */
typedef int nvshmemx_qp_handle_t;
typedef enum nvshmemx_qp_handle_index {
    NVSHMEMX_QP_HOST = 0,             /* as DEFAULT */
    NVSHMEMX_QP_DEFAULT = 1,          /* what operations without a queue pair use */
    NVSHMEMX_QP_ANY = 0x7fffffff,     /* for an operation: as DEFAULT */
    NVSHMEMX_QP_ALL = NVSHMEMX_QP_ANY /* for qp_fence and qp_quiet: all there are */
} nvshmemx_qp_handle_index_t;

typedef enum nvshmem_pe_index {
    NVSHMEMX_PE_INVALID = -1,
    NVSHMEMX_PE_ANY = 0x7fffffff,
    NVSHMEMX_PE_ALL = NVSHMEMX_PE_ANY
} nvshmem_pe_index_t;

/* Waits until all work on the stream is done. */
static inline void nvshmem_synchronize(cudaStream_t stream)
{
    cudaError_t error = cudaStreamSynchronize(stream);

    gshmem_raise(gshmem_path_cuda("nvshmemx_g_on_stream", (int)error, cudaGetErrorString(error)));
}

typedef struct CUmod_st *CUmodule; /* as <cuda.h> has them */
typedef struct CUlib_st *CUlibrary;

#endif
