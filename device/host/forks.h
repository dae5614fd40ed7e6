/* A child made by fork while the device has threads: they are its parent's, so that for the child
 * the device has failed (cudaErrorInitializationError), as on a GPU, and waits return at once. */
#ifndef GSHMEM_DEVICE_HOST_FORKS_H
#define GSHMEM_DEVICE_HOST_FORKS_H

#include <stdbool.h>

/* A part of the device with locks that a thread of the parent may hold at the fork. */
struct fork_part {
    void (*leave_parent)(void); /* makes them anew, in the child */
    struct fork_part *next;
};

/* From a constructor: when the library is loaded. */
void forks_add(struct fork_part *part);
/* From the first call on: the device has threads. Called by whoever starts one. */
void forks_watch(void);
/* Whether this process is such a child. */
bool forks_is_child(void);

#endif
