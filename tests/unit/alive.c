/* Whether a PE of this host lives (runtime/host.c): its lock goes with its process, but one that leaves says
 * so first, and may do so between two looks at it. The system's answer about the lock is played here. */
#define _GNU_SOURCE
#include <fcntl.h>

#include "../check.h"

static int played(int fd, int command, struct flock *lock);

#define fcntl played
#include "runtime/host.c"
#undef fcntl

static struct host_member *other;
static bool locked, leaves, broken;

static int played(int fd, int command, struct flock *lock)
{
    (void)fd;
    CHECK(command == F_GETLK && lock->l_start == 1);
    if (leaves)
        atomic_store(&other->ready, 2);
    lock->l_type = locked ? F_WRLCK : F_UNLCK;
    return broken ? -1 : 0;
}

int main(void)
{
    struct host_control *control = calloc(1, sizeof *control + 2 * sizeof *other);
    struct host h = {.n = 2, .control = control};

    CHECK(control);
    other = &control->member[1];
    CHECK(host_alive(&h, 0)); /* itself */
    CHECK(host_alive(&h, 1)); /* it has not come yet */
    atomic_store(&other->ready, 1);
    CHECK(!host_alive(&h, 1));
    broken = true; /* nothing is known of it */
    CHECK(host_alive(&h, 1));
    broken = false;
    locked = true;
    CHECK(host_alive(&h, 1));
    locked = false;
    leaves = true;
    CHECK(host_alive(&h, 1));
    CHECK(host_alive(&h, 1)); /* and has left */
    free(control);
    return 0;
}
