#define _GNU_SOURCE
#include "runtime/base/mutex.h"

#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Who has slept does not know whether others still do, and so leaves it as wanted. */
void mutex_wait(struct mutex *m)
{
    /* acquire: pairs with the release in mutex_give */
    while (atomic_exchange_explicit(&m->state, MUTEX_WANTED, memory_order_acquire) != MUTEX_FREE)
        syscall(SYS_futex, &m->state, FUTEX_WAIT_PRIVATE, MUTEX_WANTED, NULL, NULL, 0);
}

void mutex_wake(struct mutex *m)
{
    syscall(SYS_futex, &m->state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}
