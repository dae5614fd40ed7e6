/* Fetches that threads wait for: small gets and atomics that return a value. Where several threads
 * make them at the same time, one of these threads posts those of all, so that they leave together
 * (docs/decisions/0040). */
#ifndef GSHMEM_RUNTIME_NETWORK_FETCHES_H
#define GSHMEM_RUNTIME_NETWORK_FETCHES_H

#include <stdatomic.h>
#include <stdbool.h>

#include "gshmem/status.h"
#include "runtime/network/network.h"
#include "runtime/network/parts.h"
#include "transport/transport.h"

/* Of one thread. It stays until the request is complete, as its struct pending does. */
struct fetch {
    struct transport_request request; /* of one in the list */
    struct landing landing;
    struct network *network;
    struct pending *pending;
    struct flight *flight; /* in the list: there was no room when it was attempted to post it */
    struct fetch *next;    /* in the list */
    bool waited_for_room;  /* it is counted */
    /* Why it could not be posted. Written before its completion shows. */
    gshmem_status_t refused;
    _Atomic bool posted; /* it has left the list, or was never in it */
    bool left;           /* with the network's lock: its thread no longer waits */
    _Atomic bool asleep; /* its thread sleeps until it has landed, or is about to (fetch_sleep) */
    _Atomic bool landed;
};

/* Whether it is a request of the kind that this file is for. */
bool fetch_takes(const struct transport_request *request);
/* Posts the request and waits until it is complete. *left: the wait was cut short, and the request
 * is still in flight. */
gshmem_status_t fetch_run(struct network *n, struct fetch *f, struct pending *pending,
                          struct transport_request *request, const char *call, bool *left);

#endif
