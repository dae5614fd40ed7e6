/* A thread of the program that runs kernels, and so writes into the trace, while the job ends: it is held up within the
 * library, and the trace stays until it has gone on. */
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include <atomic>

#include <gshmem.h>

#include "check.h"

enum { JOBS = 3, HELD_MS = 100 };

static std::atomic<bool> holds, held, ended, done;
static thread_local bool runs_kernels;

/* In place of the C library's, by which the library finds the number of a name in the trace. */
extern "C" __attribute__((visibility("default"))) int strncmp(const char *a, const char *b, size_t n) noexcept
{
    if (runs_kernels && holds.exchange(false)) {
        held = true;
        for (int i = 0; i < HELD_MS && !ended; i++) /* the job ends meanwhile, as far as it can */
            usleep(1000);
    }
    for (; n > 0; n--, a++, b++) {
        if (*a != *b || *a == 0)
            return (unsigned char)*a - (unsigned char)*b;
    }
    return 0;
}

__global__ void nothing_at_all(void)
{
}

static void *run_kernels(void *nothing)
{
    runs_kernels = true;
    while (!done) {
        nothing_at_all<<<1, 1>>>();
        CHECK(cudaDeviceSynchronize() == cudaSuccess);
    }
    return nothing;
}

int main()
{
    pthread_t thread;

    CHECK_EQ(pthread_create(&thread, NULL, run_kernels, NULL), 0);
    for (int i = 0; i < JOBS; i++) {
        CHECK_OK(gshmem_init());
        CHECK_OK(gshmem_barrier_all());
        held = ended = false;
        holds = true;
        while (!held)
            usleep(100);
        CHECK_OK(gshmem_finalize());
        ended = true;
    }
    done = true;
    CHECK_EQ(pthread_join(thread, NULL), 0);
    return 0;
}
