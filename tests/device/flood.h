/* The signal that interrupts plain loops, sent faster than it can be handled, by a thread of its own; the device's
 * workers get all of them. It pauses now and then, or those would get no further where it never has to wait. */
#ifndef GSHMEM_TESTS_DEVICE_FLOOD_H
#define GSHMEM_TESTS_DEVICE_FLOOD_H

#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "device.h"

enum { FLOOD_BURST = 200, FLOOD_PAUSE_NS = 50000 };

static int flood_over;
static pthread_t flood_sender;

static void *flood(void *)
{
    const struct timespec pause = {0, FLOOD_PAUSE_NS};

    while (!__atomic_load_n(&flood_over, __ATOMIC_RELAXED)) {
        for (int i = 0; i < FLOOD_BURST; i++)
            CHECK_EQ(kill(getpid(), SIGURG), 0);
        nanosleep(&pause, nullptr);
    }
    return nullptr;
}

static void flood_begin(void)
{
    sigset_t urgent;

    sigemptyset(&urgent);
    sigaddset(&urgent, SIGURG);
    CHECK_EQ(pthread_sigmask(SIG_BLOCK, &urgent, nullptr), 0);
    CHECK_EQ(pthread_create(&flood_sender, nullptr, flood, nullptr), 0);
}

static void flood_end(void)
{
    __atomic_store_n(&flood_over, 1, __ATOMIC_RELAXED);
    CHECK_EQ(pthread_join(flood_sender, nullptr), 0);
}

#endif
