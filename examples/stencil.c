/* How do I exchange halos without a barrier in every step? Heat spreads along a ring of cells, cut
 * into one piece per PE. Each PE puts its edge cells into its neighbours' halos together with the
 * number of the step, and waits only for its own two halos. */
#include <gshmem.h>
#include <stdio.h>
#include <stdlib.h>

enum { CELLS = 100, STEPS = 500 }; /* of each PE */

static double start_value(int cell)
{
    return cell % 97 == 0 ? 1000.0 : cell % 7;
}

/* The same on one PE, to compare with. */
static double *serial(int n)
{
    int all = n * CELLS;
    double *now = malloc(sizeof *now * (size_t)all), *next = malloc(sizeof *next * (size_t)all);

    if (!now || !next)
        exit(1);
    for (int i = 0; i < all; i++)
        now[i] = start_value(i);
    for (int step = 0; step < STEPS; step++) {
        for (int i = 0; i < all; i++)
            next[i] = 0.5 * now[i] + 0.25 * (now[(i + all - 1) % all] + now[(i + 1) % all]);
        double *swap = now;
        now = next;
        next = swap;
    }
    free(next);
    return now;
}

int main(void)
{
    if (gshmem_init())
        return 1;
    int me = gshmem_my_pe(), n = gshmem_n_pes(), left = (me + n - 1) % n, right = (me + 1) % n;

    /* Two of each: a neighbour can be one step ahead, and puts its halo into the other one then. */
    double *cell[2] = {gshmem_calloc(CELLS + 2, sizeof(double)),
                       gshmem_calloc(CELLS + 2, sizeof(double))};
    uint64_t *arrived = gshmem_calloc(2, sizeof(uint64_t)); /* steps seen from left and right */
    if (!cell[0] || !cell[1] || !arrived)
        return 1;

    for (int i = 0; i < CELLS; i++)
        cell[0][i + 1] = start_value(me * CELLS + i);
    for (uint64_t step = 1; step <= STEPS; step++) {
        double *now = cell[(step - 1) % 2], *next = cell[step % 2];
        gshmem_raise(gshmem_double_put_signal(&now[0], &now[CELLS], 1, &arrived[0], step,
                                              GSHMEM_SIGNAL_SET, right));
        gshmem_raise(gshmem_double_put_signal(&now[CELLS + 1], &now[1], 1, &arrived[1], step,
                                              GSHMEM_SIGNAL_SET, left));
        gshmem_signal_wait_until(&arrived[0], GSHMEM_CMP_GE, step);
        gshmem_signal_wait_until(&arrived[1], GSHMEM_CMP_GE, step);
        for (int i = 1; i <= CELLS; i++)
            next[i] = 0.5 * now[i] + 0.25 * (now[i - 1] + now[i + 1]);
    }

    static int wrong, all_wrong;
    double *expected = serial(n);
    for (int i = 0; i < CELLS; i++)
        wrong += cell[STEPS % 2][i + 1] != expected[me * CELLS + i];
    free(expected);
    gshmem_raise(gshmem_int_sum_reduce(GSHMEM_TEAM_WORLD, &all_wrong, &wrong, 1));
    if (me == 0)
        printf("stencil: %d steps over %d cells on %d PEs, %d cells differ from one PE's: %s\n",
               STEPS, n * CELLS, n, all_wrong, all_wrong ? "wrong" : "right");
    gshmem_raise(gshmem_free(arrived));
    gshmem_raise(gshmem_free(cell[1]));
    gshmem_raise(gshmem_free(cell[0]));
    return gshmem_finalize() || all_wrong;
}
