/* GSHMEM, host API: one-sided communication between the processing elements (PEs) of a job.
 *
 * Names, arguments and their order are OpenSHMEM's, with the prefix gshmem_ instead of shmem_.
 * Unlike OpenSHMEM's, most functions return a status (gshmem/status.h): GSHMEM_OK, or the reason of
 * a failure. A function that fails has logged one line with the details, which gshmem_last_error
 * returns.
 *
 * Some functions return a value instead. Where their comment says so, NULL or -1 stands for a
 * failure (gshmem_malloc, gshmem_ptr, gshmem_test_lock). All others (g, fetching atomics,
 * gshmem_signal_wait_until) hand the failure to the error policy: GSHMEM_ON_ERROR=abort|return, or
 * gshmem_set_error_handler.
 *
 * Memory-sized operations are here and in gshmem/rma.h. The typed names (gshmem_long_put,
 * gshmem_int_sum_reduce, gshmem_uint64_wait_until, …) are in gshmem/typed.h, which is generated
 * from one table. Each is a thin wrapper of a function that is documented here. */
#ifndef GSHMEM_H
#define GSHMEM_H

#include "gshmem_names_begin.h"

#include "gshmem/base.h"
#include "gshmem/type.h"
#include "gshmem/context.h"
#include "gshmem/rma.h"
#include "gshmem/atomic.h"
#include "gshmem/indexed.h"
#include "gshmem/stream.h"
#include "gshmem/stats.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Setup --------------------------------------------------------------------------------- */

/* Joins the job: finds the launcher (PMIx, PMI, gshmemrun), makes the symmetric heap and maps the
 * memory of the other PEs of this node. A process without a launcher becomes a job of one PE.
 * Collective over the job. Calls nest: only the first gshmem_init and the last gshmem_finalize act.
 * After the last finalize, gshmem_init works again. */
GSHMEM_API GSHMEM_NODISCARD gshmem_status_t gshmem_init(void);

/* Like gshmem_init; *provided is set to the thread level in force, the one that the first init of
 * the job asked for. */
GSHMEM_API GSHMEM_NODISCARD gshmem_status_t gshmem_init_thread(int requested, int *provided);

/* An opaque id that names a job before it starts. One PE makes it, the program carries its bytes to
 * all others by any means, and every PE passes it to gshmem_init_attr. An id is good for one
 * job. */
typedef struct gshmem_uniqueid {
    uint32_t version;
    unsigned char opaque[124];
} gshmem_uniqueid_t;

/* Makes a new id in *uid. Any process can call it, before gshmem_init too. */
GSHMEM_API GSHMEM_NODISCARD gshmem_status_t gshmem_get_uniqueid(gshmem_uniqueid_t *uid);

/* How to start if no launcher is to be used: from an MPI communicator or a unique id. Set the
 * struct to zero, then fill in fields. */
typedef struct {
    int thread_level;             /* GSHMEM_THREAD_… */
    const void *mpi_comm;         /* points to an MPI_Comm: its ranks become the PEs; else NULL */
    const gshmem_uniqueid_t *uid; /* with pe and n_pes; else NULL */
    int pe;
    int n_pes;
} gshmem_init_attr_t;

/* Like gshmem_init, started as attr says. */
GSHMEM_API GSHMEM_NODISCARD gshmem_status_t gshmem_init_attr(const gshmem_init_attr_t *attr);

/* Completes this PE's outstanding operations, waits for the other PEs, and frees everything.
 * Collective. exit(0) and a return from main do the same. If a PE has died, finalize does not wait
 * for it: it frees everything and returns GSHMEM_ERR_PEER_DEAD (a process that ends by exit(0) or a
 * return from main then has the exit status 1). It waits for kernels that this process has
 * launched, which exit and a return from main do not.
 *
 * A PE leaves the job when it begins gshmem_finalize, or ends by exit(0) or a return from main.
 * Three kinds of call still need a PE that has left: a collective, the wait for a lock that the PE
 * held, and the wait for an update (wait_until) if all other PEs have left and the waiting PE has
 * neither another thread nor kernels. Such a call ends the job with a line that says so. With
 * GSHMEM_ON_ERROR=return or an error handler it fails with GSHMEM_ERR_PEER_DEAD instead. */
GSHMEM_API GSHMEM_NODISCARD gshmem_status_t gshmem_finalize(void);

