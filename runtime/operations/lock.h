/* Distributed locks: the part that the rest of the library needs. */
#ifndef GSHMEM_RUNTIME_OPERATIONS_LOCK_H
#define GSHMEM_RUNTIME_OPERATIONS_LOCK_H

struct job;

/* Frees the records of locks that the program still holds. */
void lock_stop(struct job *j);

#endif
