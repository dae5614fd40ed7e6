/* Parts of operations that the transport below carries. */
#ifndef GSHMEM_TRANSPORT_VERBS_CARRY_H
#define GSHMEM_TRANSPORT_VERBS_CARRY_H

#include <stdbool.h>

#include "transport/transport.h"

struct link;
struct op;
struct verbs;

/* Posts a part of an op (its end is filled in here); false: the transport below is full. */
bool carry_part(struct verbs *v, struct link *l, struct op *op, struct transport_request *r);
/* The last part has been posted. */
void carry_no_more(struct op *op);

#endif
