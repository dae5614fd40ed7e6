/* GSHMEM, host API: one-sided communication between the processing elements (PEs) of a job.
 *
 * Names, arguments and their order are OpenSHMEM's, with gshmem_ for shmem_. Unlike there, functions
 * return a status (gshmem/status.h): GSHMEM_OK or why not; the line that says more has then been
 * logged, and gshmem_last_error gives it. Functions that return a value instead hand a failure to
 * the error policy (GSHMEM_ON_ERROR=abort|return, or gshmem_set_error_handler).
 *
 * Memory-sized operations are here and in gshmem/rma.h; the typed names (gshmem_long_put,
 * gshmem_int_sum_reduce, gshmem_uint64_wait_until, …) are in gshmem/typed.h, generated from one
 * table, each a thin wrapper of a function documented here. */
#ifndef GSHMEM_H
#define GSHMEM_H

#include "gshmem_names_begin.h"

#include "gshmem/base.h"
#include "gshmem/type.h"
#include "gshmem/context.h"
#include "gshmem/rma.h"
#include "gshmem/atomic.h"
#include "gshmem/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Setup --------------------------------------------------------------------------------- */

/* Joins the job: finds out who started it (PMIx, PMI, gshmemrun, or nobody: a job of one), makes
 * the symmetric heap and maps the peers of this node. Collective over the job. Calls nest: only the
 * first gshmem_init and the last gshmem_finalize act. After the last finalize, init works again. */
GSHMEM_API gshmem_status_t gshmem_init(void);

/* Like gshmem_init; *provided is set to the thread level in force (always the one asked for). */
GSHMEM_API gshmem_status_t gshmem_init_thread(int requested, int *provided);

/* An opaque id that names a job to be. One PE makes it, the program carries its bytes to all others
 * by any means, and every PE passes it to gshmem_init_attr. Good for one job. */
typedef struct gshmem_uniqueid {
    uint32_t version;
    unsigned char opaque[124];
} gshmem_uniqueid_t;

GSHMEM_API gshmem_status_t gshmem_get_uniqueid(gshmem_uniqueid_t *uid);

/* How to start when the program knows better than the environment. Zero it, then fill in. */
typedef struct {
    int thread_level;             /* GSHMEM_THREAD_… */
    const void *mpi_comm;         /* points to an MPI_Comm: its ranks become the PEs; else NULL */
    const gshmem_uniqueid_t *uid; /* with pe and n_pes; else NULL */
    int pe;
    int n_pes;
} gshmem_init_attr_t;

GSHMEM_API gshmem_status_t gshmem_init_attr(const gshmem_init_attr_t *attr);

/* Completes what this PE has outstanding, waits for the others, frees everything. Collective. A PE that calls
 * exit(0) or returns from main does the same.
 *
 * A collective call that needs a PE which has left in one of these ways, the wait for a lock that it holds, or for an
 * update (wait_until) when all other PEs have left and this one has neither another thread nor kernels, ends the job
 * with a line that says so; with GSHMEM_ON_ERROR=return or an error handler it fails with GSHMEM_ERR_PEER_DEAD
 * instead. */
GSHMEM_API gshmem_status_t gshmem_finalize(void);

/* Whether the library is initialised. Callable at any time, from any thread. */
GSHMEM_API int gshmem_initialized(void);
GSHMEM_API int gshmem_query_thread(void);

/* Ends the whole job from any PE with this exit status; does not return. */
GSHMEM_API void gshmem_global_exit(int status) __attribute__((noreturn));

GSHMEM_KERNELS_TOO_BEGIN
/* My number, 0 … n_pes - 1, and how many there are; -1 when not initialised. */
GSHMEM_API int gshmem_my_pe(void);
GSHMEM_API int gshmem_n_pes(void);
GSHMEM_KERNELS_TOO_END

/* Whether pe exists and can be communicated with; whether addr is symmetric and reachable there. */
GSHMEM_API int gshmem_pe_accessible(int pe);
GSHMEM_API int gshmem_addr_accessible(const void *addr, int pe);

GSHMEM_KERNELS_TOO_BEGIN
/* Where pe's copy of the symmetric object at dest is mapped here, for loads and stores; NULL if it
 * is not symmetric, or lives where this PE cannot map it. */
