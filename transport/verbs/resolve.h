/* Tells queue pairs of their peers, in threads beside the one that drives the network: for RoCE the kernel looks for the
 * neighbour within that call, for up to a second where nobody answers. */
#ifndef GSHMEM_VERBS_RESOLVE_H
#define GSHMEM_VERBS_RESOLVE_H

#include "transport/verbs/verbs.h"

/* Begins with a path's queue pair, of which path_resolved tells the outcome, from resolve_poll; false with errno: it
 * cannot be begun. */
bool resolve_begin(struct verbs *v, struct path *p, const struct ibv_qp_attr *receive, const struct ibv_qp_attr *send);
/* The path has no use for its queue pair any more, which goes when the kernel is done with it; p->qp is NULL then. */
void resolve_abandon(struct path *p);
/* Takes what has ended; and tells the peers of what has not that this PE lives. */
void resolve_poll(struct verbs *v);
/* Until all that was begun has ended; for tests, in which all happens in rounds. */
void resolve_wait(struct verbs *v);
void resolve_close(struct verbs *v);

#endif
