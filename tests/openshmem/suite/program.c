/* Threads of all PEs take tasks from counters, each by a context of its own. */
#include <shmem.h>

#include "library.h"

enum { TASKS = 200, THREADS = 4 };

static long next_task, mine, all;

static long take_tasks(int me, int n_pes)
{
    shmem_ctx_t ctx;
    long taken = 0;

    if (shmem_ctx_create(SHMEM_CTX_PRIVATE, &ctx))
        shmem_global_exit(2);
    for (int i = 0; i < n_pes; i++) {
        while (shmem_ctx_long_atomic_fetch_inc(ctx, &next_task, (me + i) % n_pes) < TASKS)
            taken++;
    }
    shmem_ctx_destroy(ctx);
    return taken;
}

int main(void)
{
    int level, failed;

    shmem_init_thread(SHMEM_THREAD_MULTIPLE, &level);
    int me = shmem_my_pe(), n_pes = shmem_n_pes();
    long taken = 0;
#pragma omp parallel num_threads(THREADS) reduction(+ : taken)
    taken += take_tasks(me, n_pes);
    mine = taken;
    failed = shmem_long_sum_reduce(SHMEM_TEAM_WORLD, &all, &mine, 1) != 0;
    failed |= level != SHMEM_THREAD_MULTIPLE || all != (long)TASKS * n_pes;
    failed |= library_exchange() != (me + n_pes - 1) % n_pes + 1;
    shmem_finalize();
    return failed;
}
