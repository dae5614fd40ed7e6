#include "runtime/proxy/carried.h"

#include "runtime/proxy/channel.h"

static void trace_taken(const struct carried *c)
{
    trace_write_at(c->ticks, TRACE_TAKEN, c->op, c->pe, c->id, c->at, c->bytes);
}

static void trace_copied_signal(const struct carried *c, uint64_t ticks)
{
    trace_write_at(ticks, TRACE_COPIED_SIGNAL, TRACE_SIGNAL, c->pe, c->id, c->signal_at - 1,
                   sizeof(uint64_t));
}

static void trace_copied(const struct carried *c, uint64_t ticks)
{
    trace_write_at(ticks, TRACE_COPIED, c->op, c->pe, c->id, c->at, c->bytes);
    if (c->signal_at)
        trace_copied_signal(c, ticks);
}

void carried_write(struct carried *last)
{
    trace_write_at(last->ticks, TRACE_CARRIED, last->op, last->pe, last->id, last->at, last->bytes);
    if (GSHMEM_UNLIKELY(last->signal_at))
        trace_copied_signal(last, last->ticks + 1);
    last->id = 0;
}

static struct carried carried_of(const struct transport_request *r, uint64_t ticks)
{
    return (struct carried){
        .ticks = ticks,
        .id = trace_operation,
        .at = trace_at(r->segment, r->offset),
        .bytes = r->bytes,
        .signal_at = r->kind == TRANSPORT_PUT && r->signal_op
                         ? trace_at(r->signal_segment, r->signal_offset) + 1
                         : 0,
        .op = trace_op_of(r->kind),
        .pe = r->pe,
    };
}

gshmem_status_t carried_post_small(struct carried *last, struct transport *local,
                                   const struct transport_request *r)
{
    struct proxy_channel *channel = ((const struct passage *)r->tag)->channel;
    const uint64_t ticks = trace_ticks_now();

    if (last->id)
        carried_write(last);
    channel->carries = true;
    const gshmem_status_t status = local->ops->post(local, r);
    const bool complete = !channel->carries;
    channel->carries = false;
    if (status)
        return status;
    *last = carried_of(r, ticks);
    if (!complete) { /* a device copies */
        trace_taken(last);
        trace_copied(last, 0);
        last->id = 0;
    }
    return status;
}

gshmem_status_t carried_post(struct transport *t, bool here, const struct transport_request *r)
{
    const struct carried c = carried_of(r, trace_ticks_now());

    const gshmem_status_t status = t->ops->post(t, r);
    if (status == TRANSPORT_FULL) /* it stays in the channel, and is taken later */
        return status;
    trace_taken(&c);
    if (here && !status)
        trace_copied(&c, 0);
    return status;
}
