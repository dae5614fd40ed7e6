/* The lock of runtime/base/mutex.h: one thread at a time, and nobody left asleep. */
#include <pthread.h>
#include <sched.h>

#include "../check.h"
#include "runtime/base/mutex.h"

enum { THREADS = 4, TURNS = 5000 };

static struct mutex mutex;
static uint64_t turns;         /* not atomic: the mutex is what keeps it right */
static _Atomic int within;     /* threads that hold the mutex */
static _Atomic bool overlapped;

static void take_turn(int i)
{
    /* relaxed: nothing but the mutex may order the turns */
    if (atomic_fetch_add_explicit(&within, 1, memory_order_relaxed) != 0)
        atomic_store(&overlapped, true);
    turns++;
    if (i % 64 == 0)
        sched_yield(); /* while it is held, so that the others find it taken, and sleep */
    atomic_fetch_sub_explicit(&within, 1, memory_order_relaxed);
}

static void *take_turns(void *argument)
{
    const int tries = *(const int *)argument;

    for (int i = 0; i < TURNS; i++) {
        if (!tries || !mutex_try(&mutex))
            mutex_take(&mutex);
        take_turn(i);
        mutex_give(&mutex);
    }
    return NULL;
}

static void test_alone(void)
{
    mutex_take(&mutex);
    CHECK(!mutex_try(&mutex));
    mutex_give(&mutex);
    CHECK(mutex_try(&mutex));
    mutex_give(&mutex);
    CHECK_EQ(atomic_load(&mutex.state), MUTEX_FREE);
}

/* Half of them try first. */
static void test_together(void)
{
    static int tries[THREADS] = {0, 1, 0, 1};
    pthread_t thread[THREADS];

    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_create(&thread[i], NULL, take_turns, &tries[i]), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    CHECK(!atomic_load(&overlapped));
    CHECK_EQ(turns, THREADS * TURNS);
    CHECK(mutex_try(&mutex));
}

int main(void)
{
    test_alone();
    test_together();
    return 0;
}
