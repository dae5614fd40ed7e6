/* Litmus tests: many rounds of a few operations on two PEs or more, between which an order, or that
 * something is complete, is promised; what was promised is checked in each round.
 *
 * Rounds run inside one kernel. Sizes, places and delays come from a seed, which is printed when
 * something is wrong; with it the program does the same again, as far as the machine lets it:
 *
 *     PROGRAM [ROUNDS [SEED]] */
#ifndef GSHMEM_TESTS_LITMUS_H
#define GSHMEM_TESTS_LITMUS_H

#include <time.h>

#include "kernel/kernel.h"

struct litmus {
    uint64_t seed; /* the same on all PEs */
    int rounds;
    struct found *found;
};

/* Joins the job. */
static struct litmus litmus_begin(int argc, char **argv)
{
    struct litmus l = {};

    CHECK_OK(gshmem_init());
    uint64_t *seed = symmetric_array<uint64_t>(1);
    if (gshmem_my_pe() == 0) {
        set_value(seed, argc > 2 ? (uint64_t)strtoull(argv[2], NULL, 0)
                                 : mixed((uint64_t)time(NULL)) % 1000000);
        for (int pe = 1; pe < gshmem_n_pes(); pe++)
            CHECK_OK(gshmem_putmem(seed, seed, sizeof *seed, pe));
    }
    CHECK_OK(gshmem_barrier_all());
    l.seed = value_at(seed);
    l.rounds = argc > 1 ? atoi(argv[1]) : 10000;
    l.found = shared_array<struct found>(1);
    CHECK(l.rounds > 0);
    CHECK_OK(gshmem_free(seed));
    return l;
}

/* After each test: kernels have ended and found nothing wrong, here and everywhere. */
static void litmus_check(const struct litmus *l, const char *test)
{
    CHECK_LAUNCH();
    if (l->found->wrong)
        CHECK_FAIL("%s: line %d: got %llu, expected %llu; %u times wrong; seed %llu", test,
                   l->found->line, l->found->got, l->found->expected, l->found->wrong,
                   (unsigned long long)l->seed);
    CHECK_OK(gshmem_barrier_all());
}

static void litmus_end(struct litmus *l)
{
    CHECK_CUDA(cudaFree(l->found));
    CHECK_OK(gshmem_finalize());
}

/* For all threads of a grid: none goes on before kernels of all PEs have come. `start` is symmetric,
 * and 0. Without it a short kernel is over before another PE's begins. */
static __device__ inline void litmus_start(uint64_t *start, struct found *found)
{
    const uint64_t n = gshmem_n_pes();

    if (blockIdx.x == 0 && threadIdx.x == 0) {
        for (int pe = 0; pe < (int)n; pe++)
            EXPECT(found, gshmem_signal_add(start, 1, pe), GSHMEM_OK);
    }
    EXPECT(found, gshmem_signal_wait_until(start, GSHMEM_CMP_GE, n), n);
}

/* Now and then a short while, so that the sides meet in other ways. */
static __host__ __device__ inline void litmus_delay(uint64_t seed, uint64_t round)
{
    uint64_t random = mixed2(seed ^ UINT64_C(0xdead), round);

    for (volatile unsigned i = random % 4 ? 0 : (unsigned)(random >> 8) % 500; i > 0; i = i - 1)
        ;
}

#endif
