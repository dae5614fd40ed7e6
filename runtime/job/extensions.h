/* What libgshmem does beyond gshmem.h for libgshmem_shmem, whose standard has functions that the
 * native API lacks, and for the Python package. Not for programs to call. */
#ifndef GSHMEM_RUNTIME_JOB_EXTENSIONS_H
#define GSHMEM_RUNTIME_JOB_EXTENSIONS_H

#include "gshmem.h"

/* Like gshmem_malloc, but PEs may request different sizes, as in OpenSHMEM 1.1: all get the
 * largest. */
GSHMEM_API void *gshmem_path_malloc(size_t bytes);

/* Words of a work array that making the team of an active set uses; all 0 before and after. */
enum { ACTIVE_SET_WORDS = 8 };

/* The team of the `size` PEs start, start + 2^log_stride, … of the job, of which this PE is one.
 * The first call for a set makes the team, collectively over the set alone, by means of the
 * symmetric array sync; later calls are local. Where a PE is in many sets, the team is made for
 * each call. */
GSHMEM_API gshmem_status_t gshmem_path_active_set(int start, int log_stride, int size, long *sync,
                                                  const char *call, gshmem_team_t *team);

/* After the collective of an active set, on all members: ends the team, if it was made for this
 * collective. */
GSHMEM_API gshmem_status_t gshmem_path_leave_set(gshmem_team_t team);

/* Like gshmem_broadcastmem, but the root's own dest keeps its contents. */
GSHMEM_API gshmem_status_t gshmem_path_broadcast_others(gshmem_team_t team, void *dest,
                                                        const void *source, size_t bytes, int root);

/* Like gshmem_collectmem, where dest has `room` bytes on this PE: if the blocks do not fit on any
 * member, all refuse with GSHMEM_ERR_ARGUMENT, and dest keeps its contents. All members call this
 * one, or none. */
GSHMEM_API gshmem_status_t gshmem_path_collect(gshmem_team_t team, void *dest, size_t room,
                                               const void *source, size_t bytes);

/* The next gshmem_finalize that ends the job calls the function once, when no other PE writes to
 * this one's memory any more and before it is unmapped. The function makes no call of the
 * library. */
GSHMEM_API void gshmem_path_at_last_write(void (*function)(void *context), void *context);

/* Destroys the contexts that were made from a team. */
GSHMEM_API gshmem_status_t gshmem_path_close_contexts(gshmem_team_t team);

#endif
