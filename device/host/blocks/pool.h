/* The grids that have blocks to give, and how much room the workers have for them. */
#ifndef GSHMEM_DEVICE_HOST_POOL_H
#define GSHMEM_DEVICE_HOST_POOL_H

#include "device/host/blocks/grid.h"

/* How much fits at once. Blocks of a cooperative launch wait for each other, so that all of them
 * have to fit: such a launch gets more room, as far as memory has it. Others are done in waves. */
struct capacity {
    unsigned workers;
    unsigned threads, blocks; /* of each worker; below with a cooperative launch */
    unsigned cooperative_threads, cooperative_blocks;
    size_t stack_size;
};

struct pool {
    pthread_mutex_t lock;
    pthread_cond_t work;        /* grids has become non-empty, or stop is set */
    struct grid *grids, **end;  /* with blocks that nobody has taken */
    atomic_bool pending;        /* grids is not empty */
    atomic_uint running;        /* grids that were submitted and have not ended */
    struct grid *cooperative;      /* the cooperative launch whose blocks are promised to workers */
    unsigned asleep;
    bool stop;
    struct worker *workers;
    struct capacity capacity;
};
extern struct pool pool;

/* Hands over a grid whose first part is filled in. */
void grid_submit(struct grid *grid);
/* Marks it as failed: its threads end at their next wait, and blocks not taken never start. */
void grid_fail(struct grid *grid);
/* The same with an error that tells more than cudaErrorLaunchFailure. */
void grid_fail_for(struct grid *grid, int error);

/* The next block that fits here; number is its place in the grid. */
struct grid *pool_claim_block(struct worker *w, uint64_t *number);
/* False: the pool closes. */
bool pool_wait_for_grid(struct worker *w);
void pool_make_room(struct worker *w, unsigned blocks, unsigned threads);
void pool_blocks_ended(struct grid *grid, uint64_t count);

static inline unsigned grid_threads(const struct grid *grid)
{
    return grid->block_size.x * grid->block_size.y * grid->block_size.z;
}

#endif
