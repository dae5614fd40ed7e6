/* Batches of puts and updates that are too large for a message. */
#ifndef GSHMEM_TRANSPORT_VERBS_BATCHES_H
#define GSHMEM_TRANSPORT_VERBS_BATCHES_H

#include <stdbool.h>

struct link;
struct op;
struct verbs;

/* Writes the records of a batch, and sends its message; false: not now. */
bool batches_issue(struct verbs *v, struct link *l, struct op *op);

#endif
