/* The work arrays that OpenSHMEM 1.4's collectives want. They take turns, so that a PE that is
 * ahead by one collective never finds one in use. */
#include <library.h>

enum { TURNS = 8, SYNC_LONGS = _SHMEM_COLLECT_SYNC_SIZE + _SHMEM_REDUCE_SYNC_SIZE };

static long sync_work[TURNS][SYNC_LONGS];
static long *reduce_work[TURNS];
static size_t reduce_longs;
static unsigned sync_turn, reduce_turn;

int lib_init(void)
{
    shmem_init();
    for (int i = 0; i < TURNS; i++)
        for (int j = 0; j < SYNC_LONGS; j++)
            sync_work[i][j] = _SHMEM_SYNC_VALUE;
    shmem_barrier_all();
    return 0;
}

long *lib_next_sync_work(void)
{
    return sync_work[++sync_turn % TURNS];
}

void *lib_next_reduce_work(size_t n)
{
    size_t longs = n / 2 + 1 + _SHMEM_REDUCE_MIN_WRKDATA_SIZE;

    if (longs > reduce_longs) { /* during warm-up: all PEs come here together */
        for (int i = 0; i < TURNS; i++) {
            if (reduce_work[i])
                shmem_free(reduce_work[i]);
            reduce_work[i] = shmem_malloc(longs * sizeof(long));
        }
        reduce_longs = longs;
    }
    return reduce_work[++reduce_turn % TURNS];
}
