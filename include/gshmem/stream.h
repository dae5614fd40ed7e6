/* Operations in the order of a CUDA stream: each function puts one on the stream and returns. The
 * operation begins when all work before it on the stream is done. Work that is put on the stream
 * later waits until the operation has reached the state in which the function without _on_stream
 * would return.
 *
 * The functions return GSHMEM_OK when the operation is on the stream, or the reason why it could
 * not be put there. A failure while the operation runs is handed to the error policy. Memory that
 * the arguments name must exist until then; values are copied by the call. All PEs of a team put
 * its collectives on streams in the same order, and they run in this order, on whichever streams
 * they are. Calls of the host's own and of kernels do not wait for what is on another stream
 * (cudaStreamSynchronize does). gshmem_finalize waits for all operations on streams.
 *
 * While a stream is captured, the operations become part of the graph, and run at each of its
 * launches.
 *
 * On a GPU, puts and gets of bytes are copies on the stream. All other operations are kernels,
 * which access their arguments where these are: in GPU memory, or in pinned memory (cudaHostAlloc,
 * gshmem_buffer_register).
 *
 * Streams of one PE wait for other PEs without delaying each other. Typed names,
 * gshmem_TYPE_put_on_stream and so on, are in gshmem/typed.h. */
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

/* Like the call without _on_stream, when the stream comes to it: complete when the stream goes
 * on. */
GSHMEM_API gshmem_status_t gshmem_putmem_on_stream(void *dest, const void *source, size_t bytes,
                                                   int pe, gshmem_stream_t stream);
GSHMEM_API gshmem_status_t gshmem_getmem_on_stream(void *dest, const void *source, size_t bytes,
                                                   int pe, gshmem_stream_t stream);
/* Complete after gshmem_quiet_on_stream. */
GSHMEM_API gshmem_status_t gshmem_putmem_nbi_on_stream(void *dest, const void *source, size_t bytes,
                                                       int pe, gshmem_stream_t stream);
GSHMEM_API gshmem_status_t gshmem_getmem_nbi_on_stream(void *dest, const void *source, size_t bytes,
                                                       int pe, gshmem_stream_t stream);
GSHMEM_API gshmem_status_t gshmem_iputmem_on_stream(void *dest, const void *source, ptrdiff_t dst,
                                                    ptrdiff_t sst, size_t element, size_t n, int pe,
                                                    gshmem_stream_t stream);
GSHMEM_API gshmem_status_t gshmem_igetmem_on_stream(void *dest, const void *source, ptrdiff_t dst,
                                                    ptrdiff_t sst, size_t element, size_t n, int pe,
                                                    gshmem_stream_t stream);

/* A put of one value of up to 16 bytes, copied by the call. The typed p_on_stream are wrappers of
 * it. */
GSHMEM_API gshmem_status_t gshmem_path_p_on_stream(void *dest, const void *value, size_t bytes,
                                                   int pe, gshmem_stream_t stream);

/* ---- Signals and waits ----------------------------------------------------------------------- */

/* A put, then the signal, which the target does not see before the data. nbi: complete after
 * gshmem_quiet_on_stream. */
GSHMEM_API gshmem_status_t gshmem_putmem_signal_on_stream(void *dest, const void *source,
                                                          size_t bytes, uint64_t *sig_addr,
                                                          uint64_t signal, int signal_op, int pe,
                                                          gshmem_stream_t stream);
GSHMEM_API gshmem_status_t gshmem_putmem_signal_nbi_on_stream(void *dest, const void *source,
                                                              size_t bytes, uint64_t *sig_addr,
                                                              uint64_t signal, int signal_op,
                                                              int pe, gshmem_stream_t stream);
/* signal_op: GSHMEM_SIGNAL_SET or GSHMEM_SIGNAL_ADD. */
GSHMEM_API gshmem_status_t gshmem_signal_op_on_stream(uint64_t *sig_addr, uint64_t signal,
                                                      int signal_op, int pe,
                                                      gshmem_stream_t stream);
GSHMEM_API gshmem_status_t gshmem_signal_wait_until_on_stream(uint64_t *sig_addr, int cmp,
                                                              uint64_t value,
                                                              gshmem_stream_t stream);

/* The typed wait_until_on_stream, wait_until_all_on_stream and wait_until_all_vector_on_stream are
 * wrappers of these. values: an array, which must continue to exist, if vector is 1; one value,
 * copied by the call, if it is 0. */
