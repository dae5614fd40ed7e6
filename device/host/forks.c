#include "device/host/forks.h"

#include <stddef.h>

#include "device/host/errors.h"

/* One for the process: it is a process that forks. */
static struct {
    struct fork_lock *locks;
    struct fork_part *parts;
    pthread_once_t held, watched;
    bool child;
} forks = {.held = PTHREAD_ONCE_INIT, .watched = PTHREAD_ONCE_INIT};

/* --- Locks, of the parent and the child --- */

static void forks_take_locks(void)
{
    for (struct fork_lock *l = forks.locks; l; l = l->next)
        pthread_mutex_lock(l->lock);
}

static void forks_release_locks(void)
{
    for (struct fork_lock *l = forks.locks; l; l = l->next)
        pthread_mutex_unlock(l->lock);
}

static void forks_register_locks(void)
{
    pthread_atfork(forks_take_locks, forks_release_locks, forks_release_locks);
}

void forks_hold(struct fork_lock *lock)
{
    lock->next = forks.locks;
    forks.locks = lock;
    pthread_once(&forks.held, forks_register_locks);
}

/* --- Threads, which the child has not --- */

void forks_add(struct fork_part *part)
{
    part->next = forks.parts;
    forks.parts = part;
}

static void forks_leave_parent(void)
{
    forks.child = true;
    for (struct fork_part *part = forks.parts; part; part = part->next)
        part->leave_parent();
    device_failed(cudaErrorInitializationError);
}

static void forks_register(void)
{
    pthread_atfork(NULL, NULL, forks_leave_parent);
}

void forks_watch(void)
{
    pthread_once(&forks.watched, forks_register);
}

bool forks_is_child(void)
{
    return forks.child;
}
