/* Which threads of a process run (runtime/node/threads.c): of one that sleeps and one that computes, the second alone. */
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <time.h>

#include "../check.h"
#include "runtime/base/sanitizer.h"
#include "runtime/node/threads.h"

static sem_t let_go;
static atomic_bool stop, computes;

static void *sleeper(void *unused)
{
    sem_wait(&let_go);
    return unused;
}

static void *computer(void *unused)
{
    while (!atomic_load(&stop))
        atomic_store(&computes, true);
    return unused;
}

/* Within 10 s: a thread that has just begun or ended is seen as such a little later. */
static bool comes_to(bool expected)
{
    for (int i = 0; i < 10000; i++) {
        if (threads_any_runs() == expected)
            return true;
        nanosleep(&(struct timespec){.tv_nsec = 1000 * 1000}, NULL);
    }
    return false;
}

/* Whether so many threads are counted. ThreadSanitizer adds one, at the start or with the program's first. */
static bool counts(int program)
{
    const int n = threads_of_program();

    return n == program || (__tsan_ignore_thread_begin && n == program + 1);
}

int main(void)
{
    pthread_t asleep, running;

    CHECK(!threads_any_runs());
    CHECK(counts(0));
    CHECK_EQ(sem_init(&let_go, 0, 0), 0);
    CHECK_EQ(pthread_create(&asleep, NULL, sleeper, NULL), 0);
    CHECK(counts(1));
    CHECK(comes_to(false));
    CHECK_EQ(pthread_create(&running, NULL, computer, NULL), 0);
    while (!atomic_load(&computes))
        sched_yield();
    CHECK(comes_to(true));
    atomic_store(&stop, true);
    CHECK_EQ(pthread_join(running, NULL), 0);
    CHECK(comes_to(false));
    CHECK_EQ(sem_post(&let_go), 0);
    CHECK_EQ(pthread_join(asleep, NULL), 0);
    return 0;
}