/* Whether the library is initialised. Callable at any time, from any thread. */
GSHMEM_API int gshmem_initialized(void);
/* The thread level in force; GSHMEM_THREAD_SINGLE when not initialised. */
GSHMEM_API int gshmem_query_thread(void);

/* Ends the whole job with this exit status; any PE may call it. Does not return. */
GSHMEM_API void gshmem_global_exit(int status) __attribute__((noreturn));

GSHMEM_KERNELS_TOO_BEGIN
/* This PE's number, 0 … n_pes - 1, and the number of PEs; -1 when not initialised. */
GSHMEM_API int gshmem_my_pe(void);
GSHMEM_API int gshmem_n_pes(void);
GSHMEM_KERNELS_TOO_END

/* Whether pe exists and can be communicated with; whether addr is symmetric and reachable on pe. */
GSHMEM_API int gshmem_pe_accessible(int pe);
GSHMEM_API int gshmem_addr_accessible(const void *addr, int pe);

GSHMEM_KERNELS_TOO_BEGIN
/* The address at which pe's copy of the symmetric object at dest is mapped in this process, for
 * loads and stores; NULL if dest is not symmetric or this process has not mapped that memory. */
GSHMEM_API void *gshmem_ptr(const void *dest, int pe);
GSHMEM_API void *gshmem_team_ptr(gshmem_team_t team, const void *dest, int pe);
/* An address that stands for the copies of the symmetric object at ptr on all PEs of the team. Only
 * kernels may use it, by multimem instructions: stores go to all copies, loads combine them.
 * Returns NULL if there is no such address. There is one if each member has a GPU of its own, all
 * on one node, and a switch (NVSwitch) connects these GPUs. The address is valid until the object
 * is freed. Collectives that a block calls use such addresses themselves, for large data. */
GSHMEM_API void *gshmem_mc_ptr(gshmem_team_t team, const void *ptr);
GSHMEM_KERNELS_TOO_END

/* The version of the library, and its name with the version. */
GSHMEM_API void gshmem_info_get_version(int *major, int *minor);
GSHMEM_API void gshmem_info_get_name(char name[64]); /* "GSHMEM 0.1.0" */

/* ---- Errors -------------------------------------------------------------------------------- */

/* The name ("GSHMEM_ERR_ARGUMENT") and meaning ("bad argument") of a status. */
GSHMEM_API const char *gshmem_status_name(gshmem_status_t status);
GSHMEM_API const char *gshmem_status_text(gshmem_status_t status);

/* The last failure of the calling thread: its status, and in *text its line. */
GSHMEM_API gshmem_status_t gshmem_last_error(const char **text);

/* Called where a failure cannot be returned. If the handler returns, the function that failed
 * returns, too (with 0 where a value is due). NULL restores the policy of GSHMEM_ON_ERROR. */
typedef void (*gshmem_error_handler_t)(gshmem_status_t status, const char *text, void *context);
GSHMEM_API void gshmem_set_error_handler(gshmem_error_handler_t handler, void *context);

GSHMEM_KERNELS_TOO_BEGIN
/* Hands a failure to that policy; GSHMEM_OK is none. For wrappers of this API that cannot return a
 * status either, and as the short way to look at one: gshmem_raise(gshmem_barrier_all()) ends the
 * job on failure, unless the policy is another. */
GSHMEM_API void gshmem_raise(gshmem_status_t status);
GSHMEM_KERNELS_TOO_END

/* ---- Traces --------------------------------------------------------------------------------- */

GSHMEM_KERNELS_TOO_BEGIN
/* Marks a part of the program by a name, for this thread, in the trace (GSHMEM_TRACE) and for
 * NVIDIA's profilers (GSHMEM_NVTX). Ranges nest. The name is copied. Without one of these settings
 * the calls do nothing; they may be made at any time, also before gshmem_init. In kernels they mark
 * a part of the calling thread's work in the trace, on the host device; on a GPU they do nothing.
 */
GSHMEM_API void gshmem_range_push(const char *name);
GSHMEM_API void gshmem_range_pop(void);
GSHMEM_KERNELS_TOO_END

/* ---- Symmetric memory ------------------------------------------------------------------------ */

