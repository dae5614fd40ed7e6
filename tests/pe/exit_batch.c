/* An exit in a signal's handler that has interrupted its thread within an open batch (runtime/network/open_batches.h),
 * where the thread is about to find out that the batch is not its own: the job ends with a line, as the thread will
 * never leave the batch. PE 1 is on another node. */
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "runtime/base/biased_lock.h"
#include "runtime/job/job.h"
#include "runtime/network/parts.h"

#include "pe.h"

enum { SKIPPED = 77, ROUNDS = 1000, SMALL = 50 };

static uint64_t words[SMALL]; /* symmetric */

/* What this thread owns batches with; NULL: it has owned none. */
static struct biased_thread *own_record(void)
{
    struct network *network = job->network;
    struct biased_thread *own;

    mutex_take(&network->lock);
    for (own = network->batch_owners; own && own->self != biased_self();)
        own = own->next;
    mutex_give(&network->lock);
    return own;
}

static void leave(int number)
{
    (void)number;
    exit(0);
}

int main(void)
{
    struct biased_thread *own = NULL;

    begin();
    CHECK_EQ(n, 2);
    if (me != 0) {
        for (;;)
            pause(); /* the job is ended */
    }
    if (!biased_lock_prepare()) {
        puts("SKIP: this system has no membarrier, and no thread owns a batch");
        gshmem_global_exit(SKIPPED);
    }
    for (int round = 0; round < ROUNDS && !own; round++) {
        for (int i = 0; i < SMALL; i++)
            CHECK_OK(gshmem_uint64_p(&words[i], 1, 1));
        CHECK_OK(gshmem_quiet());
        own = own_record();
    }
    CHECK(own);
    signal(SIGUSR1, leave);
    atomic_store(&own->within, true); /* as biased_lock_enter does */
    raise(SIGUSR1);
    return 0;
}
