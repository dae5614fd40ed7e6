/* Connects queue pairs to their peers, in threads beside the one that makes progress: for RoCE the
 * kernel looks for the neighbour within that call, for up to a second where nobody responds. */
#ifndef GSHMEM_TRANSPORT_VERBS_RESOLVE_H
#define GSHMEM_TRANSPORT_VERBS_RESOLVE_H

#include <infiniband/verbs.h>
#include <stdbool.h>

struct path;
struct verbs;

/* Begins with a path's queue pair; resolve_next brings the outcome. False with errno: it cannot be
 * begun. */
bool resolve_begin(struct verbs *v, struct path *p, const struct ibv_qp_attr *receive,
                   const struct ibv_qp_attr *send);
/* The path has no use for its queue pair any more; p->qp is NULL then, and the queue pair goes when
 * the kernel is done with it. */
void resolve_abandon(struct path *p);
/* A path whose queue pair is connected, or cannot be (*error); NULL: none now. */
struct path *resolve_next(struct verbs *v, int *error);
/* Tells the peers of queue pairs that are not connected yet that this PE lives. */
void resolve_send_alive(struct verbs *v);
/* Until all that was begun has ended; for tests, in which all happens in rounds. */
void resolve_wait(struct verbs *v);
void resolve_close(struct verbs *v);

#endif
