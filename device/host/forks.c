#include "device/host/forks.h"

#include <pthread.h>
#include <stddef.h>

#include "device/host/errors.h"

/* One for the process: it is a process that forks. */
static struct {
    struct fork_part *parts;
    pthread_once_t watched;
    bool child;
} forks = {.watched = PTHREAD_ONCE_INIT};

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
