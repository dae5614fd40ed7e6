/* A job of two PEs, of which PE 0 puts to PE 1. */
#define _GNU_SOURCE
#include "prefilled.h"

#include <sys/resource.h>

#include "../check.h"

void target_open(void)
{
}

void target_begin(void)
{
    CHECK_EQ(gshmem_n_pes(), 2);
}

int target_of(const struct gshmem_device_channel *c)
{
    (void)c;
    return 1;
}

const char *target_memory(int pe, uintptr_t address)
{
    return gshmem_my_pe() == pe ? (const char *)address : NULL;
}

static double cpu_seconds_of(int whose)
{
    struct rusage use;

    CHECK_EQ(getrusage(whose, &use), 0);
    return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
           1e-6 * (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
}

/* Of all threads but this one; spins are in it. */
double target_cpu_seconds(void)
{
    return cpu_seconds_of(RUSAGE_SELF) - cpu_seconds_of(RUSAGE_THREAD);
}

void target_end(void)
{
    CHECK_OK(gshmem_finalize());
}