/* Collective over the job: every PE calls with the same arguments and gets a copy of the same
 * object. A PE names any PE's copy by the address of its own copy. Returns NULL for 0 bytes and on
 * failure (the heap is exhausted, or PEs disagree); then no PE gets memory, and gshmem_last_error
 * has the reason. Objects are aligned to at least 16 bytes, and to 64 if they have 64 bytes or
 * more. malloc ends with a barrier, free begins with one, and realloc does both. Only one thread of
 * a PE may allocate at a time: threads that allocate concurrently make PEs disagree. */
GSHMEM_API void *gshmem_malloc(size_t bytes);
GSHMEM_API void *gshmem_calloc(size_t count, size_t bytes); /* zero on every PE */
/* alignment: a power of two, from sizeof(void *) to 1 GiB, or to 2 MiB in GPU memory. */
GSHMEM_API void *gshmem_align(size_t alignment, size_t bytes);
/* hints is a bitwise OR of GSHMEM_MALLOC_… constants, or 0.
 *
 * GSHMEM_MALLOC_ATOMICS_REMOTE is for objects that are updated mostly by PEs of other nodes, with
 * atomics, locks and signals. Where all PEs have NICs with atomics, the NIC of the object's PE
 * makes all such updates. They then take less time for PEs of other nodes, and more time for PEs of
 * the object's node.
 *
 * GSHMEM_MALLOC_SIGNAL_REMOTE has no effect. GSHMEM_MALLOC_HOST asks for host memory, also where
 * the heap is GPU memory. */
GSHMEM_API void *gshmem_malloc_with_hints(size_t bytes, long hints);
/* Keeps the contents up to the smaller of the two sizes; the object may move. On failure it returns
 * NULL and leaves ptr as it was. NULL for ptr allocates; 0 bytes frees. */
GSHMEM_API void *gshmem_realloc(void *ptr, size_t bytes);

/* Frees an object; NULL is allowed. The call refuses a pointer that is not the start of an object,
 * and one that was freed before. */
GSHMEM_API GSHMEM_NODISCARD gshmem_status_t gshmem_free(void *ptr);

/* The program's global and static variables are symmetric by themselves. A child made by fork gets
 * its own copy of them and goes on sharing the heap. A child is not a PE: calls in it return
 * GSHMEM_ERR_STATE and do not affect its parent.
 *
 * This function makes the global and static variables of the shared library that contains `inside`
 * symmetric, like those of the executable. Call it before gshmem_init, on all PEs in the same order
 * (for example from a constructor of that library, with the address of one of its variables). The
 * library must stay loaded. */
GSHMEM_API GSHMEM_NODISCARD gshmem_status_t gshmem_symmetric_data(const void *inside);

/* ---- Memory of the program's own ------------------------------------------------------------ */

/* Any memory of the caller may be the source of a put and the dest of a get. Registration makes
 * this faster: host memory is pinned, which lets the kernels of this PE's GPU access it, and the
 * proxy accepts the buffer in commands of kernels without asking the driver or the system about it.
 * Local to the PE.
 *
 * A buffer may not overlap another buffer or the symmetric heap, which is always registered.
 * Variables of the program may be registered. The buffer must exist until it is unregistered, and
 * no operation may use it when that happens. unregister takes the address with which the buffer was
 * registered. gshmem_finalize unregisters what is left. */
GSHMEM_API GSHMEM_NODISCARD gshmem_status_t gshmem_buffer_register(void *addr, size_t bytes);
GSHMEM_API GSHMEM_NODISCARD gshmem_status_t gshmem_buffer_unregister(void *addr);
GSHMEM_API GSHMEM_NODISCARD gshmem_status_t gshmem_buffer_unregister_all(void);

