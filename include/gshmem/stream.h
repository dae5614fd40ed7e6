/* Operations in the order of a CUDA stream. Each function enqueues one operation on the stream and
 * returns. The operation begins when the work that was enqueued before it is done. The operation
 * ends when the function without _on_stream would return. Work that is enqueued later begins after
 * that.
 *
 * The functions return GSHMEM_OK when the operation is enqueued, or the reason why it could not be.
 * A failure of the operation itself is handed to the error policy when it runs. Memory to which
 * arguments point must exist until the operation has ended; arguments that are values are copied by
 * the call.
 *
 * All PEs of a team must enqueue its collectives in the same order. The collectives run in this
 * order, also on different streams. Calls without _on_stream, on the host and in kernels, do not
 * wait for operations on streams (cudaStreamSynchronize does). gshmem_finalize waits for all of
 * them.
 *
 * While a stream is captured, the operations become part of the graph, and run at each launch of
 * the graph.
 *
 * On a GPU, puts and gets of bytes are copies on the stream. All other operations are kernels, and
 * need their arguments in GPU memory or in pinned memory (cudaHostAlloc, gshmem_buffer_register).
 *
 * An operation that waits for another PE delays only its own stream. The typed names
 * (gshmem_TYPE_put_on_stream, …) are in gshmem/typed.h. */
#ifndef GSHMEM_STREAM_H
#define GSHMEM_STREAM_H

#include "gshmem_names_begin.h"

#include "gshmem/base.h"
#include "gshmem/type.h"

