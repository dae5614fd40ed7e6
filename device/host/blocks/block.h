/* A block's memory and its end. */
#ifndef GSHMEM_DEVICE_HOST_BLOCK_H
#define GSHMEM_DEVICE_HOST_BLOCK_H

#include "device/host/blocks/grid.h"

struct block *block_make(struct worker *w, struct grid *grid, uint64_t number);
void block_free_spare(struct worker *w);
void thread_gone(struct worker *w, struct thread *t);
void block_settle(struct worker *w, struct block *b);
/* Called with the library's own state at the beginning of a block's memory, when a block ends that
 * has one; NULL: nothing. */
extern void (*block_state_end)(void *state);

#endif