GSHMEM_API void *gshmem_ptr(const void *dest, int pe);
GSHMEM_API void *gshmem_team_ptr(gshmem_team_t team, const void *dest, int pe);
/* An address that stands for the copies of the symmetric object at ptr on all PEs of the team, for
 * kernels alone, which store and combine there by multimem instructions; NULL where there is none: it
 * takes GPUs that a switch connects, one for each member, on one node. Large collectives of blocks use
 * it by themselves. Good until the object is freed. */
GSHMEM_API void *gshmem_mc_ptr(gshmem_team_t team, const void *ptr);
GSHMEM_KERNELS_TOO_END

GSHMEM_API void gshmem_info_get_version(int *major, int *minor);
GSHMEM_API void gshmem_info_get_name(char name[64]); /* "GSHMEM 0.1.0" */

/* ---- Errors -------------------------------------------------------------------------------- */

/* The name ("GSHMEM_ERR_ARGUMENT") and meaning ("bad argument") of a status. */
GSHMEM_API const char *gshmem_status_name(gshmem_status_t status);
GSHMEM_API const char *gshmem_status_text(gshmem_status_t status);

/* The last failure of the calling thread: its status, and in *text its line. */
GSHMEM_API gshmem_status_t gshmem_last_error(const char **text);

/* Called where a failure cannot be returned; if it returns, the function that failed returns too
 * (with 0 where a value is due). NULL restores the policy of GSHMEM_ON_ERROR. */
typedef void (*gshmem_error_handler_t)(gshmem_status_t status, const char *text, void *context);
GSHMEM_API void gshmem_set_error_handler(gshmem_error_handler_t handler, void *context);

GSHMEM_KERNELS_TOO_BEGIN
/* Hands a failure to that policy; for wrappers of this API that cannot return a status either. */
GSHMEM_API void gshmem_raise(gshmem_status_t status);
GSHMEM_KERNELS_TOO_END

/* ---- Symmetric memory ------------------------------------------------------------------------ */

/* Collective over the job: every PE calls with the same arguments and gets the same object, which
 * all PEs may then name by their own address of it. NULL for 0 bytes, and on failure: exhausted
 * heap, or PEs that disagree; then no PE gets memory, and gshmem_last_error says which. Aligned to
 * 16 bytes at least, and to 64 from 64 bytes on. malloc ends with a barrier; free begins with one;
 * realloc does both. One thread at a time: threads that allocate at once make PEs disagree. */
GSHMEM_API void *gshmem_malloc(size_t bytes);
GSHMEM_API void *gshmem_calloc(size_t count, size_t bytes); /* zero on every PE */
/* alignment: a power of two, from sizeof(void *) to 1 GiB, or to 2 MiB in GPU memory. */
GSHMEM_API void *gshmem_align(size_t alignment, size_t bytes);
/* hints: GSHMEM_MALLOC_…, or-ed, or 0. GSHMEM_MALLOC_ATOMICS_REMOTE: for objects that are updated,
 * by atomics, locks and signals, by PEs of other nodes above all; where all PEs have NICs for it
 * these make all such updates, which others then wait less long for, and the owner and PEs of its
 * node longer. */
GSHMEM_API void *gshmem_malloc_with_hints(size_t bytes, long hints);
/* Keeps the contents up to the smaller size, wherever the object then is. On failure NULL, and ptr
 * is as it was. NULL for ptr allocates; 0 bytes frees. */
GSHMEM_API void *gshmem_realloc(void *ptr, size_t bytes);

/* Frees; NULL is allowed. A pointer that is not the start of an object, or was freed before, is
 * refused. */
GSHMEM_API gshmem_status_t gshmem_free(void *ptr);

/* The program's global and static variables are symmetric without asking. A child made by fork gets
 * a copy of its own of them, and goes on sharing the heap. It is no PE: calls in it answer
 * GSHMEM_ERR_STATE, and its parent is not touched by them.
 *
 * Makes the global and static variables of the shared library that contains `inside` symmetric, as
 * those of the executable are. Call before gshmem_init, on all PEs in the same order (for example
 * from a constructor of that library, with the address of one of its variables). The library must
 * stay loaded. */
GSHMEM_API gshmem_status_t gshmem_symmetric_data(const void *inside);

/* ---- Memory of the program's own ------------------------------------------------------------ */

/* Any memory of the caller may be source of a put and dest of a get. Registered, it is known to be
 * there: host memory is pinned for a GPU and reached by its kernels, memory of a GPU is accepted without
 * a question to the driver, and a network that must know of memory before it moves it does. Local to the
 * PE. A buffer may not overlap another, nor the symmetric heap, which is registered anyway; program
 * variables may be registered. It must stay until it is unregistered, by the address it was registered
 * with, when no operation uses it any more. gshmem_finalize unregisters what is left. */
