/* Commands of kernels in the trace. */
#ifndef GSHMEM_PROXY_TRACED_H
#define GSHMEM_PROXY_TRACED_H

#include "runtime/proxy/channel.h"
#include "runtime/proxy/command.h"
#include "runtime/trace/trace.h"

/* A command's id is its position in its channel. Between [finished, finished + slots) each record
 * stands for one position. */
static inline uint64_t trace_id_of(const struct passage *p)
{
    const struct proxy_channel *c = p->channel;
    const uint64_t ahead = ((uint64_t)(p - c->passage) - c->finished) & c->mask;

    return trace_own_id(c->stream, c->finished + ahead);
}

/* Posts the command; meanwhile the transport knows its id. */
static inline gshmem_status_t channel_post_traced(const struct passage *p,
                                                  const struct transport_request *r)
{
    const struct proxy_way *way = p->channel->way;

    trace_operation = trace_id_of(p);
    trace_event(TRACE_TAKEN, trace_op_of(r->kind), r->pe, trace_operation,
                trace_at(r->segment, r->offset), r->bytes);
    const gshmem_status_t status = way->post(way->context, r);
    trace_operation = 0;
    return status;
}

static inline void trace_landed(const struct passage *p, gshmem_status_t status)
{
    trace_event(TRACE_DONE, TRACE_NO_OP, command_pe(p), trace_id_of(p), (uint64_t)status, 0);
}

#endif
