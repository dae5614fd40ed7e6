/* How a path's queue pair is set up, and ended. */
#ifndef GSHMEM_TRANSPORT_VERBS_CONNECT_H
#define GSHMEM_TRANSPORT_VERBS_CONNECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/verbs/path.h"

/* What a path makes of a control message that it is given. */
enum path_received {
    PATH_TOOK_IT,
    PATH_STOPS, /* the peer has stopped it: that is failover's */
};

struct path *path_create(struct verbs *v, struct link *l, uint32_t number); /* NULL: no memory */
/* Makes a queue pair and offers it to the peer; false, with the reason: it cannot be made. */
bool path_begin(struct verbs *v, struct path *p, char *why, size_t why_size);
enum path_received path_receive(struct verbs *v, struct path *p, const struct control *n);
/* Sends the control messages that are due. */
void path_send_rest(struct verbs *v, struct path *p);
/* Requests may use the path from here on. */
void path_activate(struct verbs *v, struct path *p);
/* The path cannot be set up, and the peer is told. */
void path_refuse(struct verbs *v, struct path *p, const char *why);
/* Takes queue pairs that threads have connected to their peers. */
void path_poll_resolved(struct verbs *v);
/* Takes the events of iWARP's connections. */
void path_poll_connections(struct verbs *v);
void path_end(struct path *p); /* ends the queue pair: nothing is read or written by it any more */
void path_free(struct path *p);

#endif
