/* Time, and the pauses of a thread that waits: the part of the seam to the system that needs no
 * sockets. system.h says what the seam is for. */
#ifndef GSHMEM_BASE_CLOCK_H
#define GSHMEM_BASE_CLOCK_H

#include <stdint.h>

#ifdef GSHMEM_SIMULATED
#define SYSTEM_CALL extern
#else
#define SYSTEM_CALL static inline
#endif

#define CLOCK_MS 1000000 /* nanoseconds */

SYSTEM_CALL uint64_t clock_ns(void);         /* monotonic */
SYSTEM_CALL void clock_pause(void);          /* of a CPU that spins */
SYSTEM_CALL void clock_yield(void);          /* other threads of this CPU run first */
SYSTEM_CALL void clock_sleep(uint64_t ns);   /* shorter where a signal arrives */

#ifndef GSHMEM_SIMULATED

#include <sched.h>
#include <time.h>

static inline uint64_t clock_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline void clock_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory"); /* yield is a no-op on most cores; isb waits a little */
#endif
}

static inline void clock_yield(void)
{
    sched_yield();
}

static inline void clock_sleep(uint64_t ns)
{
    const struct timespec time = {.tv_sec = (time_t)(ns / 1000000000u),
                                  .tv_nsec = (long)(ns % 1000000000u)};

    nanosleep(&time, NULL);
}

#endif

/* The time that passes between looks, at most 100 ms of it for each: the time in which this process
 * is stopped, or has no CPU, does not count against those that it waits for. */
struct clock_looks {
    uint64_t last; /* ns; 0: there was none */
    uint64_t ns;
};

static inline uint64_t clock_looks_add(struct clock_looks *l, uint64_t now)
{
    const uint64_t passed = l->last ? now - l->last : 0;

    l->ns += passed < 100 * CLOCK_MS ? passed : 100 * CLOCK_MS;
    l->last = now;
    return l->ns;
}

#endif
