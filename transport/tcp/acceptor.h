/* The listeners, to which peers and strangers connect. */
#ifndef GSHMEM_TRANSPORT_TCP_ACCEPTOR_H
#define GSHMEM_TRANSPORT_TCP_ACCEPTOR_H

#include "transport/tcp/state.h"

/* Listens on one port of all these addresses. *own keeps those that can be had. */
bool acceptor_listen(struct tcp *t, struct address *own);
/* Accepts the connections that wait. Peers have their turn after 64. */
void acceptor_accept(struct tcp *t);
/* While it is paused, connections wait in the system. */
void acceptor_pause(struct tcp *t, bool paused);

#endif
