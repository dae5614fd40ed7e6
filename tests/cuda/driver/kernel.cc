/* The stand-in for the library's kernel in the simulation: its source, compiled for the CPU, as a block
 * of one thread. What device code asks of the host device is answered here for such a block. */
#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* The module it is a part of is known to the library by its (simulated) GPU memory. */
#define gshmem_device_register   leave_module
#define gshmem_device_unregister leave_module
#define __CUDACC__
#define __noinline__ __attribute__((noinline))
#include "device/cuda/kernels.cu"
#include "sim.h"

extern "C" {

void leave_module(struct gshmem_device_module *)
{
}

__thread GSHMEM_HOST_READ_ONLY uint3 threadIdx = {0, 0, 0}, blockIdx = {0, 0, 0};
__thread GSHMEM_HOST_READ_ONLY dim3 blockDim = {1, 1, 1}, gridDim = {1, 1, 1};
__thread int gshmem_host_steps;

int gshmem_host_in_kernel(void)
{
    return 1;
}

unsigned gshmem_host_thread_rank(void)
{
    return 0;
}

/* By sleep: with sched_yield here two jobs at once, each in a session of its own, kept all else on the
 * machine from running for minutes (Linux 6.18: the kernel's own threads were overdue by 195 s). */
void gshmem_host_yield(void)
{
    const struct timespec moment = {0, 1};

    nanosleep(&moment, NULL);
}

void gshmem_host_progress(void)
{
}

int gshmem_host_barrier_block(enum gshmem_host_barrier, int predicate, const char *, int)
{
    return predicate;
}

int gshmem_host_once_block(int (*work)(void *), void *argument, const char *, int)
{
    return work(argument);
}

void gshmem_host_fence(void)
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

uint64_t gshmem_host_clock(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void gshmem_host_name_thread(char *text, size_t size)
{
    snprintf(text, size, "a kernel of the library's");
}

void gshmem_host_trap(const char *what, const char *file, int line)
{
    fprintf(stderr, "simulation: %s at %s:%d\n", what, file, line);
    abort();
}

void sim_perform(const struct device_request *r)
{
    gshmem_perform(*r);
}

void *sim_state(size_t *bytes)
{
    *bytes = sizeof gshmem_device_here;
    return &gshmem_device_here;
}
}
