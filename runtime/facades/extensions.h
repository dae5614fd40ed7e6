/* What libgshmem does for libgshmem_shmem beyond gshmem.h: the standard's ways that the native API does
 * not have. Not for programs to call. */
#ifndef GSHMEM_RUNTIME_FACADES_EXTENSIONS_H
#define GSHMEM_RUNTIME_FACADES_EXTENSIONS_H

#include "gshmem.h"

/* As gshmem_malloc, but that PEs may ask for different sizes, as in OpenSHMEM 1.1: all get the
 * largest. */
GSHMEM_API void *gshmem_path_malloc(size_t bytes);

/* Words of a work array that making a team of an active set takes; all 0 before and after. */
enum { ACTIVE_SET_WORDS = 8 };

/* The team of the PEs start, start + 2^log_stride, … of the job, `size` of them, which this PE is one of.
 * The first call for a set makes it, collectively over the set alone, by means of the symmetric array
 * sync; later ones are local. But where a PE is in many sets it is made for each call. */
GSHMEM_API gshmem_status_t gshmem_path_active_set(int start, int log_stride, int size, long *sync,
                                                  const char *call, gshmem_team_t *team);

/* After the collective of an active set, on all members: the end of the team, if it was made for this one. */
GSHMEM_API gshmem_status_t gshmem_path_leave_set(gshmem_team_t team);

/* As gshmem_broadcastmem, but that the root's own dest stays as it is. */
GSHMEM_API gshmem_status_t gshmem_path_broadcast_others(gshmem_team_t team, void *dest,
                                                        const void *source, size_t bytes, int root);

/* Destroys the contexts that were made from a team. */
GSHMEM_API gshmem_status_t gshmem_path_close_contexts(gshmem_team_t team);

#endif
