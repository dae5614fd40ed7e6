/* Writes and reads of an operation's data, by all paths. */
#ifndef GSHMEM_TRANSPORT_VERBS_STRIPES_H
#define GSHMEM_TRANSPORT_VERBS_STRIPES_H

#include <stdbool.h>

struct link;
struct op;
struct verbs;

enum { STRIPE_BYTES = 64 << 10 /* at least so much goes by each path, or all by one */ };

/* Writes or reads what is left of it; false: not now. */
bool stripes_issue(struct verbs *v, struct link *l, struct op *op);

#endif
