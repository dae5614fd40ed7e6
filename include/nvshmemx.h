/* NVSHMEM's extensions over GSHMEM: starting from what the program has, warps and blocks, streams,
 * launches. See nvshmem.h, which includes this. */
#ifndef NVSHMEMX_H
#define NVSHMEMX_H

#include "gshmem_names_begin.h"

#include "nvshmem.h"
#include "nvshmem/start.h"
#include "nvshmem/launch.h"

/* ---- Queries ------------------------------------------------------------------------------- */

NVSHMEM_EITHER void nvshmemx_vendor_get_version_info(int *major, int *minor, int *patch)
{
    *major = NVSHMEM_VENDOR_MAJOR_VERSION;
    *minor = NVSHMEM_VENDOR_MINOR_VERSION;
    *patch = NVSHMEM_VENDOR_PATCH_VERSION;
}

NVSHMEM_EITHER void *nvshmemx_mc_ptr(nvshmem_team_t team, const void *ptr)
{
    return gshmem_mc_ptr(team, ptr);
}

/* ---- Buffers of the program's own ------------------------------------------------------------ */

static inline void *nvshmemx_buffer_register_symmetric(void *buf_ptr, size_t size, int flags)
{
    return gshmem_buffer_register_symmetric(buf_ptr, size, flags);
}

/* NULL as the preferred address: any. */
static inline void *nvshmemx_buffer_register_symmetric_at_preferred_address(void *buf_ptr,
                                                                            size_t size,
                                                                            void *preferred_addr,
                                                                            int flags)
{
    return gshmem_buffer_register_symmetric_at(buf_ptr, size, preferred_addr, flags);
}

static inline int nvshmemx_buffer_unregister_symmetric(void *mmap_ptr, size_t size)
{
    return (int)gshmem_buffer_unregister_symmetric(mmap_ptr, size);
}

static inline int nvshmemx_buffer_register(void *addr, size_t length)
{
    return (int)gshmem_buffer_register(addr, length);
}

static inline int nvshmemx_buffer_unregister(void *addr)
{
    return (int)gshmem_buffer_unregister(addr);
}

static inline void nvshmemx_buffer_unregister_all(void)
{
    gshmem_raise(gshmem_buffer_unregister_all());
}

/* ---- Signals --------------------------------------------------------------------------------- */

NVSHMEM_EITHER void nvshmemx_signal_op(uint64_t *sig_addr, uint64_t signal, int sig_op, int pe)
{
    gshmem_raise(gshmem_signal_op(sig_addr, signal, sig_op, pe));
}

#include "nvshmem/counted.h"

/* ---- Order ----------------------------------------------------------------------------------- */

/* The sources of all puts of this PE may be changed when it returns. */
NVSHMEM_EITHER void nvshmemx_flush(void)
{
    gshmem_raise(gshmem_flush());
}

/* ---- By a warp or a block together ----------------------------------------------------------- */

#ifdef GSHMEM_CUDA
#define NVSHMEM_GROUP(ending, scope)                                                               \
    GSHMEM_KERNEL void nvshmemx_flush##ending(void)                                                \
    {                                                                                              \
        gshmem_kernel_raise_once<scope>(gshmem_flush##ending());                                   \
    }                                                                                              \
    GSHMEM_KERNEL int nvshmemx_barrier##ending(nvshmem_team_t team)                                \
    {                                                                                              \
        return (int)gshmem_barrier##ending(team);                                                  \
    }                                                                                              \
    GSHMEM_KERNEL void nvshmemx_barrier_all##ending(void)                                          \
    {                                                                                              \
        gshmem_kernel_raise_once<scope>(gshmem_barrier_all##ending());                             \
    }                                                                                              \
    GSHMEM_KERNEL int nvshmemx_team_sync##ending(nvshmem_team_t team)                              \
    {                                                                                              \
        return (int)gshmem_team_sync##ending(team);                                                \
    }                                                                                              \
    GSHMEM_KERNEL int nvshmemx_sync##ending(nvshmem_team_t team)                                   \
    {                                                                                              \
        return (int)gshmem_team_sync##ending(team);                                                \
    }                                                                                              \
    GSHMEM_KERNEL void nvshmemx_sync_all##ending(void)                                             \
    {                                                                                              \
        gshmem_kernel_raise_once<scope>(gshmem_sync_all##ending());                                \
    }                                                                                              \
    GSHMEM_KERNEL int nvshmemx_broadcastmem##ending(nvshmem_team_t team, void *dest,               \
                                                    const void *source, size_t nelems,             \
                                                    int PE_root)                                   \
    {                                                                                              \
        return (int)gshmem_broadcastmem##ending(team, dest, source, nelems, PE_root);              \
    }                                                                                              \
    GSHMEM_KERNEL int nvshmemx_fcollectmem##ending(nvshmem_team_t team, void *dest,                \
                                                   const void *source, size_t nelems)              \
    {                                                                                              \
        return (int)gshmem_fcollectmem##ending(team, dest, source, nelems);                        \
    }                                                                                              \
    GSHMEM_KERNEL int nvshmemx_alltoallmem##ending(nvshmem_team_t team, void *dest,                \
                                                   const void *source, size_t nelems)              \
    {                                                                                              \
        return (int)gshmem_alltoallmem##ending(team, dest, source, nelems);                        \
    }

NVSHMEM_GROUP(_warp, GSHMEM_SCOPE_WARP)
NVSHMEM_GROUP(_block, GSHMEM_SCOPE_BLOCK)
#undef NVSHMEM_GROUP
#endif

