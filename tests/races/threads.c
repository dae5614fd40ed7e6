/* GSHMEM_CHECK=races beside code of the program that runs where nobody expects it, on 2 PEs:
 * loads and stores of a thread that never calls GSHMEM, while the job begins and ends; those of a
 * signal handler; and errno. All static variables are symmetric, so that all of them are
 * followed. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/time.h>

#include "gshmem.h"

#include "check.h"

static long counted, caught, data[8], box[8];
static atomic_bool stop;

static void *count(void *unused)
{
    (void)unused;
    while (!atomic_load_explicit(&stop, memory_order_relaxed))
        counted++;
    return NULL;
}

static void jobs_begin_and_end(void)
{
    pthread_t thread;

    CHECK_EQ(pthread_create(&thread, NULL, count, NULL), 0);
    for (int i = 0; i < 4; i++) {
        CHECK_OK(gshmem_init());
        CHECK_OK(gshmem_barrier_all());
        CHECK_OK(gshmem_finalize());
    }
    atomic_store(&stop, true);
    CHECK_EQ(pthread_join(thread, NULL), 0);
}

static void keeps_errno(void)
{
    volatile int *error = &errno; /* the compiler must not know that a store leaves it alone */

    *error = 77;
    data[1] = 1; /* the first access at this place, which is looked up */
    CHECK_EQ(*error, 77);
}

static void catch_signal(int number)
{
    caught += number == SIGALRM;
}

static long caught_now(void)
{
    return *(volatile long *)&caught;
}

/* The handler interrupts accesses and operations of the thread that it runs in. */
static void handler_stores(void)
{
    const struct itimerval often = {{0, 500}, {0, 500}}, never = {{0, 0}, {0, 0}};
    long before;

    signal(SIGALRM, catch_signal);
    raise(SIGALRM); /* its places are looked up here */
    before = caught_now();
    CHECK_EQ(setitimer(ITIMER_REAL, &often, NULL), 0);
    for (int i = 0; i < 5000 || caught_now() < before + 20; i++) {
        data[i % 8] += i;
        CHECK_OK(gshmem_long_p(&box[i % 8], i, 1 - gshmem_my_pe()));
    }
    CHECK_EQ(setitimer(ITIMER_REAL, &never, NULL), 0);
}

int main(void)
{
    jobs_begin_and_end();
    CHECK_OK(gshmem_init());
    keeps_errno();
    handler_stores();
    CHECK_OK(gshmem_finalize());
    return 0;
}
