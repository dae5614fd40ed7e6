/* From requests to operations. */
#ifndef GSHMEM_TRANSPORT_VERBS_SUBMIT_H
#define GSHMEM_TRANSPORT_VERBS_SUBMIT_H

#include "transport/transport.h"

struct link;
struct verbs;

gshmem_status_t submit_request(struct verbs *v, struct link *l,
                               const struct transport_request *request);

#endif
