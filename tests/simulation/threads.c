/* Threads of a simulated process, and their locks. */
#define _GNU_SOURCE
#include <errno.h>

#include "explore.h"
#include "fiber.h"
#include "nth.h"
#include "wrap.h"

/* glibc's fields, which the initializers fill in: __lock, __count and __owner are used as there. */
#define OWNER(fiber) ((fiber)->number + 1)

int simulated_pthread_create(pthread_t *out, const pthread_attr_t *a, void *(*main)(void *),
                          void *argument)
{
    if (NTH(pthread_create))
        return EAGAIN;
    struct fiber *f = fiber_current;

    (void)a;
    fiber_call();
    struct fiber *new = fiber_new(
        f->pe, f->now + chance_between(&world.schedule, 10 * US, 10 * US + world.pace.wake_ns),
        main, argument);
    new->of_library = nth_is_library(__builtin_return_address(0));
    *out = (pthread_t)new;
    return 0;
}

int __wrap_pthread_join(pthread_t thread, void **result)
{
    struct fiber *f = (struct fiber *)thread;

    f->joiner = fiber_current;
    while (!f->ended)
        fiber_block(NEVER);
    if (result)
        *result = f->result;
    return 0;
}

int __wrap_pthread_detach(pthread_t thread)
{
    (void)thread;
    return 0;
}

pthread_t __wrap_pthread_self(void)
{
    return (pthread_t)fiber_current;
}

int __wrap_pthread_setname_np(pthread_t thread, const char *name)
{
    (void)thread, (void)name;
    return 0;
}

int __wrap_pthread_setaffinity_np(pthread_t thread, size_t bytes, const cpu_set_t *set)
{
    (void)thread, (void)bytes, (void)set;
    return 0;
}

int __wrap_pthread_mutex_init(pthread_mutex_t *m, const pthread_mutexattr_t *a)
{
    (void)a;
    *m = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    return 0;
}

int __wrap_pthread_mutex_destroy(pthread_mutex_t *m)
{
    if (m->__data.__lock)
        world_fail("PE %d destroys a mutex that is taken", fiber_current->pe->number);
    return 0;
}

int __wrap_pthread_mutex_trylock(pthread_mutex_t *m)
{
    const int own = OWNER(fiber_current);

    fiber_point();
    fiber_pass(20);
    explore_touch(fiber_current->pe, m, true);
    if (m->__data.__lock && (m->__data.__owner != own ||
                             m->__data.__kind != PTHREAD_MUTEX_RECURSIVE_NP))
        return EBUSY;
    m->__data.__lock = 1;
    m->__data.__owner = own;
    m->__data.__count++;
    return 0;
}

int __wrap_pthread_mutex_lock(pthread_mutex_t *m)
{
    struct fiber *f = fiber_current;

    while (__wrap_pthread_mutex_trylock(m)) {
        if (m->__data.__owner == OWNER(f))
            world_fail("PE %d takes a mutex twice", f->pe->number);
        f->word = m;
        fiber_block(NEVER);
    }
    return 0;
}

int __wrap_pthread_mutex_unlock(pthread_mutex_t *m)
{
    fiber_point();
    fiber_pass(20);
    explore_touch(fiber_current->pe, m, true);
    if (m->__data.__owner != OWNER(fiber_current))
        world_fail("PE %d gives back a mutex that it does not have", fiber_current->pe->number);
    if (--m->__data.__count)
        return 0;
    m->__data.__lock = m->__data.__owner = 0;
    fiber_wake_word(fiber_current->pe, m, 1);
    return 0;
}

/* In place of /proc/self/task: the program's threads but for the one that asks. */
int __wrap_threads_of_program(void)
{
    int n = 0;

    for (const struct fiber *f = fiber_current->pe->fibers; f; f = f->next)
        n += f != fiber_current && !f->ended && !f->of_library;
    return n;
}
