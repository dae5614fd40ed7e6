/* What the machine itself takes for the work behind a benchmark, no library in between: the floor
 * that no library gets under. CSV, as gshmem-perf prints it. Two processes share an anonymous
 * mapping; each is bound to a CPU of its own where there are two. */
#define _GNU_SOURCE
#include <sched.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 21, BUFFER = 8 << 20, MIB = 1 << 20 };

struct shared {
    _Alignas(64) _Atomic long ping;
    _Alignas(64) _Atomic long pong;
    _Alignas(64) _Atomic long word;
    _Alignas(4096) char source[BUFFER];
    char dest[BUFFER];
};

static struct shared *shared;

static double now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

static cpu_set_t allowed; /* when the program began */

/* Binds to the cpu-th of the CPUs allowed. */
static void bind_to(int cpu)
{
    cpu_set_t one;

    CPU_ZERO(&one);
    for (int i = 0, seen = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &allowed) && seen++ == cpu)
            CPU_SET(i, &one);
    sched_setaffinity(0, sizeof(one), &one);
}

/* ---- One process ---- */

static void store_8(long n)
{
    for (long i = 0; i < n; i++) {
        memcpy(shared->dest + (i & 63) * 64, shared->source + (i & 63) * 64, 8);
        __asm__ volatile("" ::: "memory");
    }
}

static void copy_1m(long n)
{
    for (long i = 0; i < n; i++) {
        memcpy(shared->dest + (i & 3) * MIB, shared->source + (i & 3) * MIB, MIB);
        __asm__ volatile("" ::: "memory");
    }
}

static void sum_1m(long n)
{
    for (long i = 0; i < n; i++) {
        const long *a = (const long *)(shared->source + (i & 3) * MIB);
        const long *b = (const long *)(shared->source + 4 * MIB + (i & 3) * MIB);
        long *to = (long *)(shared->dest + (i & 3) * MIB);
        for (long j = 0; j < MIB / (long)sizeof(long); j++)
            to[j] = a[j] + b[j];
        __asm__ volatile("" ::: "memory");
    }
}

static void locked_add(long n)
{
    for (long i = 0; i < n; i++)
        atomic_fetch_add_explicit(&shared->word, 1, memory_order_relaxed);
}

static void process(long n)
{
    static char *argv[] = {"true", NULL};

    for (long i = 0; i < n; i++) {
        pid_t child;
        if (posix_spawn(&child, "/bin/true", NULL, NULL, argv, environ)) {
            perror("floor: /bin/true");
            exit(1);
        }
        waitpid(child, NULL, 0);
    }
}

/* ---- Two processes: this one and a child that answers until it sees -1 ---- */

static void answer(int cpu, void (*pause)(void))
{
    bind_to(cpu);
    for (long turn = 1;; turn++) {
        long seen;
        while ((seen = atomic_load_explicit(&shared->ping, memory_order_acquire)) < turn) {
            if (seen < 0)
                _exit(0);
            pause();
        }
        atomic_store_explicit(&shared->pong, turn, memory_order_release);
    }
}

static void (*rest)(void);
static long turn;

static void ping(long n)
{
    for (long i = 0; i < n; i++) {
        atomic_store_explicit(&shared->ping, ++turn, memory_order_release);
        while (atomic_load_explicit(&shared->pong, memory_order_acquire) != turn)
            rest();
    }
}

static void pause_cpu(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

static void pause_yield(void)
{
    sched_yield();
}

/* ---- */

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void measure(const char *name, void (*loop)(long n), double steps, size_t size)
{
    double ns[ROUNDS];
    long n = 1;

    loop(1); /* page faults, and the other process's start */
    for (;; n *= 2) {
        double begin = now_ns();
        loop(n);
        if (now_ns() - begin > 400e3)
            break;
    }
    for (int i = 0; i < ROUNDS; i++) {
        double begin = now_ns();
        loop(n);
        ns[i] = (now_ns() - begin) / (double)n / steps;
    }
    qsort(ns, ROUNDS, sizeof(ns[0]), compare);
    printf("%s,%zu,ns,%.6g,%.6g,%.6g\n", name, size, ns[ROUNDS / 2], ns[0], ns[ROUNDS - 1]);
    fflush(stdout);
}

static void measure_pair(const char *name, int cpu, void (*pause)(void))
{
    atomic_store(&shared->ping, 0);
    atomic_store(&shared->pong, 0);
    turn = 0;
    rest = pause;
    pid_t child = fork();
    if (child < 0) {
        perror("floor: fork");
        exit(1);
    }
    if (child == 0)
        answer(cpu, pause);
    measure(name, ping, 2, 0);
    atomic_store(&shared->ping, -1);
    waitpid(child, NULL, 0);
}

int main(void)
{
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) {
        perror("floor: mmap");
        return 1;
    }
    memset(shared, 1, sizeof(*shared));
    CPU_ZERO(&allowed);
    sched_getaffinity(0, sizeof(allowed), &allowed);
    bind_to(0);
    printf("name,size,unit,median,min,max\n");
    measure("store", store_8, 1, 8);
    measure("copy", copy_1m, 1, MIB);
    measure("sum", sum_1m, 1, MIB);
    measure("locked_add", locked_add, 1, 8);
    if (CPU_COUNT(&allowed) > 1)
        measure_pair("line_transfer", 1, pause_cpu);
    measure_pair("switch_by_yield", 0, pause_yield);
    measure("process", process, 1, 0);
    return 0;
}
