/* What is known of NICs that they do not report themselves, by vendor and part: from their
 * drivers, and from what others have reported. Nothing else is relied on. */
#ifndef GSHMEM_TRANSPORT_VERBS_KNOWN_H
#define GSHMEM_TRANSPORT_VERBS_KNOWN_H

#include <infiniband/verbs.h>
#include <stdbool.h>

struct known {
    uint32_t vendor, first_part, last_part;
    const char *name;
    bool ordered;      /* it places writes of a queue pair in the order in which they were posted */
    bool tells_packet; /* rq_psn of ibv_query_qp is what the NIC expects, not what it began with */
    bool cannot_fence; /* a repeated work request with IBV_SEND_FENCE stalls for ever */
};

/* Never NULL; of an unknown device nothing is true. */
const struct known *known_of(const struct ibv_device_attr *device);

#endif
