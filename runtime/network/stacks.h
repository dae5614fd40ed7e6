/* The call stacks of this process's threads, taken by a thread of the library for another process
 * that asks. Knows nothing of PEs. */
#ifndef GSHMEM_RUNTIME_NETWORK_STACKS_H
#define GSHMEM_RUNTIME_NETWORK_STACKS_H

#include "runtime/where/socket.h"

/* Call once, early: what a signal handler needs must be loaded before. */
void stacks_prepare(void);
/* Of the threads that are not the library's: of the main one, of those that run, and of others. */
void stacks_take(struct where_stacks *out);

/* What looks like return addresses from that word of a stack on, the innermost first; returns how
 * many. A signal handler may call it. */
uint32_t stacks_look_through(uint64_t from, uint64_t *frame, uint32_t most);

#endif