GSHMEM_API gshmem_status_t gshmem_buffer_register(void *addr, size_t bytes);
GSHMEM_API gshmem_status_t gshmem_buffer_unregister(void *addr);
GSHMEM_API gshmem_status_t gshmem_buffer_unregister_all(void);

/* Makes memory of the program's part of the symmetric heap, for all that gshmem_malloc's objects are for.
 * Collective over the job, as gshmem_malloc is: every PE calls with a buffer of its own and the same number
 * of bytes, and gets the address that names all of them from then on; NULL on failure, on all PEs. flags: 0.
 * The program's own address of it stays valid and shows the same bytes.
 *
 * With the heap in GPU memory: whole pieces as cuMemCreate made them, on this PE's GPU and with a handle type
 * that its heap is shared by (descriptors; fabric handles where there are no others), and cuMemMap mapped
 * them. On the host device: whole pages of private memory of the process (aligned_alloc, mmap, cuMemMap of
 * the host device; no files, stacks, or variables of the program, which are symmetric already). They come to
 * be pages of the heap and count as its; nobody may use them during the call.
 *
 * unregister: collective, begins with a barrier; the address that registering returned, and as many bytes.
 * The memory stays the program's, with what it then holds: it may be released after this, not before.
 * gshmem_finalize does it for what is left. */
GSHMEM_API void *gshmem_buffer_register_symmetric(void *addr, size_t bytes, int flags);
GSHMEM_API gshmem_status_t gshmem_buffer_unregister_symmetric(void *addr, size_t bytes);

/* ---- Teams ----------------------------------------------------------------------------------- */

typedef struct gshmem_team_config {
    int num_contexts; /* contexts that the program will create from the team at one time */
} gshmem_team_config_t;
#define GSHMEM_TEAM_NUM_CONTEXTS 0x1L /* bit of config_mask: num_contexts is set */

GSHMEM_KERNELS_TOO_BEGIN
/* -1 if the caller is not a member, or the team is invalid. */
GSHMEM_API int gshmem_team_my_pe(gshmem_team_t team);
GSHMEM_API int gshmem_team_n_pes(gshmem_team_t team);
GSHMEM_KERNELS_TOO_END
GSHMEM_API gshmem_status_t gshmem_team_get_config(gshmem_team_t team, long config_mask,
                                                  gshmem_team_config_t *config);
GSHMEM_KERNELS_TOO_BEGIN
/* The number in dest_team of the PE that has number src_pe in src_team; -1 if it has none. */
GSHMEM_API int gshmem_team_translate_pe(gshmem_team_t src_team, int src_pe,
                                        gshmem_team_t dest_team);
GSHMEM_KERNELS_TOO_END

/* New teams out of parent; collective over parent. Members get a new team; all others, and all PEs
 * on failure, GSHMEM_TEAM_INVALID. Requests that differ between PEs, or are refused on one, fail on
 * all; only of teams of one PE each PE may ask for its own. `stride` may be negative or 0 (with
 * size 1). config may be NULL. */
GSHMEM_API gshmem_status_t gshmem_team_split_strided(gshmem_team_t parent, int start, int stride,
                                                     int size, const gshmem_team_config_t *config,
                                                     long config_mask, gshmem_team_t *new_team);
/* Rows and columns of the grid that has xrange columns: PE i of parent is at (i % xrange,
 * i / xrange); its xaxis team is its row, its yaxis team its column. */
GSHMEM_API gshmem_status_t
gshmem_team_split_2d(gshmem_team_t parent, int xrange, const gshmem_team_config_t *xaxis_config,
                     long xaxis_mask, gshmem_team_t *xaxis_team,
                     const gshmem_team_config_t *yaxis_config, long yaxis_mask,
                     gshmem_team_t *yaxis_team);
/* The parent's PEs in `members` (n of them, in the order they are to have in the new team). */
GSHMEM_API gshmem_status_t gshmem_team_split_list(gshmem_team_t parent, const int *members, int n,
                                                  const gshmem_team_config_t *config,
                                                  long config_mask, gshmem_team_t *new_team);
/* Collective over the team; its contexts must have been destroyed. */
GSHMEM_API gshmem_status_t gshmem_team_destroy(gshmem_team_t team);

