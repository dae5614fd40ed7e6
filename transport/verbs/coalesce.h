/* Small puts and updates that go as one operation. */
#ifndef GSHMEM_TRANSPORT_VERBS_COALESCE_H
#define GSHMEM_TRANSPORT_VERBS_COALESCE_H

#include <stdbool.h>
#include <stdint.h>

#include "transport/transport.h"
#include "transport/verbs/message.h"

struct link;
struct op;
struct verbs;

enum {
    JOINED = 1024,       /* requests that are part of others, of a link; a power of two */
    COALESCED_MOST = 32, /* collections that are not done, of a link; a power of two */
};

/* A request that has become part of the one before it. */
struct joined {
    void (*done)(void *tag, gshmem_status_t status);
    void *tag;
};

/* A collection: small puts and updates, as in a message of them (message.h). */
struct coalesced {
    struct op *op; /* the first, of which the others are parts */
    struct message_change last;
    uint32_t bytes, changes; /* of text, and as many in it */
    uint32_t head;           /* where the last begins */
    bool updates;            /* there are updates in it */
    bool of_device;          /* some are puts to memory that only the target's device touches */
    bool closed;             /* nothing joins them any more */
    unsigned round;          /* when it was last to be issued, */
    uint32_t then;           /* and how many requests were joined to others by then */
    unsigned char text[MESSAGE_CHANGES_DATA];
};

/* Whether a request may wait for more of its kind. */
bool coalesce_takes(const struct link *l, const struct transport_request *request);
/* Lets it join the last operation, or begin a collection (*begun); TRANSPORT_FULL: no room. */
gshmem_status_t coalesce_post(struct verbs *v, struct link *l,
                              const struct transport_request *request, bool *begun);
/* Whether a collection still waits for more. */
bool coalesce_waits(struct verbs *v, struct link *l, const struct op *op);
bool coalesce_issue(struct verbs *v, struct link *l, struct op *op);
/* Hands its parts to the transport below; false: not all of them, yet. */
bool coalesce_carry(struct verbs *v, struct link *l, struct op *op);

#endif
