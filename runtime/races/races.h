/* GSHMEM_CHECK=races: conflicting accesses of two PEs to the same symmetric bytes that nothing
 * orders. README.md has the rules.
 *
 * The rooms above tell of each operation before it is carried out, and of each wait and round when
 * it has ended. Without the setting job->races is NULL, and none of these is called. */
#ifndef GSHMEM_RUNTIME_RACES_RACES_H
#define GSHMEM_RUNTIME_RACES_RACES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gshmem.h"
#include "runtime/races/shared.h"

struct races;

/* PE 0 makes the memory; *pid, which it publishes, is its process, or 0 if the job is not checked.
 * token: of the job, a number that other processes do not have. */
gshmem_status_t races_open(struct job *j, uint64_t token, int32_t *pid);
/* All PEs map it, through that process. Fails where it is on another machine. */
gshmem_status_t races_join(struct job *j, uint64_t token, int32_t pid);
/* Once the map of symmetric memory is filled. */
gshmem_status_t races_start(struct job *j);
/* The program has code that does not tell what it does: the job is not checked. true: this call is
 * the job's first. */
bool races_turn_off(struct job *j);
/* Races that this PE has found make the exit status 1 where it would be 0. */
void races_conclude(struct job *j);
/* The program's loads and stores are not followed any more: no thread is in the job because of
 * one. Before the job ends. */
void races_close(struct job *j);
/* In a child made by fork, which has no job. */
void races_leave_parent(void);
void races_stop(struct job *j);

/* An access to the bytes that this PE knows at `at`, on a PE of the job. */
void races_access(const struct races_call *call, enum races_kind kind, unsigned flags,
                  const void *at, size_t bytes, int pe);
/* An operation with two sides: a put reads the source here and writes there, a get the reverse. */
void races_put(const char *name, const void *dest, const void *source, size_t bytes, int pe,
               bool nbi);
void races_get(const char *name, void *dest, const void *source, size_t bytes, int pe, bool nbi);
/* The data that a signal of the same call follows. */
void races_put_signalled(const char *name, const void *dest, const void *source, size_t bytes,
                         int pe, bool nbi);
/* fetches: races_see follows, once it has returned. */
void races_atomic(const char *name, enum gshmem_amo op, const void *target, size_t bytes, int pe,
                  bool fetches);
/* This PE has seen the value of a variable on that PE. */
void races_see(const void *at, size_t bytes, int pe);
/* It has when its next quiet is over: then what is there is seen. */
void races_see_later(const void *at, size_t bytes, int pe);

void races_fence(void);
void races_flush(void);
void races_quiet(void);

/* A round of a team: what this PE did before it, others may see when they have left it. What the
 * library does meanwhile in this thread is not followed. All members of the team make the same
 * rounds: also one that refuses its call, and meets the others to tell them. Returns the number of
 * the round. */
uint32_t races_arrive(gshmem_team_t team);
/* members: those PEs of the job whose arrival this PE has waited for; with a status none. */
void races_leave(gshmem_team_t team, uint32_t number, const int *members, int n,
                 gshmem_status_t status);
/* The same for rounds of kernels, of which a team has one at a time. They may overlap rounds of the
 * host in any order, and have numbers of their own. */
void races_arrive_kernel(gshmem_team_t team);
void races_leave_kernel(gshmem_team_t team, const int *members, int n);
/* What a collective reads and writes here, while the PE is in it. */
void races_collective(const char *name, const void *dest, size_t to, const void *source,
                      size_t from);
/* A team is new in that slot. */
void races_new_team(gshmem_team_t team);

/* What other PEs did to these bytes of this PE is forgotten: they are freed. */
void races_forget(const void *at, size_t bytes);
/* An object is there, for reports; or is not any more. */
void races_enter(const void *at, size_t bytes);

#endif
