/* For tests of what the library says while a PE waits: the line itself ends the wait. After
 * gshmem.h. */
#ifndef GSHMEM_TESTS_TOLD_H
#define GSHMEM_TESTS_TOLD_H

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "check.h"

static struct {
    const char *text;     /* of the line */
    _Atomic int *told;    /* of the PE that is late: relaxed, nothing is handed over with it */
    int lines, from, was; /* how many came; where stderr is read; what it was */
    pthread_t listener;
} told;

/* Passes on what the library says. It makes no call of the library, which waits in another
 * thread. */
static inline void *told_listen(void *unused)
{
    FILE *from = fdopen(told.from, "r");
    char *line = NULL;
    size_t room = 0;
    ssize_t bytes;

    CHECK(from);
    while ((bytes = getline(&line, &room, from)) > 0) {
        CHECK_EQ(write(told.was, line, (size_t)bytes), bytes);
        if (!strstr(line, told.text))
            continue;
        told.lines++;
        atomic_store_explicit(told.told, 1, memory_order_relaxed);
    }
    free(line);
    CHECK_EQ(fclose(from), 0);
    return unused;
}

/* Called by the PE that is going to wait: a line with this text releases the late PE, which is on
 * the same node. flag: symmetric memory. */
static inline void told_begin(const char *text, _Atomic int *flag, int late)
{
    int pipes[2];

    told.text = text;
    told.told = gshmem_ptr(flag, late);
    CHECK(told.told);
    CHECK_EQ(pipe(pipes), 0);
    told.from = pipes[0];
    told.was = dup(STDERR_FILENO);
    CHECK(told.was >= 0);
    CHECK_EQ(dup2(pipes[1], STDERR_FILENO), STDERR_FILENO);
    CHECK_EQ(close(pipes[1]), 0);
    CHECK_EQ(pthread_create(&told.listener, NULL, told_listen, NULL), 0);
}

/* How many such lines there were. */
static inline int told_end(void)
{
    CHECK_EQ(dup2(told.was, STDERR_FILENO), STDERR_FILENO);
    CHECK_EQ(pthread_join(told.listener, NULL), 0);
    CHECK_EQ(close(told.was), 0);
    return told.lines;
}

/* Called by the late PE: it waits outside of the library, whose watchdog says nothing of it. */
static inline void told_await(_Atomic int *flag)
{
    while (!atomic_load_explicit(flag, memory_order_relaxed))
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    /* So that a second line has time to come; the test passes either way. */
    nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
}

#endif
