/* A collection of small requests that are one operation: see coalesce.c. */
#ifndef GSHMEM_TRANSPORT_VERBS_COALESCED_H
#define GSHMEM_TRANSPORT_VERBS_COALESCED_H

#include <stdbool.h>
#include <stdint.h>

#include "gshmem/rma.h"
#include "gshmem/type.h"
#include "transport/transport.h"
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
    uint32_t bytes;   /* of text, */
    uint32_t changes; /* and as many in it and the signals' */
    uint32_t head;    /* where the last begins */
    bool updates;     /* there are updates in it that the target makes */
    bool signals;     /* some are signals of puts, behind their data */
    bool in_order;    /* they are the records of a batch */
    bool of_device;   /* some are to memory that only the target's device touches */
    bool closed;      /* nothing joins them any more */
    unsigned round;   /* when it was last to be issued, */
    uint32_t then;    /* and how many requests were joined to others by then */
    unsigned char text[MESSAGE_CHANGES_DATA];
    /* Signals, which come behind the data of all. A signal of the same word as the last is one with
     * it: the last value that is set, or the sum of those that are added. */
    struct {
        struct message_change last;
        uint32_t bytes;
        unsigned char text[MESSAGE_CHANGES_DATA];
    } signal;
};

/* The bytes of its data, or of an update's operand. */
static inline uint32_t coalesced_data_bytes(const struct message_change *c)
{
    return c->bytes ? c->bytes : 8u;
}

/* A put's signal as a change. */
static inline struct message_change coalesced_signal(const struct transport_request *r)
{
    return (struct message_change){.segment = (uint8_t)r->signal_segment,
                                   .amo = r->signal_op == GSHMEM_SIGNAL_ADD ? GSHMEM_AMO_ADD
                                                                            : GSHMEM_AMO_SET,
                                   .type = GSHMEM_TYPE_UINT64,
                                   .offset = r->signal_offset};
}

/* Whether a put's signal is one with the last. */
static inline bool coalesced_shares_signal(const struct coalesced *g,
                                           const struct transport_request *r)
{
    const struct message_change *last = &g->signal.last;

    return last->offset == r->signal_offset && last->segment == r->signal_segment &&
           (r->signal_op == GSHMEM_SIGNAL_ADD ? last->amo == GSHMEM_AMO_ADD
                                              : last->amo == GSHMEM_AMO_SET) &&
           g->signal.bytes;
}

/* That one, of which this is so. */
static inline void coalesced_share_signal(struct coalesced *g, const struct transport_request *r)
{
    unsigned char *at = g->signal.text + g->signal.bytes - sizeof(uint64_t);
    const uint64_t before = r->signal_op == GSHMEM_SIGNAL_ADD ? message_get64(at) : 0;

    message_put64(at, before + r->signal_value);
}

#endif