/* ---- Contexts -------------------------------------------------------------------------------- */

/* A context orders and completes its own operations independently of others. Local to the PE. PE
 * numbers in its operations are those of the team it was made from. */
GSHMEM_API gshmem_status_t gshmem_ctx_create(long options, gshmem_ctx_t *ctx);
GSHMEM_API gshmem_status_t gshmem_team_create_ctx(gshmem_team_t team, long options,
                                                  gshmem_ctx_t *ctx);
GSHMEM_API gshmem_status_t gshmem_ctx_destroy(gshmem_ctx_t ctx); /* completes its operations */
GSHMEM_API gshmem_status_t gshmem_ctx_get_team(gshmem_ctx_t ctx, gshmem_team_t *team);
/* Hints that many operations follow, to be batched until the stop. */
GSHMEM_API void gshmem_ctx_session_start(gshmem_ctx_t ctx, long options);
GSHMEM_API void gshmem_ctx_session_stop(gshmem_ctx_t ctx);

/* ---- Order ----------------------------------------------------------------------------------- */

GSHMEM_KERNELS_TOO_BEGIN
/* fence: puts, atomics and signals of this PE to each PE before it arrive before those after it.
 * quiet: all operations of this PE before it are complete and visible to all PEs on return.
 * pe_quiet: the same for one PE.
 *
 * "Of this PE" means: that it has issued on the context, from whichever thread, on the host or in a kernel, if
 * the call comes after them (in the same thread, or a thread that has met the other since: by a lock,
 * __syncthreads, cudaStreamSynchronize or the order of a stream, a flag with a fence of memory).
 *
 * An operation on a PE that is lost (it has died, or somebody of the job has given it up) fails with
 * GSHMEM_ERR_PEER_DEAD, itself or in the next quiet. Not so where that PE's memory is mapped, as on the
 * same node (gshmem_ptr is not NULL): operations are loads and stores there, which cannot tell; its
 * memory stays as it was, they succeed, and nobody will ever see what they stored. Waits, locks and
 * collectives end with GSHMEM_ERR_PEER_DEAD wherever the PE was. */
GSHMEM_API gshmem_status_t gshmem_fence(void);
GSHMEM_API gshmem_status_t gshmem_quiet(void);
GSHMEM_API gshmem_status_t gshmem_pe_quiet(const int *target_pes, size_t n);
GSHMEM_API gshmem_status_t gshmem_ctx_fence(gshmem_ctx_t ctx);
GSHMEM_API gshmem_status_t gshmem_ctx_quiet(gshmem_ctx_t ctx);
GSHMEM_API gshmem_status_t gshmem_ctx_pe_quiet(gshmem_ctx_t ctx, const int *target_pes, size_t n);
GSHMEM_KERNELS_TOO_END

/* ---- Waiting --------------------------------------------------------------------------------- */

GSHMEM_KERNELS_TOO_BEGIN
/* Waits until the signal compares to value as cmp says, and returns the signal that did. On failure
 * (the job ends while waiting) the error policy is called and what the signal then held returned.
 * Waits on variables of other types, and on many at once: gshmem_TYPE_wait_until… in typed.h. */
GSHMEM_API uint64_t gshmem_signal_wait_until(uint64_t *sig_addr, int cmp, uint64_t value);
GSHMEM_KERNELS_TOO_END

/* ---- Collectives ----------------------------------------------------------------------------- */

/* Over all PEs of a team, called by each of them in the same order. dest and source are symmetric
 * addresses; they may be the same object where it says "in place", and may not overlap otherwise.
 * Sizes may be 0. They return when the caller may use dest and reuse source. Failures: an invalid
 * team, addresses that are not symmetric; calls that differ between PEs, or are refused on one, fail
 * on all of them (GSHMEM_ERR_MISMATCH), and the team can go on; once a member has died, all of a
 * team's collectives fail (GSHMEM_ERR_PEER_DEAD), at once. */

GSHMEM_KERNELS_TOO_BEGIN
/* sync: all PEs have arrived, and memory stores made before it are seen. barrier: also completes
 * this PE's operations on the default context, as gshmem_quiet does. */
GSHMEM_API gshmem_status_t gshmem_team_sync(gshmem_team_t team);
GSHMEM_API gshmem_status_t gshmem_sync_all(void);
GSHMEM_API gshmem_status_t gshmem_barrier(gshmem_team_t team);
GSHMEM_API gshmem_status_t gshmem_barrier_all(void);
GSHMEM_KERNELS_TOO_END

