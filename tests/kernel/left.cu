/* The last PE leaves the job while kernels of the others are in a collective with it, or come to one: run by
 * `expect`.
 *
 *     left CALL [exit]    CALL: barrier, team (a sync of a team of two), reduce, gather (which moves more than a
 *                         round carries), launch (a barrier of gshmem_collective_launch); it leaves by finalize, or
 *                         exit
 *
 *     left unwaited       All PEs return from main while their kernels are at work, and no process crashes.
 *
 * The last collective that all have come to is right, however soon the last PE leaves after it. */
#include "kernel.h"

enum { N = 1 << 14 };

__global__ void meet(gshmem_status_t *status)
{
    const gshmem_status_t one = gshmem_barrier_all_block();

    if (threadIdx.x == 0)
        *status = one;
}

__global__ void sync_team(gshmem_team_t team, gshmem_status_t *status)
{
    *status = gshmem_team_sync(team);
}

__global__ void reduce(long *dest, const long *source, gshmem_status_t *status)
{
    *status = gshmem_long_sum_reduce(GSHMEM_TEAM_WORLD, dest, source, 1);
}

__global__ void gather(char *dest, const char *source, gshmem_status_t *status)
{
    const gshmem_status_t one = gshmem_broadcastmem_block(GSHMEM_TEAM_WORLD, dest, source, N, 0);

    if (threadIdx.x == 0)
        *status = one;
}

__global__ void work_on(long *words, int pe)
{
    for (;;) {
        gshmem_long_g(words, pe);
        gshmem_long_atomic_add(words + 1, 1, pe);
        gshmem_fence();
    }
}

/* Kernels of this PE, and of another, are at work. */
static void leave_kernels_at_work(long *words, int pe)
{
    work_on<<<16, 16>>>(words, pe);
    while (!__atomic_load_n(words + 1, __ATOMIC_RELAXED))
        usleep(1000);
}

int main(int argc, char **argv)
{
    const char *call = argc > 1 ? argv[1] : "";

    setenv("GSHMEM_PEER_TIMEOUT", "20", 1); /* a tenth of it passes before kernels fail */
    CHECK_OK(gshmem_init());
    const int me = gshmem_my_pe(), n = gshmem_n_pes();
    gshmem_team_t pair;
    CHECK_OK(gshmem_team_split_strided(GSHMEM_TEAM_WORLD, n - 2, 1, 2, NULL, 0, &pair));
    char *symmetric = symmetric_array<char>(2 * N);
    if (strcmp(call, "unwaited") == 0) {
        leave_kernels_at_work((long *)symmetric, (me + 1) % n);
        return 0;
    }
    gshmem_status_t *status = shared_array<gshmem_status_t>(1);
    for (int i = 0; i < 20; i++) {
        meet<<<1, 33>>>(status);
        CHECK_LAUNCH();
        CHECK_EQ(*status, GSHMEM_OK);
    }
    if (me == n - 1) {
        if (argc > 2)
            exit(0);
        CHECK_OK(gshmem_finalize());
        return 0;
    }
    if (strcmp(call, "barrier") == 0)
        meet<<<1, 33>>>(status);
    if (strcmp(call, "team") == 0 && pair != GSHMEM_TEAM_INVALID)
        sync_team<<<1, 1>>>(pair, status);
    if (strcmp(call, "reduce") == 0)
        reduce<<<1, 1>>>((long *)symmetric, (long *)symmetric + 1, status);
    if (strcmp(call, "gather") == 0)
        gather<<<1, 33>>>(symmetric, symmetric + N, status);
    if (strcmp(call, "launch") == 0) {
        void *arguments[] = {&status};
        CHECK_OK(gshmem_collective_launch((const void *)meet, dim3(1), dim3(33), arguments, 0, 0));
    }
    CHECK_LAUNCH();
    for (;;)
        usleep(1000); /* only the line and the end that the kernels bring count */
}
