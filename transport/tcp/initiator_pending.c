/* Requests of this PE that await a response. */
#define _GNU_SOURCE
#include "runtime/trace/trace.h"
#include "transport/tcp/initiator.h"

/* A put may have been sent in parts. A part that fails takes the next part with it, and the last
 * one completes the put. */
void pending_complete(struct tcp *t, struct initiator *to, uint64_t number, gshmem_status_t status)
{
    while (to->completed < number) {
        struct pending *w = pending_of(to, ++to->completed);
        gshmem_status_t how = w->failure ? (gshmem_status_t)w->failure : status;
        t->poller.awaiting -= to->completed == to->awaited;
        t->events++;
        if (!w->part)
            w->done(w->tag, how);
        else if (how && to->completed != to->posted)
            pending_of(to, to->completed + 1)->failure = (uint8_t)how;
    }
}

bool pending_is_for_device(const struct tcp *t, const struct transport_request *r)
{
    return r->kind == TRANSPORT_GET && r->bytes && !(r->flags & TRANSPORT_KEPT) &&
           t->config.on_device(t->config.context, r->local, r->bytes);
}

/* The id of the operation goes before its request. */
static __attribute__((noinline)) void pending_trace(struct initiator *to,
                                                    const struct transport_request *r)
{
    unsigned char frame[REQUEST_BYTES];

    request_encode(frame,
                   &(struct request_frame){.kind = FRAME_TRACE, .offset = trace_operation});
    queue_add_copy(&to->out, frame, sizeof frame);
    trace_event(TRACE_SENT, trace_op_of(transport_effect(r)), r->pe, trace_operation,
                trace_at(r->segment, r->offset), transport_moves(r));
    trace_operation = 0; /* of several parts the first has it */
}

static void pending_of_batch(struct pending *w, struct request_frame *f,
                             const struct transport_request *r)
{
    f->kind = FRAME_BATCH;
    f->signal_segment = r->each;
    f->amo = r->amo;
    f->type = r->type;
    f->a = r->elements;
    f->b = r->element_bytes;
    if (r->each != TRANSPORT_GET)
        return;
    w->local = r->old;
    w->bytes = r->elements * r->element_bytes;
    w->due = RESPONSE_DATA;
}

struct pending *pending_add(struct tcp *t, struct initiator *to, const struct transport_request *r,
                            bool part, bool held)
{
    struct pending *w = pending_of(to, ++to->posted);
    unsigned char frame[REQUEST_BYTES];

    if (!(r->flags & TRANSPORT_UNASKED)) {
        t->poller.awaiting += to->completed >= to->awaited;
        t->poller.requested = &to->stream;
        to->awaited = to->posted;
    }
    *w = (struct pending){.done = r->done, .tag = r->tag, .due = RESPONSE_DONE, .part = part};
    if (held && initiator_coalesce(t, to, r, w))
        return w;
    to->coalescing.open = false;
    struct request_frame f = r->kind == TRANSPORT_PUT
                                 ? request_of_put(r)
                                 : (struct request_frame){.segment = (uint8_t)r->segment,
                                                          .offset = r->offset,
                                                          .bytes = r->bytes};
    switch (r->kind) {
    case TRANSPORT_PUT:
        f.more = part;
        break;
    case TRANSPORT_GET:
        f.kind = FRAME_GET;
        w->local = r->local;
        w->bytes = r->bytes;
        w->due = RESPONSE_DATA;
        w->of_device = t->config.device && pending_is_for_device(t, r);
        break;
    case TRANSPORT_ATOMIC:
        f.kind = FRAME_ATOMIC;
        f.amo = (uint8_t)r->amo;
        f.type = (uint8_t)r->type;
        f.a = r->operand;
        f.b = r->compare;
        f.bytes = 0;
        w->local = r->old;
        w->due = r->old ? RESPONSE_VALUE : RESPONSE_DONE;
        break;
    case TRANSPORT_BATCH:
        pending_of_batch(w, &f, r);
        break;
    }
    if (trace_is_on() && trace_operation)
        pending_trace(to, r);
    request_encode(frame, &f);
    queue_add_copy(&to->out, frame, sizeof frame);
    if (pending_is_copied(r))
        queue_add_copy(&to->out, r->local, r->bytes);
    else if (r->kind == TRANSPORT_BATCH)
        queue_add_reference(&to->out, r->local, r->bytes, NULL, NULL);
    else if (r->kind == TRANSPORT_PUT)
        queue_add_reference(&to->out, r->local, r->bytes, r->sent, r->tag);
    return w;
}

void pending_stage(struct tcp *t, struct initiator *to)
{
    if (to->is_staging)
        return;
    to->is_staging = true;
    to->next_staging = t->initiators.staging;
    t->initiators.staging = to;
}
