/* Small puts and updates that go as one operation. */
#ifndef GSHMEM_TRANSPORT_VERBS_COALESCE_H
#define GSHMEM_TRANSPORT_VERBS_COALESCE_H

#include <stdbool.h>

#include "transport/transport.h"

struct link;
struct op;
struct verbs;

/* The bytes of a put with a signal that may coalesce: a message holds so many such puts, with
 * signals of one word. */
uint32_t coalesce_signalled_most(uint32_t puts);
/* Whether a request may wait for more of its kind. */
bool coalesce_takes(const struct link *l, const struct transport_request *request);
/* Lets it join the last operation, or begin a collection (*begun); TRANSPORT_FULL: no room. */
gshmem_status_t coalesce_post(struct verbs *v, struct link *l,
                              const struct transport_request *request, bool *begun);
/* Whether a batch has so few records that it goes as a collection; and begins that. */
bool coalesce_takes_batch(const struct link *l, const struct transport_request *request);
gshmem_status_t coalesce_post_batch(struct verbs *v, struct link *l,
                                    const struct transport_request *request);
/* Whether a collection still waits for more. */
bool coalesce_waits(struct verbs *v, struct link *l, const struct op *op);
bool coalesce_issue(struct verbs *v, struct link *l, struct op *op);
/* Hands its parts to the transport below; false: not all of them, yet. */
bool coalesce_carry(struct verbs *v, struct link *l, struct op *op);

#endif
