/* Connections of iWARP's queue pairs: see cm.c. Of NICs that are of iWARP alone. */
#ifndef GSHMEM_TRANSPORT_VERBS_CM_H
#define GSHMEM_TRANSPORT_VERBS_CM_H

#include "transport/verbs/verbs.h"

/* Finds the NIC's address, and listens there; false: errno. */
bool cm_open(struct nic *nic);
void cm_close(struct nic *nic);
int cm_fd(const struct nic *nic); /* readable when something has happened; -1: none */
/* With what the other offers: it is connected when path_connected is called. */
bool cm_connect(struct verbs *v, struct path *p, const struct control *offer);
void cm_end(struct path *p);
void cm_watch(struct verbs *v);

#endif
