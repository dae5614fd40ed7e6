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

/* on 1: a failure that no caller gets is noted, and neither ends the job nor calls code of the
 * program, which may be in a language whose exceptions cannot pass through the library; 0:
 * GSHMEM_ON_ERROR decides again; -1: as it is. Takes the place of gshmem_set_error_handler. Returns
 * where the number of notes that nobody has taken is. */
GSHMEM_API const uint32_t *gshmem_path_note_failures(int on);

/* Takes the oldest note: its status, the thread (pthread_self) and the line, as far as it fits.
 * GSHMEM_OK: there is none. Of more than 100 notes the newest are kept. */
GSHMEM_API gshmem_status_t gshmem_path_take_failure(unsigned long *thread, char *line, size_t size);

/* The gshmem_finalize that ends the job leaves private memory in the place of these pages of
 * symmetric host memory, of this PE or of a mapped one, with their contents. now: those of this
 * moment; else those after the last operation of any PE. Pages that are kept twice do not overlap.
 * Returns what gshmem_path_let_go takes, or NULL where there is no memory for it. */
GSHMEM_API void *gshmem_path_keep(void *at, size_t bytes, int now);

/* Unmaps what is kept; before the job has ended it is kept no longer. */
GSHMEM_API void gshmem_path_let_go(void *kept);

/* Each SIGINT that comes while a number other than 0 is in the word whose address this returns is
 * written to the pipe, as that number, before the program's handler runs. Called again, also by
 * another thread, it takes the place of a handler that the program has set meanwhile, which runs as
 * before; SIG_DFL and SIG_IGN stay. */
GSHMEM_API uint64_t *gshmem_path_watch_interrupts(int pipe);

/* Destroys the contexts that were made from a team. */
GSHMEM_API gshmem_status_t gshmem_path_close_contexts(gshmem_team_t team);

#endif
