#define _GNU_SOURCE
#include "runtime/base/biased_lock.h"

#include <linux/membarrier.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/base/clock.h"

struct biased_thread biased_revoked;

/* Longer than any CPU keeps a store to itself. */
enum { STORES_VISIBLE_NS = 10 * 1000 * 1000 };

/* The thread that has it needs some ns, unless it was preempted. */
static void let_go_on(unsigned tries)
{
    if (tries % 64)
        clock_pause();
    else
        clock_yield();
}

__attribute__((noinline)) void biased_lock_wait(struct biased_lock *l)
{
    /* acquire: pairs with the release in biased_lock_give */
    for (unsigned tries = 1; atomic_load_explicit(&l->taken, memory_order_relaxed) ||
                             atomic_exchange_explicit(&l->taken, true, memory_order_acquire);
         tries++)
        let_go_on(tries);
}

bool biased_lock_prepare(void)
{
    return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
}

/* A program may have had the system refuse the call since it was prepared. */
bool biased_lock_fence(void)
{
    atomic_thread_fence(memory_order_seq_cst);
    if (syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0)
        return true;
    clock_sleep(STORES_VISIBLE_NS);
    return false;
}

void biased_thread_wait(const struct biased_thread *owner)
{
    /* acquire: pairs with the release in biased_lock_leave */
    for (unsigned tries = 1; atomic_load_explicit(&owner->within, memory_order_acquire); tries++)
        let_go_on(tries);
}

struct biased_thread *biased_thread_find(struct biased_thread **list)
{
    const uintptr_t self = biased_self();
    struct biased_thread *t = *list;

    while (t && atomic_load_explicit(&t->self, memory_order_relaxed) != self)
        t = t->next;
    if (t || !(t = calloc(1, sizeof *t)))
        return t;
    atomic_store_explicit(&t->self, self, memory_order_relaxed);
    t->next = *list;
    return *list = t;
}

void biased_threads_free(struct biased_thread **list)
{
    while (*list) {
        struct biased_thread *t = *list;
        *list = t->next;
        free(t);
    }
}
