/* Order of a link's operations: what may not overtake what.
 *
 * A fence is between two requests that are not both loose, or are of different epochs.
 *
 * 1. order_fence marks, for each path, the work requests before the fence, and the last message
 *    that changes memory.
 * 2. A write, read or update behind the fence waits until those marks are done on all other paths,
 *    and on its own if that one may reorder (order_allows).
 * 3. A message behind the fence waits for the other paths alone: the target is given it when all
 *    before it is in its place.
 * 4. What is no message waits until the messages before the fence have their replies
 *    (order_has_unapplied).
 *
 * Inline, as these are on every operation's way. */
#ifndef GSHMEM_TRANSPORT_VERBS_ORDER_H
#define GSHMEM_TRANSPORT_VERBS_ORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "transport/verbs/link.h"
#include "transport/verbs/nic.h"

/* Marks the fence before an operation, if there is one; false: a signal before it still waits. */
static inline bool order_fence(struct link *l, struct op *op)
{
    const bool ordered = !(op->request.flags & TRANSPORT_LOOSE);

    if (op->fenced || (!ordered && !l->order.strict && op->request.epoch == l->order.epoch)) {
        op->fenced = true;
        return true;
    }
    if (l->held)
        return false;
    for (int i = 0; i < l->paths; i++) {
        l->path[i]->fence.all = l->path[i]->sends;
        l->path[i]->fence.read = l->path[i]->fence.last_read;
    }
    l->messages.fence_update = l->messages.last_update;
    l->order.epoch = op->request.epoch;
    l->order.strict = ordered;
    op->behind = op->fenced = true;
    return true;
}

static inline void order_move_mark(uint32_t *mark, uint32_t done)
{
    if (!is_after(*mark, done))
        *mark = done;
}

/* Whether a message that sets signals has no reply. What sets signals then is a message too, as a
 * write might come before it: the last value that is set is the one that stays. */
static inline bool order_has_signals(const struct link *l)
{
    return is_after(l->messages.last_set, l->messages.replied);
}

static inline void order_move_marks(struct link *l)
{
    for (int i = 0; i < l->paths; i++) {
        order_move_mark(&l->path[i]->fence.all, l->path[i]->done);
        order_move_mark(&l->path[i]->fence.read, l->path[i]->done);
        order_move_mark(&l->path[i]->fence.last_read, l->path[i]->done);
    }
    order_move_mark(&l->messages.fence_update, l->messages.replied);
    order_move_mark(&l->messages.last_set, l->messages.replied);
}

/* Whether what was before the fence is done, on all other paths. */
static inline bool order_others_are_done(const struct link *l, const struct path *p)
{
    for (int i = 0; i < l->actives; i++) {
        if (l->active[i] != p && is_after(l->active[i]->fence.all, l->active[i]->done))
            return false;
    }
    return true;
}

/* Whether a path's next write, read or update would come behind all that was before the fence. */
static inline bool order_allows(const struct link *l, const struct path *p)
{
    return order_others_are_done(l, p) && !(p->reorders && is_after(p->fence.all, p->done));
}

static inline bool order_has_unapplied(const struct link *l)
{
    return is_after(l->messages.fence_update, l->messages.replied);
}

static inline bool order_may_go_below(struct link *l, struct op *op)
{
    return order_fence(l, op) && !order_has_unapplied(l);
}

static inline bool order_waits_for_writes(const struct link *l)
{
    const struct path *p = l->active[0];

    return p->reorders && is_after(p->fence.all, p->done);
}

#endif
