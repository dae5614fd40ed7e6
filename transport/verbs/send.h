/* Messages to a peer's proxy, which replies to each. */
#ifndef GSHMEM_TRANSPORT_VERBS_SEND_H
#define GSHMEM_TRANSPORT_VERBS_SEND_H

#include <stdbool.h>
#include <stdint.h>

#include "transport/verbs/path.h"

struct link;
struct message;
struct op;

/* Whether a message that changes memory of the peer may be sent now. */
bool send_is_possible(const struct link *l);
/* Sends a message while fewer than `most` have no reply; false: not now. */
bool send_request(struct verbs *v, struct link *l, enum work_kind kind, uint32_t op,
                  struct message *m, uint32_t most);
/* Sends an operation's message that changes memory of the peer; false: not now. */
bool send_update(struct verbs *v, struct link *l, struct op *op, struct message *m);

#endif
