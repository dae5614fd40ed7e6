/* A collection of small requests that are one operation: see coalesce.c. */
#ifndef GSHMEM_TRANSPORT_VERBS_COALESCED_H
#define GSHMEM_TRANSPORT_VERBS_COALESCED_H

#include <stdbool.h>
#include <stdint.h>

#include "gshmem/status.h"
#include "transport/verbs/message.h"

struct op;

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
    bool updates;            /* there are updates in it that the target makes */
    bool signals;            /* some are signals of puts, behind their data */
    bool in_order;           /* they are the records of a batch */
    bool of_device;          /* some are to memory that only the target's device touches */
    bool closed;             /* nothing joins them any more */
    unsigned round;          /* when it was last to be issued, */
    uint32_t then;           /* and how many requests were joined to others by then */
    unsigned char text[MESSAGE_CHANGES_DATA];
};

#endif