/* Makes memory of the program's own a part of the symmetric heap. It can then be used like an
 * object of gshmem_malloc. Collective over the job, as gshmem_malloc is: every PE calls with a
 * buffer of its own and the same number of bytes, and gets the address that names all these buffers
 * from then on. On failure all PEs get NULL. flags: 0. The program's own address of the buffer
 * stays valid and shows the same bytes.
 *
 * With the heap in GPU memory, the buffer must consist of whole allocations of cuMemCreate, mapped
 * by cuMemMap, on this PE's GPU, with a handle type by which the heap is shared (descriptors;
 * fabric handles where descriptors are not available). On the host device, it must consist of whole
 * pages of private memory of the process (aligned_alloc, mmap, cuMemMap of the host device). It may
 * not contain pages of files, stacks, or variables of the program, which are symmetric already.
 * These pages become pages of the heap and count as its memory. No thread may use them during the
 * call.
 *
 * register_symmetric_at is the same with an address of the heap that the program prefers for the
 * buffer: on all PEs the address of the same place, such as one that an earlier call returned. The
 * buffer gets that address if the heap is free there for all its bytes, and if buffers begin there:
 * at pages, in GPU memory at multiples of 16 MiB. Otherwise, and with NULL or an address outside of
 * the heap, it gets any address.
 *
 * unregister is collective and begins with a barrier. It takes the address that registering
 * returned, and the same number of bytes. The memory stays the program's, with its current
 * contents; the program may release it after this call, not before. gshmem_finalize unregisters
 * what is left. */
GSHMEM_API void *gshmem_buffer_register_symmetric(void *addr, size_t bytes, int flags);
GSHMEM_API void *gshmem_buffer_register_symmetric_at(void *addr, size_t bytes, void *preferred,
                                                     int flags);
GSHMEM_API GSHMEM_NODISCARD gshmem_status_t gshmem_buffer_unregister_symmetric(void *addr,
                                                                               size_t bytes);

/* ---- Teams ----------------------------------------------------------------------------------- */

typedef struct gshmem_team_config {
    int num_contexts; /* how many contexts of the team the program will have at one time */
} gshmem_team_config_t;
#define GSHMEM_TEAM_NUM_CONTEXTS 0x1L /* bit of config_mask: num_contexts is set */

GSHMEM_KERNELS_TOO_BEGIN
/* This PE's number in the team, and the number of PEs of the team; -1 if the caller is not a
 * member, or the team is invalid. */
GSHMEM_API int gshmem_team_my_pe(gshmem_team_t team);
GSHMEM_API int gshmem_team_n_pes(gshmem_team_t team);
GSHMEM_KERNELS_TOO_END
GSHMEM_API GSHMEM_NODISCARD gshmem_status_t gshmem_team_get_config(gshmem_team_t team,
                                                                   long config_mask,
                                                                   gshmem_team_config_t *config);
GSHMEM_KERNELS_TOO_BEGIN
/* The number in dest_team of the PE whose number in src_team is src_pe; -1 if it has none. */
GSHMEM_API int gshmem_team_translate_pe(gshmem_team_t src_team, int src_pe,
                                        gshmem_team_t dest_team);
GSHMEM_KERNELS_TOO_END

/* Makes new teams out of parent; collective over parent. Members get a new team. All other PEs get
 * GSHMEM_TEAM_INVALID, and so do all PEs on failure. All PEs pass the same arguments. If they
 * differ, or one PE refuses its arguments, the call fails on all PEs. There is one exception: PEs
 * may pass different arguments if each of them asks for a team of one PE. `stride` may be negative,
 * or 0 with size 1. config may be NULL. */
GSHMEM_API GSHMEM_NODISCARD gshmem_status_t gshmem_team_split_strided(
    gshmem_team_t parent, int start, int stride, int size, const gshmem_team_config_t *config,
    long config_mask, gshmem_team_t *new_team);
/* Rows and columns of a grid with xrange columns: PE i of parent is at (i % xrange, i / xrange);
 * its xaxis team is its row, its yaxis team its column. */
GSHMEM_API GSHMEM_NODISCARD gshmem_status_t gshmem_team_split_2d(
    gshmem_team_t parent, int xrange, const gshmem_team_config_t *xaxis_config, long xaxis_mask,
    gshmem_team_t *xaxis_team, const gshmem_team_config_t *yaxis_config, long yaxis_mask,
    gshmem_team_t *yaxis_team);
/* A team of n PEs of the parent, `members`, in the order in which they get their numbers in the new
 * team. */
GSHMEM_API GSHMEM_NODISCARD gshmem_status_t gshmem_team_split_list(
    gshmem_team_t parent, const int *members, int n, const gshmem_team_config_t *config,
    long config_mask, gshmem_team_t *new_team);

/* An id by which PEs make a team without the others. One PE makes it, the program carries it to the
 * members by any means, and each of them passes it to gshmem_team_create. An id is good for one
 * attempt. A PE keeps 32 ids, of which those that PEs are in a call with are kept in any case: with
 * more, the oldest is no longer known, and if all are in use, GSHMEM_ERR_STATE is returned. */
