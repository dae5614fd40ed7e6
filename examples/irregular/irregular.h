/* What the irregular programs share: numbers that look random and are the same on all PEs, how
 * items are spread over PEs, and the end of a program. */
#ifndef IRREGULAR_H
#define IRREGULAR_H

#include <gshmem.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __CUDACC__
#define FOR_ALL static inline __host__ __device__
#else
#define FOR_ALL static inline
#endif

static int me, n; /* of the host's code; kernels ask */

/* A number for a number; programs are the same in each run, and a serial run can repeat them. */
FOR_ALL uint64_t mixed(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 29) * 0xd6e8feb86659fd93u;
    x = (x ^ x >> 32) * 0xd6e8feb86659fd93u;
    return x ^ x >> 32;
}

/* Item i is on PE i % n, at place i / n. */
FOR_ALL int home(uint64_t i)
{
    return (int)(i % (uint64_t)gshmem_n_pes());
}

FOR_ALL uint64_t place(uint64_t i)
{
    return i / (uint64_t)gshmem_n_pes();
}

static inline int begin(void)
{
    if (gshmem_init())
        return 1;
    me = gshmem_my_pe();
    n = gshmem_n_pes();
    return 0;
}

static inline void barrier(void)
{
    gshmem_raise(gshmem_barrier_all());
}

/* The sum of a number over all PEs. */
static inline long sum_of(long mine)
{
    static long in, out;

    in = mine;
    gshmem_raise(gshmem_long_sum_reduce(GSHMEM_TEAM_WORLD, &out, &in, 1));
    return out;
}

/* wrong: how many values of this PE differ from the serial run's. */
static inline int end(const char *name, long what, const char *of, long wrong)
{
    const long all_wrong = sum_of(wrong), all = sum_of(what);

    if (me == 0)
        printf("%s: %d PEs, %ld %s: %s\n", name, n, all, of, all_wrong ? "wrong" : "right");
    return gshmem_finalize() || all_wrong;
}

#endif