#ifdef __cplusplus
extern "C" {
#endif

/* CUDA's cudaStream_t; NULL is the default stream. */
typedef struct CUstream_st *gshmem_stream_t;

/* ---- Put and get ----------------------------------------------------------------------------- */

/* Like the calls without _on_stream. The put or get is complete before the next work on the stream
 * begins. */
GSHMEM_API GSHMEM_NODISCARD gshmem_status_t gshmem_putmem_on_stream(void *dest, const void *source,
                                                                    size_t bytes, int pe,
                                                                    gshmem_stream_t stream);
GSHMEM_API GSHMEM_NODISCARD gshmem_status_t gshmem_getmem_on_stream(void *dest, const void *source,
                                                                    size_t bytes, int pe,
                                                                    gshmem_stream_t stream);
/* Complete after gshmem_quiet_on_stream. */
GSHMEM_API GSHMEM_NODISCARD gshmem_status_t gshmem_putmem_nbi_on_stream(void *dest,
                                                                        const void *source,
                                                                        size_t bytes, int pe,
                                                                        gshmem_stream_t stream);
GSHMEM_API GSHMEM_NODISCARD gshmem_status_t gshmem_getmem_nbi_on_stream(void *dest,
                                                                        const void *source,
                                                                        size_t bytes, int pe,
                                                                        gshmem_stream_t stream);
GSHMEM_API GSHMEM_NODISCARD gshmem_status_t gshmem_iputmem_on_stream(void *dest, const void *source,
                                                                     ptrdiff_t dst, ptrdiff_t sst,
                                                                     size_t element, size_t n,
                                                                     int pe,
                                                                     gshmem_stream_t stream);
GSHMEM_API GSHMEM_NODISCARD gshmem_status_t gshmem_igetmem_on_stream(void *dest, const void *source,
                                                                     ptrdiff_t dst, ptrdiff_t sst,
                                                                     size_t element, size_t n,
                                                                     int pe,
                                                                     gshmem_stream_t stream);

/* A put of one value of up to 16 bytes, copied by the call. The typed p_on_stream are wrappers of
 * it. */
GSHMEM_API gshmem_status_t gshmem_path_p_on_stream(void *dest, const void *value, size_t bytes,
                                                   int pe, gshmem_stream_t stream);

/* ---- Signals and waits ----------------------------------------------------------------------- */

/* A put, then an update of the signal. The target does not see the new signal before the data. nbi:
 * complete after gshmem_quiet_on_stream. */
GSHMEM_API GSHMEM_NODISCARD gshmem_status_t
gshmem_putmem_signal_on_stream(void *dest, const void *source, size_t bytes, uint64_t *sig_addr,
                               uint64_t signal, int signal_op, int pe, gshmem_stream_t stream);
GSHMEM_API GSHMEM_NODISCARD gshmem_status_t
gshmem_putmem_signal_nbi_on_stream(void *dest, const void *source, size_t bytes, uint64_t *sig_addr,
                                   uint64_t signal, int signal_op, int pe, gshmem_stream_t stream);
/* signal_op: GSHMEM_SIGNAL_SET or GSHMEM_SIGNAL_ADD. */
GSHMEM_API GSHMEM_NODISCARD gshmem_status_t gshmem_signal_op_on_stream(uint64_t *sig_addr,
                                                                       uint64_t signal,
                                                                       int signal_op, int pe,
                                                                       gshmem_stream_t stream);
GSHMEM_API GSHMEM_NODISCARD gshmem_status_t gshmem_signal_wait_until_on_stream(
    uint64_t *sig_addr, int cmp, uint64_t value, gshmem_stream_t stream);

/* The typed wait_until_on_stream, wait_until_all_on_stream and wait_until_all_vector_on_stream are
 * wrappers of these. If vector is 1, values is an array that must exist until the operation has
 * ended. If vector is 0, it is one value, which the call copies. */
GSHMEM_API gshmem_status_t gshmem_path_wait_one_on_stream(enum gshmem_type type, const void *ivar,
                                                          int cmp, uint64_t value,
                                                          gshmem_stream_t stream);
GSHMEM_API gshmem_status_t gshmem_path_wait_all_on_stream(enum gshmem_type type, const void *ivars,
                                                          size_t nelems, const int *status, int cmp,
                                                          const void *values, int vector,
                                                          gshmem_stream_t stream);

/* ---- Order and collectives ------------------------------------------------------------------- */

/* quiet: the next work on the stream begins when all operations of this PE on the default context
 * are complete. flush: it begins when the sources of their puts may be reused. sync and barrier: it
 * begins when all PEs of the team have arrived. */
GSHMEM_API GSHMEM_NODISCARD gshmem_status_t gshmem_quiet_on_stream(gshmem_stream_t stream);
GSHMEM_API GSHMEM_NODISCARD gshmem_status_t gshmem_flush_on_stream(gshmem_stream_t stream);
GSHMEM_API GSHMEM_NODISCARD gshmem_status_t gshmem_team_sync_on_stream(gshmem_team_t team,
                                                                       gshmem_stream_t stream);
GSHMEM_API GSHMEM_NODISCARD gshmem_status_t gshmem_sync_all_on_stream(gshmem_stream_t stream);
GSHMEM_API GSHMEM_NODISCARD gshmem_status_t gshmem_barrier_on_stream(gshmem_team_t team,
                                                                     gshmem_stream_t stream);
GSHMEM_API GSHMEM_NODISCARD gshmem_status_t gshmem_barrier_all_on_stream(gshmem_stream_t stream);

/* Like the collectives without _on_stream. */
GSHMEM_API GSHMEM_NODISCARD gshmem_status_t gshmem_broadcastmem_on_stream(gshmem_team_t team,
                                                                          void *dest,
                                                                          const void *source,
                                                                          size_t bytes, int root,
                                                                          gshmem_stream_t stream);
GSHMEM_API GSHMEM_NODISCARD gshmem_status_t gshmem_fcollectmem_on_stream(
    gshmem_team_t team, void *dest, const void *source, size_t bytes, gshmem_stream_t stream);
GSHMEM_API GSHMEM_NODISCARD gshmem_status_t gshmem_alltoallmem_on_stream(
    gshmem_team_t team, void *dest, const void *source, size_t bytes, gshmem_stream_t stream);
GSHMEM_API GSHMEM_NODISCARD gshmem_status_t gshmem_reduce_on_stream(gshmem_team_t team,
                                                                    enum gshmem_type type,
                                                                    enum gshmem_op op, void *dest,
                                                                    const void *source, size_t n,
                                                                    gshmem_stream_t stream);
GSHMEM_API GSHMEM_NODISCARD gshmem_status_t
gshmem_reducescatter_on_stream(gshmem_team_t team, enum gshmem_type type, enum gshmem_op op,
                               void *dest, const void *source, size_t n, gshmem_stream_t stream);

/* collect: the number of bytes may differ between PEs. alltoalls: blocks with gaps. inscan, exscan:
 * prefix sums over the PEs. */
GSHMEM_API GSHMEM_NODISCARD gshmem_status_t gshmem_collectmem_on_stream(
    gshmem_team_t team, void *dest, const void *source, size_t bytes, gshmem_stream_t stream);
GSHMEM_API GSHMEM_NODISCARD gshmem_status_t
gshmem_alltoallsmem_on_stream(gshmem_team_t team, void *dest, const void *source, ptrdiff_t dst,
                              ptrdiff_t sst, size_t element, size_t n, gshmem_stream_t stream);
GSHMEM_API GSHMEM_NODISCARD gshmem_status_t gshmem_inscan_on_stream(gshmem_team_t team,
                                                                    enum gshmem_type type,
                                                                    void *dest, const void *source,
                                                                    size_t n,
                                                                    gshmem_stream_t stream);
GSHMEM_API GSHMEM_NODISCARD gshmem_status_t gshmem_exscan_on_stream(gshmem_team_t team,
                                                                    enum gshmem_type type,
                                                                    void *dest, const void *source,
                                                                    size_t n,
                                                                    gshmem_stream_t stream);

/* ---- Modules that the program loads by the driver --------------------------------------------
 *
 * Kernels in executables and shared libraries find the job by themselves. Kernels of a CUmodule
 * (cuModuleLoad…) or CUlibrary (cuLibraryLoad…) find it between the calls of init and finalize
 * below. Their source includes gshmem_device.h and is compiled without -rdc. Call finalize before
 * the module is unloaded; the end of the job does the same. The host device has modules of PTX, and
 * no libraries: for these the calls fail with GSHMEM_ERR_UNSUPPORTED. */
GSHMEM_API GSHMEM_NODISCARD gshmem_status_t gshmem_cumodule_init(void *module);
GSHMEM_API GSHMEM_NODISCARD gshmem_status_t gshmem_cumodule_finalize(void *module);
GSHMEM_API GSHMEM_NODISCARD gshmem_status_t gshmem_culibrary_init(void *library);
GSHMEM_API GSHMEM_NODISCARD gshmem_status_t gshmem_culibrary_finalize(void *library);

/* ---- Not for programs to call ---------------------------------------------------------------- */

/* The status of a CUDA error, and its line. */
GSHMEM_API gshmem_status_t gshmem_path_cuda(const char *call, int error, const char *text);
/* The error of a launch with more blocks than fit at once, or on a device without cooperative
 * launches. */
GSHMEM_API gshmem_status_t gshmem_path_too_many_blocks(unsigned long long blocks, int fit);
GSHMEM_API gshmem_status_t gshmem_path_not_cooperative(int device);

#ifdef __cplusplus
}
#endif

#include "gshmem_names_end.h"
#endif
