/* Whether a PE of this host lives (runtime/node/node.c): its lock goes with its process, but one that leaves says
 * so first, and may do so between two looks at it. The system's answer about the lock is played here. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/stat.h>

#include "../check.h"
#include "runtime/base/descriptor.h"

static int played(int fd, int command, struct flock *lock);

#define fcntl(fd, ...) played(fd, __VA_ARGS__)
#include "runtime/node/liveness.c"
#undef fcntl
#include "runtime/node/node.c"

static struct node_member *other;
static bool locked, leaves, broken;

static int played(int fd, int command, struct flock *lock)
{
    (void)fd;
    CHECK(command == F_GETLK && lock->l_start == 1);
    if (leaves)
        atomic_store(&other->state, NODE_LEFT);
    lock->l_type = locked ? F_WRLCK : F_UNLCK;
    return broken ? -1 : 0;
}

int main(void)
{
    struct node_control *control = calloc(1, sizeof *control + 2 * sizeof *other);
    struct node h = {.n = 2, .control = control, .fd = 2};
    struct stat s;

    CHECK(control && fstat(2, &s) == 0);
    h.liveness = (struct liveness){.device = s.st_dev, .file = s.st_ino};
    other = &control->member[1];
    CHECK(node_alive(&h, 0)); /* itself */
    CHECK(node_alive(&h, 1)); /* it has not come yet */
    atomic_store(&other->state, NODE_HERE);
    CHECK(!node_alive(&h, 1));
    h.liveness.file++; /* the descriptor is of another file by now */
    CHECK(node_alive(&h, 1) && h.liveness.closed);
    h.liveness.file--;
    broken = true; /* nothing is known of it */
    CHECK(node_alive(&h, 1));
    broken = false;
    locked = true;
    CHECK(node_alive(&h, 1));
    locked = false;
    leaves = true;
    CHECK(node_alive(&h, 1));
    CHECK(node_alive(&h, 1)); /* and has left */
    atomic_store(&other->state, NODE_FAILED);
    locked = true; /* what it holds does not matter: it will never come */
    CHECK(!node_alive(&h, 1));
    CHECK_STR(node_fate(&h, 1), "has failed in gshmem_init or gshmem_finalize");
    free(control);
    return 0;
}
