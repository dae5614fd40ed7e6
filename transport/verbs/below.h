/* Operations of a link that has no active path. */
#ifndef GSHMEM_TRANSPORT_VERBS_BELOW_H
#define GSHMEM_TRANSPORT_VERBS_BELOW_H

struct link;
struct verbs;

/* Hands all operations to the transport below, as far as it takes them. */
void below_issue(struct verbs *v, struct link *l);

#endif
