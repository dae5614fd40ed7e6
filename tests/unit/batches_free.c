/* Whether a thread is within an open batch, as the end of a process has to know: a signal's handler
 * may have interrupted it there (open_batches_are_free). */
#include <pthread.h>

#include "../check.h"
#include "runtime/network/open_batches.h"
#include "runtime/network/parts.h"

static struct network n;
static struct open_batch batch;

static void *enter_as_another(void *record)
{
    struct biased_thread **other = record;

    CHECK((*other = biased_thread_find(&n.batch_owners)));
    atomic_store(&(*other)->within, true);
    return NULL;
}

int main(void)
{
    struct biased_thread *own = biased_thread_find(&n.batch_owners), *other, *me;
    pthread_t thread;

    CHECK(own);
    n.open = &batch;
    CHECK(open_batches_are_free(&n));
    CHECK(open_batch_enter(&batch, &me) && !me); /* by its lock */
    CHECK(!open_batches_are_free(&n));
    biased_lock_bias(&batch.lock, own);
    open_batch_leave(&batch, me);
    CHECK(open_batches_are_free(&n));

    CHECK(open_batch_enter(&batch, &me) && me == own);
    CHECK(!open_batches_are_free(&n));
    n.open = NULL; /* it was closed when this thread was about to enter it */
    CHECK(!open_batches_are_free(&n));
    open_batch_leave(&batch, me);
    CHECK(open_batches_are_free(&n));

    CHECK_EQ(pthread_create(&thread, NULL, enter_as_another, &other), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK(open_batches_are_free(&n)); /* another thread leaves by itself */
    n.open = &batch;
    CHECK(open_batches_are_free(&n));
    atomic_store(&batch.lock.owner, other); /* and is waited for in a batch of its own */
    CHECK(!open_batches_are_free(&n));
    biased_threads_free(&n.batch_owners);
    return 0;
}