typedef uint64_t gshmem_team_uniqueid_t;
GSHMEM_API GSHMEM_NODISCARD gshmem_status_t gshmem_team_get_uniqueid(gshmem_team_uniqueid_t *id);
/* Makes the team of the n_pes PEs that pass this id, each with another number my_pe from 0 to
 * n_pes - 1 in the team. Waits for these PEs and no others; it is no barrier. They pass the same
 * n_pes and configuration. If these differ, if two PEs pass the same number, or if a PE refuses its
 * other arguments, all of them fail. So they do if any PE of the job dies while one of them waits,
 * or has died before: it could be one of them. config may be NULL. */
GSHMEM_API GSHMEM_NODISCARD gshmem_status_t gshmem_team_create(
    gshmem_team_uniqueid_t id, int n_pes, int my_pe, const gshmem_team_config_t *config,
    long config_mask, gshmem_team_t *new_team);
/* Collective over the team; its contexts must have been destroyed. */
GSHMEM_API GSHMEM_NODISCARD gshmem_status_t gshmem_team_destroy(gshmem_team_t team);

/* ---- Contexts -------------------------------------------------------------------------------- */

/* A context orders and completes its own operations independently of other contexts. Local to the
 * PE. PE numbers in its operations are those of the team from which it was made. */
GSHMEM_API GSHMEM_NODISCARD gshmem_status_t gshmem_ctx_create(long options, gshmem_ctx_t *ctx);
GSHMEM_API GSHMEM_NODISCARD gshmem_status_t gshmem_team_create_ctx(gshmem_team_t team, long options,
                                                                   gshmem_ctx_t *ctx);
/* Completes the context's operations first. */
GSHMEM_API GSHMEM_NODISCARD gshmem_status_t gshmem_ctx_destroy(gshmem_ctx_t ctx);
GSHMEM_API GSHMEM_NODISCARD gshmem_status_t gshmem_ctx_get_team(gshmem_ctx_t ctx,
                                                                gshmem_team_t *team);
/* start is a hint that many operations of the host follow, which may be sent in batches until the
 * stop. What has not been sent by then is sent by the stop, or by the first call that waits. */
GSHMEM_API void gshmem_ctx_session_start(gshmem_ctx_t ctx, long options);
GSHMEM_API void gshmem_ctx_session_stop(gshmem_ctx_t ctx);

/* ---- Order ----------------------------------------------------------------------------------- */

GSHMEM_KERNELS_TOO_BEGIN
/* fence: puts, atomics and signals of this PE that come before the fence arrive at each target PE
 * before those that come after it. quiet: when it returns, all operations of this PE that come
 * before it are complete and visible to all PEs. pe_quiet: the same for operations on the PEs of a
 * list. flush: when it returns, the sources of all puts of this PE that come before it may be
 * changed or freed. It does not wait until the data has arrived, and says nothing of gets; a
 * failure is reported by the next quiet. Over a NIC the source may be reused when the data has
 * arrived, so that a flush takes as long as a quiet. In kernels there are also gshmem_flush_warp
 * and gshmem_flush_block, which all threads of a warp or block call, for the puts of all of them.
 *
 * An operation counts if this PE has issued it on the context, from any thread, on the host or in a
 * kernel. It comes before the call if the calling thread issued it earlier, or if the calling
 * thread has synchronized since then with the thread that issued it (by a lock, __syncthreads,
 * cudaStreamSynchronize, the order of a stream, or a flag with a memory fence).
 *
 * What comes after a fence in a kernel is what the thread that called it issues later. Where
 * another thread, or the host, goes on from there, the kernel calls quiet, or the other one calls
 * fence.
 *
 * A PE has failed if it has died, or if a PE of the job has declared it dead. An operation on a
 * failed PE fails with GSHMEM_ERR_PEER_DEAD, when it is issued or in the next quiet. There is one
 * exception: if the failed PE's memory is mapped (gshmem_ptr is not NULL, as on the same node),
 * operations are loads and stores, which cannot report a failure. The memory keeps its contents,
 * the operations succeed, and no PE will read what they stored. Waits, locks and collectives end
 * with GSHMEM_ERR_PEER_DEAD on whichever node the failed PE was. */
