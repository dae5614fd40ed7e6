/* Connections of iWARP's queue pairs: see cm.c. Only NICs of iWARP have any. */
#ifndef GSHMEM_TRANSPORT_VERBS_CM_H
#define GSHMEM_TRANSPORT_VERBS_CM_H

#include <stdbool.h>

struct control;
struct nic;
struct path;
struct verbs;

enum { CM_EVENTS_MOST = 16 /* of a NIC that are taken at once */ };

enum cm_outcome {
    CM_NOTHING, /* nothing to do for a path */
    CM_CONNECTED,
    CM_REFUSED, /* no connection comes */
    CM_ENDED,   /* the connection has ended */
};

struct cm_event {
    struct path *path;
    enum cm_outcome outcome;
    char why[100];
};

bool cm_is_there(void); /* whether librdmacm is */
/* Finds the NIC's address, and listens there; false: errno. */
bool cm_open(struct nic *nic);
void cm_close(struct nic *nic);
int cm_fd(const struct nic *nic); /* readable when something has happened; -1: none */
/* Begins a connection to the queue pair that the peer offers; false: errno. */
bool cm_connect(struct verbs *v, struct path *p, const struct control *offer);
/* Takes one event of a NIC's connections; false: there is none. */
bool cm_next(struct verbs *v, struct nic *nic, struct cm_event *e);
void cm_end(struct path *p);

#endif
