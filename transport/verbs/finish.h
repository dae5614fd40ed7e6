/* Operations that are done. */
#ifndef GSHMEM_TRANSPORT_VERBS_FINISH_H
#define GSHMEM_TRANSPORT_VERBS_FINISH_H

struct link;
struct verbs;

/* Ends the operations that are done, in order. */
void finish_some(struct verbs *v, struct link *l);

#endif
