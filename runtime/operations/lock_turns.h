/* A lock has room for one thread of a PE: threads take turns before they enter its queue (lock.c).
 * Where the program has one thread these do nothing. */
#ifndef GSHMEM_RUNTIME_OPERATIONS_LOCK_TURNS_H
#define GSHMEM_RUNTIME_OPERATIONS_LOCK_TURNS_H

#include <stdbool.h>

#include "gshmem/status.h"

struct job;
struct lock_turn;

/* Waits for this thread's turn; may_wait is false: *busy, where it would have to. */
gshmem_status_t lock_take_turn(long *lock, bool may_wait, bool *busy);
/* turn is NULL: the thread that has the lock. */
void lock_end_turn(long *lock, struct lock_turn *turn);
/* This PE would wait for itself. */
gshmem_status_t lock_fail_held(const char *call);

/* Forgets the turns of threads that have left locks set. */
void lock_stop(struct job *j);

#endif