GSHMEM_KERNELS_TOO_BEGIN
/* dest on every PE, the root's included, becomes root's source. In place. */
GSHMEM_API gshmem_status_t gshmem_broadcastmem(gshmem_team_t team, void *dest, const void *source,
                                               size_t bytes, int root);
/* dest becomes the sources of all PEs one after another, of the same size on each. */
GSHMEM_API gshmem_status_t gshmem_fcollectmem(gshmem_team_t team, void *dest, const void *source,
                                              size_t bytes);
/* Block i of source (bytes long) goes to block my_pe of dest on PE i. */
GSHMEM_API gshmem_status_t gshmem_alltoallmem(gshmem_team_t team, void *dest, const void *source,
                                              size_t bytes);
GSHMEM_KERNELS_TOO_END
/* fcollect with sizes that may differ between PEs. */
GSHMEM_API gshmem_status_t gshmem_collectmem(gshmem_team_t team, void *dest, const void *source,
                                             size_t bytes);
/* alltoall with blocks of n elements, dst and sst elements apart within a block; block i begins at
 * element i*n*dst of dest, i*n*sst of source. */
GSHMEM_API gshmem_status_t gshmem_alltoallsmem(gshmem_team_t team, void *dest, const void *source,
                                               ptrdiff_t dst, ptrdiff_t sst, size_t element,
                                               size_t n);
GSHMEM_KERNELS_TOO_BEGIN
/* dest[j] on every PE becomes the reduction by op of source[j] of all PEs. In place. The order in
 * which values are combined depends on the team, type and n, on which of its PEs share a node, and on whose
 * memory dest and source are in, and on nothing that happens at run time: results repeat where PEs are placed
 * alike. On one node it is the order of the PEs. But in blocks of GPUs that a switch connects it is the switch
 * that adds large arrays of floating-point numbers up, or compares halves (GSHMEM_CUDA_MULTICAST=off: it does
 * not). All PEs get the same bits even then. */
GSHMEM_API gshmem_status_t gshmem_reduce(gshmem_team_t team, enum gshmem_type type,
                                         enum gshmem_op op, void *dest, const void *source,
                                         size_t n);
/* dest[0..n) on PE i becomes elements i*n … (i+1)*n - 1 of the reduction of source[0..n*n_pes).
 * In place: dest may be source. */
GSHMEM_API gshmem_status_t gshmem_reducescatter(gshmem_team_t team, enum gshmem_type type,
                                                enum gshmem_op op, void *dest, const void *source,
                                                size_t n);
GSHMEM_KERNELS_TOO_END
/* dest[j] on PE i becomes the sum of source[j] of PEs 0…i (inscan) or 0…i-1 (exscan; 0 on PE 0).
 * In place. */
GSHMEM_API gshmem_status_t gshmem_inscan(gshmem_team_t team, enum gshmem_type type, void *dest,
                                         const void *source, size_t n);
GSHMEM_API gshmem_status_t gshmem_exscan(gshmem_team_t team, enum gshmem_type type, void *dest,
                                         const void *source, size_t n);

/* ---- Locks ----------------------------------------------------------------------------------- */

/* A lock is a symmetric long, 0 at first, the same object on all PEs. Fair: PEs get it in the order
 * in which they asked, and threads of a PE, with GSHMEM_THREAD_MULTIPLE, in that in which they did. set
 * waits; test returns 0 if it took the lock, 1 if a PE has it, this one too, and -1 on failure. clear
 * completes this PE's operations before it lets go, and lets go also when one of them has failed.
 *
 * A lock is lost, and GSHMEM_ERR_PEER_DEAD the answer to who waits for it, when a PE has died that held it,
 * or waited for it before the asking one, or where its queue begins. The death of others changes nothing. */
GSHMEM_API gshmem_status_t gshmem_set_lock(long *lock);
GSHMEM_API gshmem_status_t gshmem_clear_lock(long *lock);
GSHMEM_API int gshmem_test_lock(long *lock);

#ifdef __cplusplus
}
#endif

#ifdef GSHMEM_CUDA
#include "gshmem_device.h" /* the typed names and all of the above, for the host and for kernels */
#else
#include "gshmem/typed.h" /* generated */
#endif

#include "gshmem_names_end.h"
#endif
