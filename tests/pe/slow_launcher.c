/* A launcher that is slow to tell how a PE is reached holds up who wants to know, and nobody else: another thread
 * talks to a PE that is known already, meanwhile. Who wants to know is a thread that talks to that PE first (PE 0), or
 * the proxy, as that PE begins to talk to this one (PE 1).
 *
 * Six PEs of two hosts under gshmemrun. In start-up the first PEs of the hosts have met, and all have asked of the last
 * PE; what the launcher says of another is held back here, in one thread, until the other thread has had its answer. */
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>

#include "pe.h"

static long cell = 5;
static atomic_bool asks, answered, holds_proxy;
static _Thread_local bool held, is_main;

/* The library waits for the launcher by ppoll of the wire alone. */
__attribute__((visibility("default"))) int
ppoll(struct pollfd *fds, nfds_t many, const struct timespec *most, const sigset_t *mask)
{
    const char *wire = getenv("GSHMEM_RUN_WIRE");
    struct timespec left;

    if (many == 1 && wire && fds->fd == atoi(wire) && (held || (atomic_load(&holds_proxy) && !is_main))) {
        held = false;
        atomic_store(&asks, true);
        while (!atomic_load(&answered))
            usleep(1000);
    }
    if (most)
        left = *most; /* the system changes it */
    return (int)syscall(SYS_ppoll, fds, many, most ? &left : NULL, mask, sizeof(uint64_t));
}

static void *meet_another(void *nothing)
{
    held = true;
    CHECK_OK(gshmem_long_p(&cell, 7, 4));
    held = false;
    return nothing;
}

static void until_asked(void)
{
    while (!atomic_load(&asks))
        usleep(1000);
}

int main(void)
{
    gshmem_init_attr_t attr = {.thread_level = GSHMEM_THREAD_MULTIPLE};
    pthread_t thread;

    is_main = true;
    CHECK_OK(gshmem_init_attr(&attr));
    me = gshmem_my_pe();
    CHECK_EQ(gshmem_n_pes(), 6);
    CHECK_OK(gshmem_barrier_all());
    if (me == 0) {
        CHECK_EQ(gshmem_long_g(&cell, 3), 5);
        CHECK_EQ(pthread_create(&thread, NULL, meet_another, NULL), 0);
        until_asked();
        CHECK_EQ(gshmem_long_g(&cell, 3), 5);
        atomic_store(&answered, true);
        CHECK_EQ(pthread_join(thread, NULL), 0);
    }
    if (me == 1) {
        CHECK_EQ(gshmem_long_g(&cell, 5), 5);
        atomic_store(&holds_proxy, true);
    }
    CHECK_OK(gshmem_barrier_all());
    if (me == 4)
        CHECK_OK(gshmem_long_p(&cell, 9, 1));
    if (me == 1) {
        until_asked();
        CHECK_EQ(gshmem_long_g(&cell, 5), 5);
        atomic_store(&answered, true);
    }
    CHECK_OK(gshmem_barrier_all());
    CHECK_EQ(cell, me == 4 ? 7 : me == 1 ? 9 : 5);
    CHECK_OK(gshmem_finalize());
    return 0;
}