GSHMEM_API GSHMEM_NODISCARD gshmem_status_t gshmem_fence(void);
GSHMEM_API GSHMEM_NODISCARD gshmem_status_t gshmem_quiet(void);
GSHMEM_API GSHMEM_NODISCARD gshmem_status_t gshmem_pe_quiet(const int *target_pes, size_t n);
GSHMEM_API GSHMEM_NODISCARD gshmem_status_t gshmem_ctx_fence(gshmem_ctx_t ctx);
GSHMEM_API GSHMEM_NODISCARD gshmem_status_t gshmem_ctx_quiet(gshmem_ctx_t ctx);
GSHMEM_API GSHMEM_NODISCARD gshmem_status_t gshmem_ctx_pe_quiet(gshmem_ctx_t ctx,
                                                                const int *target_pes, size_t n);
GSHMEM_API GSHMEM_NODISCARD gshmem_status_t gshmem_flush(void);
GSHMEM_API GSHMEM_NODISCARD gshmem_status_t gshmem_ctx_flush(gshmem_ctx_t ctx);
GSHMEM_KERNELS_TOO_END

/* ---- Waiting --------------------------------------------------------------------------------- */

GSHMEM_KERNELS_TOO_BEGIN
/* Waits until the comparison cmp of the signal with value is true, and returns the value of the
 * signal that made it true. The wait fails if the job is aborted, if a PE of the job has died (any
 * of them could have been the one that updates the signal), or if all other PEs have left and no
 * thread or kernel of this PE is left to update it (see gshmem_finalize). It then calls the error
 * policy and returns the last value of the signal. gshmem_TYPE_wait_until… in gshmem/typed.h wait
 * for variables of other types, and for several at once. */
GSHMEM_API uint64_t gshmem_signal_wait_until(uint64_t *sig_addr, int cmp, uint64_t value);
GSHMEM_KERNELS_TOO_END

/* ---- Collectives ----------------------------------------------------------------------------- */

/* Collectives over the PEs of a team: every PE of the team makes the same calls in the same order.
 * dest and source are symmetric addresses. They may be the same object where the comment says "in
 * place", and may not overlap otherwise. Sizes may be 0. When a call returns, the caller may use
 * dest and reuse source.
 *
 * A call fails if the team is invalid or an address is not symmetric. If the calls of the PEs
 * differ, or one PE refuses its arguments, the call fails on all PEs (GSHMEM_ERR_MISMATCH), and the
 * team can be used further. A small broadcast may have returned on the root, and on PEs that made
 * the root's call (up to 120 bytes, between nodes up to 3,056): then their next call that all wait
 * for fails, on all PEs (between nodes gshmem_finalize does not). Once a member has died, all
 * collectives of the team fail at once (GSHMEM_ERR_PEER_DEAD). */

GSHMEM_KERNELS_TOO_BEGIN
/* sync returns when all PEs have arrived; the stores that they made before are then visible.
 * barrier does the same, after it has completed this PE's operations on the default context, as
 * gshmem_quiet does. */
GSHMEM_API GSHMEM_NODISCARD gshmem_status_t gshmem_team_sync(gshmem_team_t team);
GSHMEM_API GSHMEM_NODISCARD gshmem_status_t gshmem_sync_all(void);
GSHMEM_API GSHMEM_NODISCARD gshmem_status_t gshmem_barrier(gshmem_team_t team);
GSHMEM_API GSHMEM_NODISCARD gshmem_status_t gshmem_barrier_all(void);
GSHMEM_KERNELS_TOO_END

GSHMEM_KERNELS_TOO_BEGIN
/* dest becomes root's source on every PE, the root included. In place. The root does not wait until
 * the others have it, and they need not wait for each other. */
GSHMEM_API GSHMEM_NODISCARD gshmem_status_t gshmem_broadcastmem(gshmem_team_t team, void *dest,
                                                                const void *source, size_t bytes,
                                                                int root);
/* dest becomes the concatenation of the sources of all PEs, which have the same size. */
GSHMEM_API GSHMEM_NODISCARD gshmem_status_t gshmem_fcollectmem(gshmem_team_t team, void *dest,
                                                               const void *source, size_t bytes);
/* Block i of source (bytes long) goes to block my_pe of dest on PE i. */
GSHMEM_API GSHMEM_NODISCARD gshmem_status_t gshmem_alltoallmem(gshmem_team_t team, void *dest,
                                                               const void *source, size_t bytes);
