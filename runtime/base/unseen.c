#include "runtime/base/unseen.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>

enum { LINE_BYTES = 400 };

static struct {
    pthread_mutex_t lock;
    unsigned count;
    const void *owner; /* of `first`: a mark of its thread; NULL: there is none */
    char first[LINE_BYTES];
} unseen = {.lock = PTHREAD_MUTEX_INITIALIZER};

static _Thread_local unsigned own; /* of `count`; its address marks the thread */
static _Thread_local bool paused;
static _Atomic(void (*)(const char *line)) unseen_hook;

void unseen_pause(void)
{
    paused = true;
}

void unseen_resume(void)
{
    paused = false;
}

void unseen_add(const char *line)
{
    if (paused)
        return;
    pthread_mutex_lock(&unseen.lock);
    unseen.count++;
    own++;
    if (!unseen.owner) {
        unseen.owner = &own;
        snprintf(unseen.first, sizeof unseen.first, "%s", line);
    }
    pthread_mutex_unlock(&unseen.lock);
    void (*hook)(const char *) = atomic_load_explicit(&unseen_hook, memory_order_relaxed);
    if (hook)
        hook(line);
}

void unseen_clear(void)
{
    if (!own)
        return;
    pthread_mutex_lock(&unseen.lock);
    unseen.count -= own;
    own = 0;
    if (unseen.owner == &own)
        unseen.owner = NULL;
    pthread_mutex_unlock(&unseen.lock);
}

unsigned unseen_count(char *text, size_t size)
{
    pthread_mutex_lock(&unseen.lock);
    unsigned count = unseen.count;
    snprintf(text, size, "%s", unseen.owner ? unseen.first : "");
    pthread_mutex_unlock(&unseen.lock);
    return count;
}

void unseen_set_hook(void (*hook)(const char *line))
{
    atomic_store_explicit(&unseen_hook, hook, memory_order_relaxed);
}
