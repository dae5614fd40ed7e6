/* Failures that no caller gets, kept until the program takes them: for programs whose own code
 * cannot run within a call of the library. */
#include <pthread.h>
#include <stdio.h>

#include "gshmem.h"
#include "runtime/job/extensions.h"

enum { NOTED_MOST = 100, NOTED_LINE = 400 };

struct noted {
    gshmem_status_t status;
    unsigned long thread;
    char line[NOTED_LINE];
};

/* Outlives jobs, as the error handler does. */
static struct {
    pthread_mutex_t lock;
    uint32_t first; /* the oldest's place */
    uint32_t count; /* also read without the lock: by who wants to know whether there are any */
    struct noted note[NOTED_MOST];
} noted = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void noted_drop_first(void)
{
    noted.first = (noted.first + 1) % NOTED_MOST;
    __atomic_store_n(&noted.count, noted.count - 1, __ATOMIC_RELAXED);
}

static void noted_add(gshmem_status_t status, const char *line, void *unused)
{
    (void)unused;
    pthread_mutex_lock(&noted.lock);
    if (noted.count == NOTED_MOST)
        noted_drop_first();
    struct noted *n = &noted.note[(noted.first + noted.count) % NOTED_MOST];
    n->status = status;
    n->thread = (unsigned long)pthread_self();
    snprintf(n->line, sizeof n->line, "%s", line);
    __atomic_store_n(&noted.count, noted.count + 1, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&noted.lock);
}

const uint32_t *gshmem_path_note_failures(int on)
{
    if (on >= 0)
        gshmem_set_error_handler(on ? noted_add : NULL, NULL);
    return &noted.count;
}

gshmem_status_t gshmem_path_take_failure(unsigned long *thread, char *line, size_t size)
{
    gshmem_status_t status = GSHMEM_OK;

    pthread_mutex_lock(&noted.lock);
    if (noted.count) {
        const struct noted *n = &noted.note[noted.first];
        status = n->status;
        *thread = n->thread;
        snprintf(line, size, "%s", n->line);
        noted_drop_first();
    }
    pthread_mutex_unlock(&noted.lock);
    return status;
}