GSHMEM_KERNELS_TOO_END
/* fcollect with sizes that may differ between PEs. */
GSHMEM_API GSHMEM_NODISCARD gshmem_status_t gshmem_collectmem(gshmem_team_t team, void *dest,
                                                              const void *source, size_t bytes);
/* alltoall with blocks of n elements. Within a block, consecutive elements are dst apart in dest
 * and sst apart in source, counted in elements. Block i begins at element i*n*dst of dest and at
 * element i*n*sst of source. */
GSHMEM_API GSHMEM_NODISCARD gshmem_status_t gshmem_alltoallsmem(gshmem_team_t team, void *dest,
                                                                const void *source, ptrdiff_t dst,
                                                                ptrdiff_t sst, size_t element,
                                                                size_t n);
GSHMEM_KERNELS_TOO_BEGIN
/* dest[j] on every PE becomes the reduction by op of source[j] of all PEs. In place.
 *
 * The order in which values are combined depends on the team, on the type and n, on which PEs of
 * the team share a node, and on the kind of memory of dest and source. It does not depend on
 * timing: a program whose PEs are placed in the same way gets the same results in each run. Within
 * one node, values are combined in the order of the PEs. There is one exception: if NVSwitch
 * connects the GPUs and a block makes the call, the switch combines large arrays in an order of its
 * own. It does so for sums of floating-point numbers, and for minimum and maximum of half-precision
 * numbers (GSHMEM_CUDA_MULTICAST=off prevents it). All PEs get the same bits in every case. */
GSHMEM_API GSHMEM_NODISCARD gshmem_status_t gshmem_reduce(gshmem_team_t team, enum gshmem_type type,
                                                          enum gshmem_op op, void *dest,
                                                          const void *source, size_t n);
/* dest[0..n) on PE i becomes elements i*n … (i+1)*n - 1 of the reduction of source[0..n*n_pes).
 * In place: dest may be source. */
GSHMEM_API GSHMEM_NODISCARD gshmem_status_t gshmem_reducescatter(gshmem_team_t team,
                                                                 enum gshmem_type type,
                                                                 enum gshmem_op op, void *dest,
                                                                 const void *source, size_t n);
GSHMEM_KERNELS_TOO_END
/* dest[j] on PE i becomes the sum of source[j] of PEs 0…i (inscan) or 0…i-1 (exscan; 0 on PE 0).
 * In place. */
GSHMEM_API GSHMEM_NODISCARD gshmem_status_t gshmem_inscan(gshmem_team_t team, enum gshmem_type type,
                                                          void *dest, const void *source, size_t n);
GSHMEM_API GSHMEM_NODISCARD gshmem_status_t gshmem_exscan(gshmem_team_t team, enum gshmem_type type,
                                                          void *dest, const void *source, size_t n);

/* ---- Locks ----------------------------------------------------------------------------------- */

/* A lock is a symmetric long, 0 at first, the same object on all PEs. Locks are fair: PEs get one
 * in the order in which they requested it, and so do threads of a PE with GSHMEM_THREAD_MULTIPLE. A
 * PE that is stopped in the middle of its request for 50 ms can lose its place.
 * set waits until this PE has the lock. test returns 0 if it took the lock, 1 if a PE holds it
 * (possibly the caller), and -1 on failure. clear completes this PE's operations and then releases
 * the lock, even if one of the operations has failed.
 *
 * set returns GSHMEM_ERR_PEER_DEAD and test returns -1 if one of these PEs has died: the holder, a
 * PE that waits in the queue before the caller, or the PE that stores the tail of the queue. The
 * lock's address decides which PE that is. The death of any other PE does not affect the lock. */
GSHMEM_API GSHMEM_NODISCARD gshmem_status_t gshmem_set_lock(long *lock);
GSHMEM_API GSHMEM_NODISCARD gshmem_status_t gshmem_clear_lock(long *lock);
GSHMEM_API int gshmem_test_lock(long *lock);

#ifdef __cplusplus
}
#endif

#ifdef GSHMEM_CUDA
#include "gshmem_device.h" /* the typed names and all of the above, for the host and for kernels */
#else
#include "gshmem/typed.h" /* generated */
#include "gshmem/counted.h"
#endif

#include "gshmem_names_end.h"
#endif
