/* A child made by fork while the device has threads: they are its parent's, so that for the child
 * the device has failed (cudaErrorInitializationError), as on a GPU, and waits return at once. */
#ifndef GSHMEM_DEVICE_HOST_FORKS_H
#define GSHMEM_DEVICE_HOST_FORKS_H

#include <pthread.h>
#include <stdbool.h>

/* A part of the device with locks that a thread of the parent may hold at the fork. */
struct fork_part {
    void (*leave_parent)(void); /* makes them anew, in the child */
    struct fork_part *next;
};

/* A lock of the device that fork takes before it makes the child: there the lock is free, and what
 * it guards is whole, whether the device has threads or not. No thread may hold two of them, nor
 * hold one for longer than a moment, or while it waits for the dynamic linker. */
struct fork_lock {
    pthread_mutex_t *lock;
    struct fork_lock *next;
};

/* These two from a constructor: when the library is loaded. */
void forks_hold(struct fork_lock *lock);
void forks_add(struct fork_part *part);
/* From the first call on: the device has threads. Called by whoever starts one. */
void forks_watch(void);
/* Whether this process is such a child. */
bool forks_is_child(void);

#endif