/* ---- On streams ------------------------------------------------------------------------------ */

static inline void nvshmemx_signal_op_on_stream(uint64_t *sig_addr, uint64_t signal, int sig_op,
                                                int pe, cudaStream_t stream)
{
    gshmem_raise(gshmem_signal_op_on_stream(sig_addr, signal, sig_op, pe, stream));
}

static inline void nvshmemx_signal_wait_until_on_stream(uint64_t *sig_addr, int cmp,
                                                        uint64_t cmp_value, cudaStream_t stream)
{
    gshmem_raise(gshmem_signal_wait_until_on_stream(sig_addr, cmp, cmp_value, stream));
}

static inline void nvshmemx_quiet_on_stream(cudaStream_t stream)
{
    gshmem_raise(gshmem_quiet_on_stream(stream));
}

static inline void nvshmemx_flush_on_stream(cudaStream_t stream)
{
    gshmem_raise(gshmem_flush_on_stream(stream));
}

static inline int nvshmemx_barrier_on_stream(nvshmem_team_t team, cudaStream_t stream)
{
    return (int)gshmem_barrier_on_stream(team, stream);
}

static inline void nvshmemx_barrier_all_on_stream(cudaStream_t stream)
{
    gshmem_raise(gshmem_barrier_all_on_stream(stream));
}

static inline int nvshmemx_team_sync_on_stream(nvshmem_team_t team, cudaStream_t stream)
{
    return (int)gshmem_team_sync_on_stream(team, stream);
}

static inline int nvshmemx_sync_on_stream(nvshmem_team_t team, cudaStream_t stream)
{
    return (int)gshmem_team_sync_on_stream(team, stream);
}

static inline void nvshmemx_sync_all_on_stream(cudaStream_t stream)
{
    gshmem_raise(gshmem_sync_all_on_stream(stream));
}

static inline int nvshmemx_broadcastmem_on_stream(nvshmem_team_t team, void *dest,
                                                  const void *source, size_t nelems, int PE_root,
                                                  cudaStream_t stream)
{
    return (int)gshmem_broadcastmem_on_stream(team, dest, source, nelems, PE_root, stream);
}

static inline int nvshmemx_fcollectmem_on_stream(nvshmem_team_t team, void *dest,
                                                 const void *source, size_t nelems,
                                                 cudaStream_t stream)
{
    return (int)gshmem_fcollectmem_on_stream(team, dest, source, nelems, stream);
}

static inline int nvshmemx_alltoallmem_on_stream(nvshmem_team_t team, void *dest,
                                                 const void *source, size_t nelems,
                                                 cudaStream_t stream)
{
    return (int)gshmem_alltoallmem_on_stream(team, dest, source, nelems, stream);
}

/* ---- Shared memory --------------------------------------------------------------------------- */

/* Operations here use no shared memory of the program: none is asked for, and none is taken. */
NVSHMEM_EITHER int nvshmemx_ask_smem(nvshmemx_smem_amount_t flag)
{
    (void)flag;
    return 0;
}

#ifdef GSHMEM_CUDA
GSHMEM_KERNEL void nvshmemx_give_smem(void *smem, size_t size)
{
    (void)smem;
    (void)size;
}

GSHMEM_KERNEL void nvshmemx_release_smem(void)
{
}
#endif

/* ---- Queue pairs ----------------------------------------------------------------------------- */

/* Makes num_qps queue pairs, which end with the job. Operations in kernels on one of them neither
 * wait for nor delay those on another, and a failure is reported by the quiet of its own queue
 * pair. Those to one PE of another node share its connection. *out_qp_array becomes an array of
 * handles, which the program may free after nvshmem_finalize. NVSHMEM requires that all PEs make
 * this call; here it is local. */
static inline int nvshmemx_qp_create(int num_qps, nvshmemx_qp_handle_t **out_qp_array)
{
    return (int)gshmem_path_queue_pairs(num_qps, out_qp_array);
}

#ifdef GSHMEM_CUDA
#include "nvshmem/device/group.h"
#include "nvshmem/device/queue_pair.h"
#include "nvshmem/device/region.h"
#include "nvshmem/device/tile.h"
#include "nvshmem/qp.h" /* generated */
#endif

/* ---- Regions --------------------------------------------------------------------------------- */

/* Until the stop, puts, gets and atomics of the host may wait for more of them. The stop sends what
 * has not been sent, and so does a call that waits. A PE has one region of the host at a time;
 * attrs may be NULL. */
static inline int nvshmemx_region_start(nvshmemx_region_handle_t *handle,
                                        const nvshmemx_region_attrs_t *attrs)
{
    return (int)gshmem_path_region_start(
        attrs ? attrs->hints : (uint32_t)NVSHMEMX_REGION_HINT_NONE, handle);
}

static inline int nvshmemx_region_stop(nvshmemx_region_handle_t handle)
{
    return (int)gshmem_path_region_stop(handle);
}

/* *active: whether a region with these hints runs, of the host or, in a kernel, of the block. */
NVSHMEM_EITHER int nvshmemx_region_is_active(uint32_t hints, int *active)
{
#ifdef GSHMEM_CUDA
    GSHMEM_RETURN(nvshmem_region_is_active_here(hints, active),
                  (int)gshmem_path_region_is_active(hints, active));
#else
    return (int)gshmem_path_region_is_active(hints, active);
#endif
}

#include "nvshmem/missing.h"

#include "gshmem_names_end.h"

#endif
