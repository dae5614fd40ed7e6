/* PEs of a node whose affinity masks differ: all of them decide alike whether the node is oversubscribed, and meet
 * in the same way. The machine is played: it has CPUS_ONLINE CPUs, this PE may use CPUS_ALLOWED of them, and
 * the last PE CPUS_LAST. The line of GSHMEM_LOG=info tells what the PEs found. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sched.h>

#include "gshmem.h"

#include "check.h"

static int number(const char *name)
{
    const char *text = getenv(name);

    CHECK(text != NULL);
    return atoi(text);
}

/* The library calls these instead of the system's. */
#pragma GCC visibility push(default)
int sched_getaffinity(pid_t pid, size_t bytes, cpu_set_t *mask)
{
    const char *pe = getenv("GSHMEM_RUN_PE"), *n = getenv("GSHMEM_RUN_NPES");
    int cpus = number(pe && n && atoi(pe) == atoi(n) - 1 ? "CPUS_LAST" : "CPUS_ALLOWED");

    CHECK(pid == 0);
    memset(mask, 0, bytes);
    for (int i = 0; i < cpus; i++)
        CPU_SET_S(i, bytes, mask);
    return 0;
}

int sched_setaffinity(pid_t pid, size_t bytes, const cpu_set_t *mask)
{
    return pid == 0 && bytes > 0 && mask ? 0 : -1;
}

long sysconf(int name)
{
    long (*real)(int) = (long (*)(int))dlsym(RTLD_NEXT, "sysconf");

    return name == _SC_NPROCESSORS_ONLN ? number("CPUS_ONLINE") : real(name);
}

#pragma GCC visibility pop

static int64_t sum, one = 1;

int main(void)
{
    CHECK_OK(gshmem_init());
    CHECK_OK(gshmem_barrier_all());
    CHECK_OK(gshmem_reduce(GSHMEM_TEAM_WORLD, GSHMEM_TYPE_INT64, GSHMEM_OP_SUM, &sum, &one, 1));
    CHECK_EQ(sum, gshmem_n_pes());
    return gshmem_finalize();
}