GSHMEM_API gshmem_status_t gshmem_path_wait_one_on_stream(enum gshmem_type type, const void *ivar,
                                                          int cmp, uint64_t value,
                                                          gshmem_stream_t stream);
GSHMEM_API gshmem_status_t gshmem_path_wait_all_on_stream(enum gshmem_type type, const void *ivars,
                                                          size_t nelems, const int *status, int cmp,
                                                          const void *values, int vector,
                                                          gshmem_stream_t stream);

/* ---- Order and collectives ------------------------------------------------------------------- */

/* The stream goes on when this PE's operations are complete, or when all members have come. */
GSHMEM_API gshmem_status_t gshmem_quiet_on_stream(gshmem_stream_t stream);
GSHMEM_API gshmem_status_t gshmem_team_sync_on_stream(gshmem_team_t team, gshmem_stream_t stream);
GSHMEM_API gshmem_status_t gshmem_sync_all_on_stream(gshmem_stream_t stream);
GSHMEM_API gshmem_status_t gshmem_barrier_on_stream(gshmem_team_t team, gshmem_stream_t stream);
GSHMEM_API gshmem_status_t gshmem_barrier_all_on_stream(gshmem_stream_t stream);

/* Like the collectives without _on_stream. All members make the same calls on one stream each,
 * in the same order. */
GSHMEM_API gshmem_status_t gshmem_broadcastmem_on_stream(gshmem_team_t team, void *dest,
                                                         const void *source, size_t bytes, int root,
                                                         gshmem_stream_t stream);
GSHMEM_API gshmem_status_t gshmem_fcollectmem_on_stream(gshmem_team_t team, void *dest,
                                                        const void *source, size_t bytes,
                                                        gshmem_stream_t stream);
GSHMEM_API gshmem_status_t gshmem_alltoallmem_on_stream(gshmem_team_t team, void *dest,
                                                        const void *source, size_t bytes,
                                                        gshmem_stream_t stream);
GSHMEM_API gshmem_status_t gshmem_reduce_on_stream(gshmem_team_t team, enum gshmem_type type,
                                                   enum gshmem_op op, void *dest,
                                                   const void *source, size_t n,
                                                   gshmem_stream_t stream);
GSHMEM_API gshmem_status_t gshmem_reducescatter_on_stream(gshmem_team_t team, enum gshmem_type type,
                                                          enum gshmem_op op, void *dest,
                                                          const void *source, size_t n,
                                                          gshmem_stream_t stream);

/* The same, where members may bring different amounts, blocks with gaps, or results by prefix. */
GSHMEM_API gshmem_status_t gshmem_collectmem_on_stream(gshmem_team_t team, void *dest,
                                                       const void *source, size_t bytes,
                                                       gshmem_stream_t stream);
GSHMEM_API gshmem_status_t gshmem_alltoallsmem_on_stream(gshmem_team_t team, void *dest,
                                                         const void *source, ptrdiff_t dst,
                                                         ptrdiff_t sst, size_t element, size_t n,
                                                         gshmem_stream_t stream);
GSHMEM_API gshmem_status_t gshmem_inscan_on_stream(gshmem_team_t team, enum gshmem_type type,
                                                   void *dest, const void *source, size_t n,
                                                   gshmem_stream_t stream);
GSHMEM_API gshmem_status_t gshmem_exscan_on_stream(gshmem_team_t team, enum gshmem_type type,
                                                   void *dest, const void *source, size_t n,
                                                   gshmem_stream_t stream);

/* ---- Modules that the program loads by the driver --------------------------------------------
 *
 * Kernels in executables and shared libraries find the job by themselves. Kernels of a CUmodule
 * (cuModuleLoad…) or CUlibrary (cuLibraryLoad…), which include gshmem_device.h and are compiled
 * without -rdc, find it from init on, until finalize (which comes before the module is unloaded) or
 * the job's end. */
GSHMEM_API gshmem_status_t gshmem_cumodule_init(void *module);
GSHMEM_API gshmem_status_t gshmem_cumodule_finalize(void *module);
GSHMEM_API gshmem_status_t gshmem_culibrary_init(void *library);
GSHMEM_API gshmem_status_t gshmem_culibrary_finalize(void *library);

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
