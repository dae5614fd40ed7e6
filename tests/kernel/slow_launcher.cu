/* A launcher that is slow to tell how a PE is reached holds up the kernel that wants to know, and nobody else: the host
 * talks to a PE that is known already, meanwhile. pe/slow_launcher.c is the same between threads of the host.
 *
 * Six PEs of two hosts under gshmemrun. What the launcher says of PE 4 is held back, in whichever thread asks it, until
 * the host has had its answer of PE 3. */
#include <poll.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

#include "kernel.h"

static std::atomic<bool> holds, asks, answered;
static pthread_t host;

/* The library waits for the launcher by ppoll of the wire alone. */
extern "C" __attribute__((visibility("default"))) int
ppoll(struct pollfd *fds, nfds_t many, const struct timespec *most, const sigset_t *mask)
{
    const char *wire = getenv("GSHMEM_RUN_WIRE");
    struct timespec left;

    if (many == 1 && wire && fds->fd == atoi(wire) && holds &&
        !pthread_equal(pthread_self(), host)) {
        asks = true;
        while (!answered)
            usleep(1000);
    }
    if (most)
        left = *most; /* the system changes it */
    return (int)syscall(SYS_ppoll, fds, many, most ? &left : nullptr, mask, sizeof(uint64_t));
}

__global__ void meet_another(long *cell, struct found *found)
{
    EXPECT(found, gshmem_long_p(cell, 7, 4), GSHMEM_OK);
    EXPECT(found, gshmem_quiet(), GSHMEM_OK);
}

int main(void)
{
    CHECK_OK(gshmem_init());
    struct found *found = shared_array<struct found>(1);
    long *cell = symmetric_array<long>(1);
    const int me = gshmem_my_pe();

    CHECK_EQ(gshmem_n_pes(), 6);
    *cell = 5;
    CHECK_OK(gshmem_barrier_all());
    if (me == 0) {
        CHECK_EQ(gshmem_long_g(cell, 3), 5);
        host = pthread_self();
        holds = true;
        meet_another<<<1, 1>>>(cell, found);
        while (!asks)
            usleep(1000);
        CHECK_EQ(gshmem_long_g(cell, 3), 5);
        answered = true;
        CHECK_FOUND(found);
        holds = false;
    }
    CHECK_OK(gshmem_barrier_all());
    CHECK_EQ(*cell, me == 4 ? 7 : 5);
    CHECK_OK(gshmem_finalize());
    return 0;
}
