/* Which threads own open batches: each writes its own without an atomic step (biased_lock.h). All
 * of this with the network's lock held. */
#include "runtime/network/open_batches.h"
#include "runtime/network/parts.h"

static void batches_fence(struct network *n)
{
    if (!biased_lock_fence())
        n->batches_have_owners = false;
}

void batch_disown(struct open_batch *b)
{
    const struct biased_thread *owner = biased_lock_revoke_begin(&b->lock);

    if (!owner)
        return;
    batches_fence(b->network);
    biased_thread_wait(owner);
    biased_lock_revoke_end(&b->lock);
    b->unowned = OPEN_BATCH_UNOWNED;
}

static struct open_batch *batch_behind(const struct open_batch *b, bool due)
{
    return due ? b->next_due : b->next;
}

/* One fence does for all. */
void batches_disown(struct network *n, bool due)
{
    struct open_batch *first = due ? n->due : n->open, *b;
    bool any = false;

    for (b = first; b; b = batch_behind(b, due)) {
        if (biased_lock_revoke_begin(&b->lock)) {
            b->unowned = OPEN_BATCH_UNOWNED;
            any = true;
        }
    }
    if (!any)
        return;
    batches_fence(n);
    for (const struct biased_thread *owner = n->batch_owners; owner; owner = owner->next)
        biased_thread_wait(owner);
    for (b = first; b; b = batch_behind(b, due))
        biased_lock_revoke_end(&b->lock);
}

struct biased_thread *batch_enter(struct open_batch *b)
{
    struct biased_thread *me;

    batch_disown(b);
    open_batch_enter(b, &me);
    return me;
}

void batch_own(struct network *n, struct open_batch *b)
{
    struct biased_thread *me;

    if (n->batches_have_owners && !b->unowned && (me = biased_thread_find(&n->batch_owners)))
        biased_lock_bias(&b->lock, me);
}
