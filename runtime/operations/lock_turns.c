#include "runtime/operations/lock_turns.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "gshmem.h"
#include "runtime/base/log.h"
#include "runtime/job/job.h"
#include "runtime/job/thread.h"
#include "runtime/network/wait.h"
#include "runtime/network/wait_shown.h"
#include "runtime/where/record.h"

/* A thread that has a lock, or waits for its turn to enter; in the order of arrival. */
struct lock_turn {
    long *lock;
    uint64_t thread; /* its lock_name */
    _Atomic bool has_come;
    struct lock_turn *next;
};

/* This thread's number in turns. A pthread_t would not do: the system gives it again to a later
 * thread, while a thread that has ended still has the lock. */
static uint64_t lock_thread(void)
{
    static _Atomic uint64_t last;

    if (!this_thread.lock_name) /* relaxed: the numbers differ, and order nothing */
        this_thread.lock_name = atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
    return this_thread.lock_name;
}

/* The first turn for that lock, or the end of the list; the caller holds job->lock. */
static struct lock_turn **find_turn(long *lock)
{
    struct lock_turn **at = &job->turns;

    while (*at && (*at)->lock != lock)
        at = &(*at)->next;
    return at;
}

/* turn is NULL: the thread that has the lock. */
void lock_end_turn(long *lock, struct lock_turn *turn)
{
    if (job->thread_level < GSHMEM_THREAD_MULTIPLE)
        return;
    pthread_mutex_lock(&job->lock);
    struct lock_turn **at = find_turn(lock);
    while (*at && turn && *at != turn)
        at = &(*at)->next;
    turn = *at;
    if (turn)
        *at = turn->next;
    struct lock_turn *first = *find_turn(lock);
    if (first) /* release: pairs with the acquire in lock_wait_for_turn */
        atomic_store_explicit(&first->has_come, true, memory_order_release);
    pthread_mutex_unlock(&job->lock);
    free(turn);
}

/* Appends the turn; *before: the thread that has the lock, or the turn before this one. NULL: no
 * memory. */
static struct lock_turn *join_turns(long *lock, bool *is_first, uint64_t *before)
{
    struct lock_turn *turn = calloc(1, sizeof *turn);

    if (!turn)
        return NULL;
    turn->lock = lock;
    turn->thread = lock_thread();
    pthread_mutex_lock(&job->lock);
    struct lock_turn **at = find_turn(lock);
    *is_first = !*at;
    *before = *at ? (*at)->thread : turn->thread;
    while (*at)
        at = &(*at)->next;
    *at = turn;
    pthread_mutex_unlock(&job->lock);
    return turn;
}

static void show_turn(const struct wait *w, struct where_wait *record)
{
    record->kind = WHERE_THREAD;
    wait_show_object(record, w->object, sizeof(long));
    snprintf(record->text, sizeof record->text,
             "another thread of this PE has it, or is before it");
}

/* Other threads of this PE detect by themselves that the PE they wait for has died. */
static gshmem_status_t lock_wait_for_turn(struct lock_turn *turn)
{
    gshmem_status_t status = GSHMEM_OK;
    struct wait w;

    wait_begin(&w, "gshmem_set_lock", WAIT_FOR_NETWORK);
    wait_for_object(&w, show_turn, turn->lock);
    while (!status &&
           !atomic_load_explicit(&turn->has_come, memory_order_acquire)) /* lock_end_turn */
        status = wait_step(&w);
    wait_end(&w);
    return status;
}

gshmem_status_t lock_fail_held(const char *call)
{
    return fail(GSHMEM_ERR_STATE, "%s: this PE holds the lock already, and would wait for itself",
                call);
}

gshmem_status_t lock_take_turn(long *lock, bool may_wait, bool *busy)
{
    gshmem_status_t status = GSHMEM_OK;
    uint64_t before;
    bool first;

    *busy = false;
    if (job->thread_level < GSHMEM_THREAD_MULTIPLE)
        return GSHMEM_OK;
    struct lock_turn *turn = join_turns(lock, &first, &before);
    if (!turn)
        return fail(GSHMEM_ERR_MEMORY, "gshmem_set_lock: out of memory");
    if (first)
        return GSHMEM_OK;
    if (!may_wait)
        *busy = true;
    else if (before == lock_thread())
        status = lock_fail_held("gshmem_set_lock");
    else
        status = lock_wait_for_turn(turn);
    if (*busy || status)
        lock_end_turn(lock, turn);
    return status;
}

void lock_stop(struct job *j)
{
    while (j->turns) {
        struct lock_turn *turn = j->turns;
        j->turns = turn->next;
        free(turn);
    }
}
