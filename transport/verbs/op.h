/* An operation: one request on its way to one PE, and the list of a link's operations. */
#ifndef GSHMEM_TRANSPORT_VERBS_OP_H
#define GSHMEM_TRANSPORT_VERBS_OP_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/transport.h"
#include "transport/verbs/path.h"
#include "transport/verbs/rails.h"

struct coalesced;

enum {
    OPS = 256,         /* operations of a link at a time, at most; a power of two, as is */
    OPS_FIRST = 8,     /* the room for them until more are in flight at once */
    SMALL_BYTES = 128, /* a put's data up to here is copied into the operation */
    SLOT_BYTES = TRANSPORT_COPIED,
    SLOTS = 512,     /* for copies of larger data, of all links */
    SLOTS_LEAST = 4, /* of one link, when few are left */
};

enum op_below { BELOW_NOT, BELOW_CARRIES, BELOW_DONE };

struct op {
    struct transport_request request;
    struct link *link;
    uint32_t end[PATHS_MOST];     /* done when so many work requests of each path in `used` are, */
    uint32_t number;              /* and when this message has its reply, if `wants_reply` */
    int slot;                     /* the copy of its data; -1: none */
    struct ibv_mr *mr[NICS_MOST]; /* of memory that is registered for this operation alone */
    bool registered;              /* some of `mr` are set */
    uint64_t value;               /* a signal's, in flight */
    uint32_t joined_end;          /* its parts come before this number of the link's (coalesce.h) */
    uint32_t buffer;              /* of the peer's eager buffers, counted for ever, if it has one */

    struct {                         /* op_open sets all of this to zero: */
        uint64_t at;                 /* so many bytes have been given to queue pairs, but for */
        struct hole *hole;           /* these; NULL: none */
        struct coalesced *coalesced; /* the small requests that it consists of; NULL: it is one */
        uint64_t expected;           /* what the NIC is to find where it updates */
        uint64_t waits_since;        /* ns, for the path to that NIC; 0: it does not wait */
        gshmem_status_t failure;     /* its own, not the link's */
        uint16_t used;               /* paths, a bit each: see `end` */
        uint16_t parts;              /* parts that the transport below carries */
        uint16_t chunks;             /* staged chunks that are not done */
        uint8_t below;               /* an enum op_below */
        uint8_t share;               /* with which signals its own goes (signals.c) */
        bool wants_reply;
        bool issued;
        bool fenced;  /* order_fence has marked what must be before it */
        bool held;    /* all is issued but its signal, which waits for stripes, or for others */
        bool updates; /* a NIC has been given its update; held: the update has to succeed */
        bool behind;  /* a fence */
        bool staged;  /* it goes through pinned buffers, by chunks */
        bool eager;   /* an eager buffer of the peer's is kept for it (batches.c) */
    };
    unsigned char small[SMALL_BYTES];
};

/* A range of an operation's bytes that was given to a path and did not arrive, while what lies
 * behind it was given to other paths. */
struct hole {
    struct hole *next; /* further behind, and not adjacent */
    uint64_t at, bytes;
};

#endif
