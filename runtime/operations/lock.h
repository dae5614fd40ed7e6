/* Distributed locks: what the rest of the library has to know of them. */
#ifndef GSHMEM_RUNTIME_OPERATIONS_LOCK_H
#define GSHMEM_RUNTIME_OPERATIONS_LOCK_H

struct job;

/* Frees what is kept of locks that the program still holds. */
void lock_stop(struct job *j);

#endif
