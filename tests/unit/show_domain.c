/* Kernels are shown the PEs of an NVLink domain under the job's lock: another thread may make or
 * end a team at the same time. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "gshmem.h"

#include "../check.h"
#include "runtime/job/job.h"
#include "runtime/proxy/kernels.h"
#include "runtime/proxy/parts.h"

static struct job with_kernels; /* and without teams */
static struct kernels kernels;
static _Atomic pid_t caller;
static atomic_bool shown;

static void *show(void *unused)
{
    (void)unused;
    atomic_store(&caller, gettid());
    CHECK_OK(kernels_show_domain(&with_kernels));
    atomic_store(&shown, true);
    return NULL;
}

/* Whether that thread of this process sleeps. */
static bool sleeps(pid_t thread)
{
    char path[64], state = 0;

    snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)thread);
    FILE *f = fopen(path, "r");
    CHECK(f);
    CHECK_EQ(fscanf(f, "%*d (%*[^)]) %c", &state), 1);
    fclose(f);
    return state == 'S';
}

int main(void)
{
    pthread_t thread;

    with_kernels.kernels = &kernels;
    CHECK_EQ(pthread_mutex_init(&with_kernels.lock, NULL), 0);
    CHECK_EQ(pthread_mutex_lock(&with_kernels.lock), 0);
    CHECK_EQ(pthread_create(&thread, NULL, show, NULL), 0);
    while (!atomic_load(&caller) || !sleeps(atomic_load(&caller))) {
        CHECK(!atomic_load(&shown));
        sched_yield();
    }
    CHECK(!atomic_load(&shown));
    CHECK_EQ(pthread_mutex_unlock(&with_kernels.lock), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK(atomic_load(&shown));
    return 0;
}
