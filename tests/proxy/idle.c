/* The proxy's thread: it runs where GSHMEM_PROXY_CPU says, sleeps when there is nothing to do, and
 * is not there at all in programs that have no kernels. There are as many as GSHMEM_PROXIES says,
 * and all of them sleep. */
#define _GNU_SOURCE
#include <dirent.h>
#include <sched.h>
#include <sys/resource.h>

#include "kernel.h"

/* One line of a thread's file in /proc; whether it begins with `key`. */
static bool line_of(const char *thread, const char *file, const char *key, char *line, int size)
{
    char path[300];
    bool found = false;

    snprintf(path, sizeof path, "/proc/self/task/%s/%s", thread, file);
    FILE *f = fopen(path, "re");
    while (f && !found && fgets(line, size, f))
        found = strncmp(line, key, strlen(key)) == 0;
    if (f)
        fclose(f);
    return found;
}

/* How many proxies there are, and where the last may run. */
static int count_proxies(char *cpus, int size)
{
    DIR *tasks = opendir("/proc/self/task");
    struct dirent *e;
    char line[200];
    int n = 0;

    CHECK(tasks);
    while ((e = readdir(tasks))) {
        if (!line_of(e->d_name, "comm", "gshmem-proxy", line, sizeof line))
            continue;
        n++;
        if (!line_of(e->d_name, "status", "Cpus_allowed_list:", cpus, size))
            *cpus = 0; /* it has just gone */
    }
    closedir(tasks);
    return n;
}

/* One that this process may use. */
static int some_cpu(void)
{
    cpu_set_t set;
    int cpu = 0;

    CHECK_EQ(sched_getaffinity(0, sizeof set, &set), 0);
    while (!CPU_ISSET(cpu, &set))
        cpu++;
    return cpu;
}

static double cpu_seconds(void)
{
    struct rusage use;

    getrusage(RUSAGE_SELF, &use);
    return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
           1e-6 * (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
}

static void check_idle(void)
{
    usleep(100 * 1000);
    double before = cpu_seconds();
    usleep(1000 * 1000);
    /* It takes 0.002; a proxy that spins, 1. */
    double used = cpu_seconds() - before;
    if (used > 0.2)
        CHECK_FAIL("an idle second took %.3f s of CPU", used);
}

static void check_none_left(char *cpus, int size)
{
    while (count_proxies(cpus, size)) /* joined, it may be listed for a moment */
        usleep(1000);
}

int main(void)
{
    char cpus[200] = "", where[200];
    int cpu = some_cpu();

    snprintf(where, sizeof where, "%d", cpu);
    CHECK_EQ(setenv("GSHMEM_PROXY_CPU", where, 1), 0);
    CHECK_OK(gshmem_init());
    CHECK_EQ(count_proxies(cpus, sizeof cpus), 0);
    CHECK_OK(gshmem_finalize());

    gshmem_device_register(&module);
    CHECK_OK(gshmem_init());
    CHECK_EQ(count_proxies(cpus, sizeof cpus), 1);
    snprintf(where, sizeof where, "Cpus_allowed_list:\t%d\n", cpu);
    CHECK_STR(cpus, where);
    check_idle();
    CHECK_OK(gshmem_finalize());
    check_none_left(cpus, sizeof cpus);

    CHECK_EQ(unsetenv("GSHMEM_PROXY_CPU"), 0);
    CHECK_EQ(setenv("GSHMEM_PROXIES", "3", 1), 0);
    CHECK_OK(gshmem_init());
    CHECK_EQ(count_proxies(cpus, sizeof cpus), 3);
    check_idle();
    CHECK_OK(gshmem_finalize());
    check_none_left(cpus, sizeof cpus);
    return 0;
}
