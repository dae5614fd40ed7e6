/* What is known of NICs that they do not tell themselves, by vendor and part: from their drivers and what others have
 * reported. What is not known here is not relied on. */
#ifndef GSHMEM_VERBS_KNOWN_H
#define GSHMEM_VERBS_KNOWN_H

#include <infiniband/verbs.h>
#include <stdbool.h>

struct known {
    uint32_t vendor, first_part, last_part;
    const char *name;
    bool ordered;      /* it places writes of a queue pair in memory in the order in which they were posted */
    bool tells_packet; /* ibv_query_qp's rq_psn is the hardware's, and no copy of what the queue pair began with */
    bool cannot_fence; /* IBV_SEND_FENCE stands still for ever where it is repeated */
};

/* Never NULL; of an unknown one nothing is promised. */
const struct known *known_of(const struct ibv_device_attr *device);

#endif
