/* Small things that a kernel asks for: its place, fences, time, an end. */
#define _GNU_SOURCE
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "device/host/blocks/barrier.h"
#include "device/host/blocks/pool.h"
#include "device/host/blocks/threads.h"
#include "device/host/fibers/sanitizer.h"
#include "gshmem/host_device/cuda_runtime_api.h"
#include "runtime/base/clock.h"
#include "runtime/base/log.h"

int gshmem_host_in_kernel(void)
{
    return thread_self() != NULL;
}

unsigned gshmem_host_lane(void)
{
    return thread_self() ? thread_self()->lane : 0;
}

unsigned gshmem_host_thread_rank(void)
{
    const struct thread *self = thread_self();

    return self ? (unsigned)(self - self->block->threads) : 0;
}

/* --- Order and time --- */

char fence_clock; /* only its address is used */

void gshmem_host_fence(void)
{
    atomic_thread_fence(memory_order_seq_cst);
    order_release(&fence_clock);
    order_acquire(&fence_clock);
}

/* Volatile accesses, where the compiler tells them from others: no race with each other. */
#define VOLATILE_ACCESS(kind, bytes)                                                               \
    __attribute__((visibility("default"))) void __tsan_volatile_##kind##bytes(void *address);      \
    void __tsan_volatile_##kind##bytes(void *address)                                              \
    {                                                                                              \
        (void)address;                                                                             \
        gshmem_host_may_wait();                                                                    \
    }
VOLATILE_ACCESS(read, 1)
VOLATILE_ACCESS(read, 2)
VOLATILE_ACCESS(read, 4)
VOLATILE_ACCESS(read, 8)
VOLATILE_ACCESS(read, 16)
VOLATILE_ACCESS(write, 1)
VOLATILE_ACCESS(write, 2)
VOLATILE_ACCESS(write, 4)
VOLATILE_ACCESS(write, 8)
VOLATILE_ACCESS(write, 16)

void gshmem_host_sleep(unsigned nanoseconds)
{
    uint64_t until = clock_ns() + nanoseconds;

    do
        gshmem_host_yield();
    while (clock_ns() < until);
}

uint64_t gshmem_host_clock(void)
{
    return clock_ns();
}

static _Noreturn void end_launch(struct thread *self, cudaError_t error, const char *what,
                                 const char *file, int line)
{
    log_error("kernel %s: %s at %s:%d, block (%u,%u,%u), thread (%u,%u,%u); the launch fails",
              self->block->grid->name, what, file, line, self->block->index.x,
              self->block->index.y, self->block->index.z, self->index.x, self->index.y,
              self->index.z);
    grid_fail_for(self->block->grid, (int)error);
    thread_drop(self);
}

void gshmem_host_name_thread(char *text, size_t size)
{
    const struct thread *t = thread_self();

    if (t)
        snprintf(text, size, "kernel %s, block (%u,%u,%u), thread (%u,%u,%u)", t->block->grid->name,
                 t->block->index.x, t->block->index.y, t->block->index.z, t->index.x, t->index.y,
                 t->index.z);
    else
        snprintf(text, size, "a kernel");
}

void gshmem_host_trap(const char *what, const char *file, int line)
{
    struct thread *self = thread_self();

    if (!self) {
        log_error("%s at %s:%d, outside of a kernel", what, file, line);
        abort();
    }
    end_launch(self, cudaErrorLaunchFailure, what, file, line);
}

void gshmem_host_assert_fail(const char *assertion, const char *file, unsigned line,
                             const char *function)
{
    struct thread *self = thread_self();
    char what[400];

    if (!self)
        __assert_fail(assertion, file, line, function);
    snprintf(what, sizeof what, "assertion `%s' failed", assertion);
    end_launch(self, cudaErrorAssert, what, file, (int)line);
}

int gshmem_host_grid_is_cooperative(void)
{
    return thread_self() && thread_self()->block->grid->cooperative;
}
