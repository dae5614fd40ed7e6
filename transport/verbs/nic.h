/* A NIC that this PE uses, and what belongs to it rather than to a peer. */
#ifndef GSHMEM_TRANSPORT_VERBS_NIC_H
#define GSHMEM_TRANSPORT_VERBS_NIC_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/transport.h"
#include "transport/verbs/addresses.h"
#include "transport/verbs/message.h"
#include "transport/verbs/rails.h"

struct cm;
struct verbs;

enum { INBOX_BLOCK = 1024 /* places for messages that are registered at once */ };

/* In wr_id, of a receive: the rest is the number of its place in the inbox. */
#define RECEIVED (1ull << 63)

struct nic {
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_comp_channel *channel;
    struct ibv_cq *cq;
    struct ibv_srq *srq;
    /* Work requests that may still be posted: for whose completions the queue has room, and which
     * GSHMEM_IB_INFLIGHT_REQUESTS allows. */
    uint32_t works_left;
    /* GSHMEM_IB_INFLIGHT: bytes of writes and reads in flight, and the limit. 0: there is none, and
     * they are not counted. */
    uint64_t flight, flight_most;
    struct path *flight_first, *flight_last; /* who waits for room, the longest first */

    /* The port, and its addresses, which may change while it is in use. */
    int port;
    uint16_t pkey_index;
    struct port_address address[ADDRESSES_MOST]; /* the best first */
    int addresses;
    uint16_t lid;
    enum ibv_mtu mtu;
    bool needs_grh; /* InfiniBand's port takes nothing without a global header */

    /* What it can do. */
    bool ethernet, iwarp;
    bool updates;      /* it makes atomics */
    bool cannot_fence; /* work behind reads is held back here */
    bool reorders;     /* it may place writes of a queue pair in another order than posted */
    bool tells_packet; /* it knows which packet a queue pair expects next */
    uint32_t reads, reads_asked; /* at a time, of one queue pair: by peers, and by this side */
    uint32_t receives_most, sends_most, completions_most;
    uint32_t sends_free;     /* of sends_most, for requests: the rest is kept for replies */
    uint32_t inline_most;    /* bytes that the next queue pair takes inline, as far as is known */
    uint8_t place, distance; /* as in struct rail_end */
    char name[120];          /* for people: device, port, address; */
    char chosen[80];         /* and why it was chosen */

    bool armed; /* its next completion makes the channel readable */
    bool down;  /* its port is down, as an event has said */
    bool gone;  /* it has failed or was removed */

    struct cm *cm;                                /* iWARP's */
    struct ibv_mr **chunk[TRANSPORT_SEGMENT_MAX]; /* of this PE's segments, at first use */
    struct ibv_mr *slots_mr, *stage_mr;           /* stage_mr: NULL until something is staged */
    struct message_bytes **inbox;                 /* blocks of places where messages arrive */
    struct ibv_mr **inbox_mr;
    uint32_t inbox_room, inbox_posted;
};

#endif
