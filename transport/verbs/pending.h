/* Messages of a peer that have come and are not carried out yet. */
#ifndef GSHMEM_TRANSPORT_VERBS_PENDING_H
#define GSHMEM_TRANSPORT_VERBS_PENDING_H

#include <stdbool.h>

struct link;
struct message;
struct verbs;

/* A message has come: it is carried out now, or in its turn; false: it makes no sense. */
bool pending_receive(struct verbs *v, struct link *l, const struct message *m);
/* Goes on with those that wait; l->staging is set. */
void pending_go_on(struct verbs *v, struct link *l);
/* The path by which they came has failed: the first whose data that path was to move has not come,
 * nor what is behind it. What is before it stays. */
void pending_forget(struct link *l);
bool pending_is_busy(const struct link *l);
void pending_end(struct link *l);

#endif
