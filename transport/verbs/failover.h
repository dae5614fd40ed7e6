/* Paths that fail, and what becomes of their work requests. */
#ifndef GSHMEM_TRANSPORT_VERBS_FAILOVER_H
#define GSHMEM_TRANSPORT_VERBS_FAILOVER_H

#include "transport/verbs/path.h"

/* Step 1: the path has failed. */
void failover_fail(struct verbs *v, struct path *p, const char *why);
/* Memory cannot be registered: all paths of the link end, and none is tried again. */
void failover_use_below(struct verbs *v, struct link *l, const char *why);
/* Step 4: the peer says what it has received. */
void failover_receive(struct verbs *v, struct path *p, const struct control *n);
/* Step 5, for the paths of a link whose two sides have said what came. */
void failover_go_on(struct verbs *v, struct link *l);
/* Steps 2 and 3: all completions of a NIC have been taken. */
void failover_drained(struct verbs *v, const struct nic *nic);

uint64_t failover_now_ns(void);

#endif
