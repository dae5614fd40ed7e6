/* From operations to work requests. */
#ifndef GSHMEM_TRANSPORT_VERBS_ISSUE_H
#define GSHMEM_TRANSPORT_VERBS_ISSUE_H

struct link;
struct verbs;

/* Gives queue pairs what they can take. */
void issue_more(struct verbs *v, struct link *l);

#endif
