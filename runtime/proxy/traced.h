/* Commands of kernels in the trace. */
#ifndef GSHMEM_PROXY_TRACED_H
#define GSHMEM_PROXY_TRACED_H

#include "runtime/proxy/way.h"
#include "runtime/trace/trace.h"

/* Posts the command, whose id the way and the transport know meanwhile. */
static inline gshmem_status_t traced_post(const struct proxy_way *way, uint64_t id,
                                          const struct transport_request *r)
{
    trace_operation = id;
    const gshmem_status_t status = way->post(way->context, r);
    trace_operation = 0;
    return status;
}

#endif
