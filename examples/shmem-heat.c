/* How does heat spread along a rod, in OpenSHMEM? Each PE has a piece of it and hands its ends to its
 * neighbours in every step, by a put with a signal; a reduction tells how much there is in all. */
#include <math.h>
#include <shmem.h>
#include <stdio.h>

enum { CELLS = 1000, STEPS = 500 };

/* Two generations of my cells, with a neighbour's at either end; and how far those have come. */
static double rod[2][CELLS + 2];
static uint64_t left_is_at, right_is_at;

static double heat_of(const double *cell)
{
    static double mine, all;

    mine = 0;
    for (int i = 1; i <= CELLS; i++)
        mine += cell[i];
    shmem_double_sum_reduce(SHMEM_TEAM_WORLD, &all, &mine, 1);
    return all;
}

int main(void)
{
    shmem_init();
    int me = shmem_my_pe(), n = shmem_n_pes(), left = (me + n - 1) % n, right = (me + 1) % n;

    if (me == 0)
        rod[0][CELLS / 2] = 1000;
    double before = heat_of(rod[0]);
    for (uint64_t step = 0; step < STEPS; step++) {
        double *now = rod[step % 2], *then = rod[(step + 1) % 2];
        /* Neighbours are never more than a step apart, so two generations are enough. */
        shmem_double_put_signal(&now[CELLS + 1], &now[1], 1, &right_is_at, step + 1,
                                SHMEM_SIGNAL_SET, left);
        shmem_double_put_signal(&now[0], &now[CELLS], 1, &left_is_at, step + 1, SHMEM_SIGNAL_SET,
                                right);
        shmem_signal_wait_until(&left_is_at, SHMEM_CMP_GE, step + 1);
        shmem_signal_wait_until(&right_is_at, SHMEM_CMP_GE, step + 1);
        for (int i = 1; i <= CELLS; i++)
            then[i] = now[i] + 0.25 * (now[i - 1] - 2 * now[i] + now[i + 1]);
    }
    double after = heat_of(rod[STEPS % 2]), lost = fabs(after - before);
    if (me == 0)
        printf("%d PEs: heat %.6f before, %.6f after %d steps\n", n, before, after, STEPS);
    shmem_finalize();
    return lost > 1e-9;
}
