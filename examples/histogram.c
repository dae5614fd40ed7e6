/* How do I update memory that all PEs write to? The bins of one histogram are spread over the PEs;
 * whoever draws a value adds to its bin, wherever that is, with an atomic. */
#include <gshmem.h>
#include <stdio.h>

enum { BINS_PER_PE = 64, VALUES_PER_PE = 1000000 };

static long bin[BINS_PER_PE]; /* my part of the histogram */
static long counted, all_counted;

static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

int main(void)
{
    if (gshmem_init())
        return 1;
    int me = gshmem_my_pe(), n = gshmem_n_pes();
    uint32_t random = 12345u + (uint32_t)me;

    for (int i = 0; i < VALUES_PER_PE; i++) {
        int which = (int)(next_random(&random) % (uint32_t)(BINS_PER_PE * n));
        gshmem_raise(gshmem_long_atomic_inc(&bin[which % BINS_PER_PE], which / BINS_PER_PE));
    }
    gshmem_raise(gshmem_barrier_all()); /* all updates of all PEs are done */

    for (int i = 0; i < BINS_PER_PE; i++)
        counted += bin[i];
    gshmem_raise(gshmem_long_sum_reduce(GSHMEM_TEAM_WORLD, &all_counted, &counted, 1));
    int failed = all_counted != (long)VALUES_PER_PE * n;
    if (me == 0)
        printf("histogram: %d PEs drew %ld values and counted %ld: %s\n", n,
               (long)VALUES_PER_PE * n, all_counted, failed ? "wrong" : "right");
    return gshmem_finalize() || failed;
}
