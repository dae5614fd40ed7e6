/* What NICs report. */
#ifndef GSHMEM_TRANSPORT_VERBS_COMPLETE_H
#define GSHMEM_TRANSPORT_VERBS_COMPLETE_H

struct link;
struct verbs;

enum { POLL = 32 /* completions that are taken at once */ };

int complete_some(struct verbs *v); /* how much happened */
/* All that can be done for a link: ends what is done, replies, and gives the queue pairs more. */
void complete_go_on(struct verbs *v, struct link *l);

#endif
