/* Carries out requests of other PEs on this PE's symmetric memory. Their ranges have been
 * checked. */
#include "gshmem/rma.h"
#include "runtime/base/atomic_type.h"
#include "runtime/trace/trace.h"
#include "transport/tcp/target.h"

void target_trace(const struct target *from, const struct request_frame *f)
{
    const enum trace_op op = f->kind == FRAME_BATCH ? trace_op_of(f->signal_segment)
                             : f->kind == FRAME_PUT ? TRACE_PUT
                             : f->kind == FRAME_GET ? TRACE_GET
                                                    : TRACE_ATOMIC;

    const uint64_t bytes = f->kind != FRAME_BATCH ? f->bytes : op == TRACE_ATOMIC ? 0 : f->a * f->b;

    trace_event(TRACE_EFFECT, op, from->pe, f->trace, trace_at(f->segment, f->offset), bytes);
    if (f->kind == FRAME_PUT && f->signal_op)
        trace_event(TRACE_SIGNALED, TRACE_SIGNAL, from->pe, f->trace,
                    trace_at(f->signal_segment, f->a), 8);
}

void target_execute_get(struct tcp *t, struct target *from, const struct request_frame *f)
{
    const char *at = segment_at(&t->config, f->segment, f->offset, f->bytes);

    from->executed++;
    t->events++;
    if (trace_is_on())
        target_trace(from, f);
    target_respond_last(from, RESPONSE_DATA, f->bytes);
    if (f->bytes && f->bytes <= COPY_MOST)
        queue_add_copy(&from->out, at, f->bytes);
    else
        queue_add_reference(&from->out, at, f->bytes, NULL, NULL);
}

void target_execute_atomic(struct tcp *t, struct target *from, const struct request_frame *f)
{
    char *at = segment_at(&t->config, f->segment, f->offset, atomic_type_bytes(f->type));

    from->executed++;
    t->events++;
    if (trace_is_on())
        target_trace(from, f);
    target_respond_last(
        from, RESPONSE_VALUE,
        t->config.apply(t->config.context, (enum gshmem_amo)f->amo, f->type, at, f->a, f->b));
}

/* A get's data is sent from its place. A request that changes that memory has to wait until the
 * data has been sent. */
bool target_must_wait(const struct tcp *t, const struct target *from, const struct request_frame *f)
{
    const char *signal;

    if (queue_empty(&from->out) || (f->kind != FRAME_PUT && f->kind != FRAME_ATOMIC))
        return false;
    const uint64_t bytes = f->kind == FRAME_PUT ? f->bytes : atomic_type_bytes(f->type);
    const char *at = segment_at(&t->config, f->segment, f->offset, bytes);
    if (at && queue_refers_to(&from->out, at, bytes))
        return true;
    if (f->kind != FRAME_PUT || !f->signal_op)
        return false;
    signal = segment_at(&t->config, f->signal_segment, f->a, 8);
    return signal && queue_refers_to(&from->out, signal, 8);
}

void target_stage(struct tcp *t, struct target *from)
{
    if (from->is_staging)
        return;
    from->is_staging = true;
    from->next_staging = t->targets.staging;
    t->targets.staging = from;
}
