/* The lock of runtime/base/biased_lock.h: its owner takes it without an atomic step, and others end
 * that; one thread at a time, and nobody waits for ever. */
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include "../check.h"
#include "runtime/base/biased_lock.h"
#include "runtime/base/mutex.h"

enum { THREADS = 3, TURNS = 200000, OWN_TURNS = 2000000 };

static struct biased_lock lock;
static struct mutex outer;      /* who biases and revokes has it */
static uint64_t turns[2];       /* not atomic: the lock is what keeps both right, and the same */
static _Atomic uint64_t refused; /* turns that found another owner */
static _Atomic bool ends;

static void take_turn(void)
{
    CHECK_EQ(turns[0], turns[1]);
    turns[0]++;
    atomic_signal_fence(memory_order_seq_cst); /* the compiler makes both steps, in this order */
    turns[1]++;
}

static struct biased_thread *threads; /* belong to the outer lock */

/* With the outer lock: no other thread owns it any more. */
static bool disown(void)
{
    const struct biased_thread *owner = biased_lock_revoke_begin(&lock);

    if (!owner)
        return false;
    CHECK(biased_lock_fence());
    biased_thread_wait(owner);
    biased_lock_revoke_end(&lock);
    return true;
}

/* With the outer lock. */
static void bias(void)
{
    struct biased_thread *me = biased_thread_find(&threads);

    CHECK(me);
    biased_lock_bias(&lock, me);
}

/* False: this thread is not the owner. */
static bool take_own_turn(void)
{
    struct biased_thread *me = biased_lock_enter(&lock);

    if (!me)
        return false;
    take_turn();
    biased_lock_leave(me);
    return true;
}

/* As open_batches.c does: the short way, or else the outer lock, with which it becomes the owner. */
static void take_turn_somehow(bool becomes_owner)
{
    if (take_own_turn())
        return;
    if (biased_lock_take(&lock)) {
        take_turn();
        biased_lock_give(&lock);
        return;
    }
    atomic_fetch_add(&refused, 1);
    mutex_take(&outer);
    disown();
    if (biased_lock_take(&lock)) {
        take_turn();
        if (becomes_owner)
            bias();
        biased_lock_give(&lock);
    } else {
        CHECK(take_own_turn());
    }
    mutex_give(&outer);
}

static void *take_turns(void *argument)
{
    const bool becomes_owner = *(const bool *)argument;

    for (int i = 0; i < TURNS; i++)
        take_turn_somehow(becomes_owner);
    return NULL;
}

/* Makes this thread the owner, if nobody is. */
static void begin(void)
{
    mutex_take(&outer);
    disown();
    if (biased_lock_take(&lock)) {
        bias();
        biased_lock_give(&lock);
    }
    mutex_give(&outer);
}

/* All threads want it, and some become its owner whenever another one was. */
static void test_together(void)
{
    static bool becomes_owner[THREADS] = {true, false, true};
    pthread_t thread[THREADS];

    turns[0] = turns[1] = 0;
    begin();
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_create(&thread[i], NULL, take_turns, &becomes_owner[i]), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    CHECK_EQ(turns[0], (uint64_t)THREADS * TURNS);
    CHECK_EQ(turns[1], (uint64_t)THREADS * TURNS);
    CHECK(atomic_load(&refused) > 0);
    CHECK(biased_lock_is_free(&lock));
}

/* What the proxy does: takes a turn between those of the owner, again and again. */
static void *revoke_all_the_time(void *argument)
{
    uint64_t *taken = argument;

    for (*taken = 0; !atomic_load(&ends); ++*taken) {
        mutex_take(&outer);
        disown();
        CHECK(biased_lock_take(&lock));
        take_turn();
        biased_lock_give(&lock);
        mutex_give(&outer);
    }
    return NULL;
}

static void take_turn_as_owner(void)
{
    while (!take_own_turn())
        begin();
}

static void test_owner_and_revoker(void)
{
    pthread_t other;
    uint64_t taken;

    turns[0] = turns[1] = 0;
    CHECK_EQ(pthread_create(&other, NULL, revoke_all_the_time, &taken), 0);
    for (int i = 0; i < OWN_TURNS; i++)
        take_turn_as_owner();
    atomic_store(&ends, true);
    pthread_join(other, NULL);
    CHECK_EQ(turns[0], OWN_TURNS + taken);
    CHECK_EQ(turns[1], OWN_TURNS + taken);
}

static _Atomic int stage;

/* Owns the lock, is within when it says so, and stays there for a while. */
static void *stay_within(void *argument)
{
    struct biased_thread *me;

    begin();
    CHECK((me = biased_lock_enter(&lock)));
    atomic_store(&stage, 1);
    while (atomic_load(&stage) == 1)
        sched_yield();
    usleep(20000);
    atomic_store_explicit(&stage, 3, memory_order_relaxed);
    biased_lock_leave(me);
    while (atomic_load(&stage) == 3)
        sched_yield();
    CHECK(!biased_lock_enter(&lock));
    return argument;
}

/* Who revokes it waits until the owner has left; until then nobody takes it. */
static void test_revoked(void)
{
    const struct biased_thread *owner;
    pthread_t other;

    CHECK_EQ(pthread_create(&other, NULL, stay_within, NULL), 0);
    while (atomic_load(&stage) != 1)
        sched_yield();
    CHECK(!biased_lock_is_free(&lock));
    CHECK(!biased_lock_enter(&lock));
    CHECK(!biased_lock_take(&lock));
    CHECK((owner = biased_lock_revoke_begin(&lock)));
    CHECK(!biased_lock_take(&lock));
    CHECK(biased_lock_fence());
    CHECK(!biased_lock_take(&lock));
    atomic_store(&stage, 2);
    biased_thread_wait(owner);
    CHECK_EQ(atomic_load_explicit(&stage, memory_order_relaxed), 3);
    CHECK(!biased_lock_take(&lock));
    biased_lock_revoke_end(&lock);
    CHECK(biased_lock_take(&lock));
    biased_lock_give(&lock);
    atomic_store(&stage, 4);
    pthread_join(other, NULL);
    CHECK(biased_lock_is_free(&lock));
}

/* The owner keeps it for itself, and enters it as often as it likes. */
static void test_alone(void)
{
    CHECK(biased_lock_is_free(&lock));
    CHECK(!biased_lock_enter(&lock));
    CHECK(biased_lock_take(&lock));
    CHECK(!biased_lock_is_free(&lock));
    bias();
    biased_lock_give(&lock);
    for (int i = 0; i < 2; i++) {
        struct biased_thread *me = biased_lock_enter(&lock);
        CHECK(me && !biased_lock_is_free(&lock));
        biased_lock_leave(me);
    }
    CHECK(!biased_lock_take(&lock));
    CHECK(!disown()); /* it is its own */
    CHECK(biased_lock_is_free(&lock));
}

int main(void)
{
    if (!biased_lock_prepare()) {
        puts("SKIP: this system has no membarrier");
        return 77;
    }
    test_alone();
    test_revoked();
    test_owner_and_revoker();
    test_together();
    biased_threads_free(&threads);
    return 0;
}
