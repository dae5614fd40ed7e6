/* Commands of kernels in the trace. */
#ifndef GSHMEM_PROXY_TRACED_H
#define GSHMEM_PROXY_TRACED_H

#include "runtime/proxy/way.h"
#include "runtime/trace/trace.h"

/* Posts the command; meanwhile the transport knows its id. */
static inline gshmem_status_t traced_post(const struct proxy_way *way, uint64_t id,
                                          const struct transport_request *r)
{
    trace_operation = id;
    trace_event(TRACE_TAKEN, trace_op_of(r->kind), r->pe, trace_operation,
                trace_at(r->segment, r->offset), r->bytes);
    const gshmem_status_t status = way->post(way->context, r);
    trace_operation = 0;
    return status;
}

#endif
