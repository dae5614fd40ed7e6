#include "runtime/base/unseen.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum {
    LINE_BYTES = 400,
    THREADS = 8, /* whose first failures are kept; of more threads, failures are counted alone */
};

/* The first failure of a thread that nobody has looked at and no line has reported. */
struct first {
    uint64_t thread;
    char line[LINE_BYTES];
};

static struct {
    pthread_mutex_t lock;
    unsigned count;
    unsigned reported; /* of count: a line has reported them */
    unsigned round; /* how many times a line has reported all that there were */
    uint64_t threads; /* that have had a failure */
    struct first first[THREADS]; /* in the order of the failures */
    int firsts;
} unseen = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* This thread's part of it. */
static _Thread_local struct {
    uint64_t number; /* 0: it has none yet */
    unsigned count, reported, round;
} own;
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

/* With the lock, as all below. */
static void catch_up(void)
{
    if (own.round != unseen.round)
        own.reported = own.count;
    own.round = unseen.round;
}

static void keep_first(const char *line)
{
    if (!own.number)
        own.number = ++unseen.threads;
    if (own.count != own.reported || unseen.firsts == THREADS)
        return;
    struct first *f = &unseen.first[unseen.firsts++];
    f->thread = own.number;
    snprintf(f->line, sizeof f->line, "%s", line);
}

static void drop_first(void)
{
    int i = 0;

    while (i < unseen.firsts && unseen.first[i].thread != own.number)
        i++;
    if (i == unseen.firsts)
        return;
    unseen.firsts--;
    memmove(&unseen.first[i], &unseen.first[i + 1],
            (size_t)(unseen.firsts - i) * sizeof unseen.first[0]);
}

void unseen_add(const char *line)
{
    if (paused)
        return;
    pthread_mutex_lock(&unseen.lock);
    catch_up();
    keep_first(line);
    unseen.count++;
    own.count++;
    pthread_mutex_unlock(&unseen.lock);
    void (*hook)(const char *) = atomic_load_explicit(&unseen_hook, memory_order_relaxed);
    if (hook)
        hook(line);
}

/* n: the last ones of this thread's. */
static void take_back(unsigned n)
{
    catch_up();
    const unsigned new = own.count - own.reported, of_reported = n > new ? n - new : 0;

    unseen.count -= n;
    own.count -= n;
    unseen.reported -= of_reported;
    own.reported -= of_reported;
    if (own.count == own.reported)
        drop_first();
}

void unseen_clear(void)
{
    if (!own.count)
        return;
    pthread_mutex_lock(&unseen.lock);
    take_back(own.count);
    pthread_mutex_unlock(&unseen.lock);
}

void unseen_hand_over(void)
{
    if (paused || !own.count)
        return;
    pthread_mutex_lock(&unseen.lock);
    take_back(1);
    pthread_mutex_unlock(&unseen.lock);
}

unsigned unseen_count(void)
{
    pthread_mutex_lock(&unseen.lock);
    unsigned count = unseen.count;
    pthread_mutex_unlock(&unseen.lock);
    return count;
}

unsigned unseen_report(char *text, size_t size)
{
    pthread_mutex_lock(&unseen.lock);
    unsigned count = unseen.count - unseen.reported;
    snprintf(text, size, "%s", unseen.firsts ? unseen.first[0].line : "");
    unseen.reported = unseen.count;
    unseen.firsts = 0;
    unseen.round++;
    pthread_mutex_unlock(&unseen.lock);
    return count;
}

void unseen_set_hook(void (*hook)(const char *line))
{
    atomic_store_explicit(&unseen_hook, hook, memory_order_relaxed);
}
